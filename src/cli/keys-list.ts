import { parseArgs } from 'node:util'
import { z } from 'zod'
import { CONNECTION_HELP, CONNECTION_OPTIONS, EXIT_HELP, withClient } from './connection.ts'
import { type KeyAnswer, keyAnswer, shownKey, statusCell } from './key-answer.ts'
import { type Look, lookOf } from './look.ts'
import { print } from './print.ts'
import { readAnswer } from './read-answer.ts'
import type { Command } from './run-command.ts'
import { alignAmounts } from './shown-figures.ts'
import { shownInstant, shownText } from './shown-text.ts'
import { type Column, renderTable } from './table.ts'

const page = z.object({ data: z.array(keyAnswer), has_more: z.boolean(), next: z.string().nullable() })

export const keysList: Command = {
  name: 'keys list',
  help: `Usage
  tollgate keys list [--status usable|revoked|expired] [--search <text>] [--limit <n>] [--after <id>]
                     [--json] [--no-color]

Lists the API keys, newest first, with what each has spent this month (UTC), in USD.
  --status <status>   only keys in this state
  --search <text>     part of a name in any case, of an id, of the beginning or of the last four characters of a key
  --limit <n>         at most this many, 1 to 1000; 100 unless given
  --after <id>        go on behind this key, the last one of the list before
  --json              print the API's answer instead
  --no-color          no colour on a terminal either; the variable NO_COLOR says the same

Examples
  tollgate keys list --status usable
  tollgate keys list --search svc_live_Ab3dE9f

${CONNECTION_HELP}
${EXIT_HELP}`,
  async run(args) {
    const { values } = parseArgs({
      args,
      options: {
        ...CONNECTION_OPTIONS,
        status: { type: 'string' },
        search: { type: 'string' },
        limit: { type: 'string' },
        after: { type: 'string' },
        json: { type: 'boolean' },
        'no-color': { type: 'boolean', default: false },
      },
    })
    const { status, search, limit, after } = values
    await withClient(values, async (client) => {
      const answer = await client.ask('GET', '/v1/keys', { query: { status, search, limit, after } })
      const options = { status: '--status', search: '--search', limit: '--limit', after: '--after' }
      const { data, has_more, next } = readAnswer(client, answer, page, options)
      if (values.json === true) return await print(`${answer.text}\n`)
      const look = lookOf(process.stdout, process.env, values['no-color'])
      if (data.length > 0) await print(keyTable(data, look))
      else process.stderr.write('There is no such key. `tollgate keys create --name <name>` creates one.\n')
      if (has_more)
        process.stderr.write(`There are more: go on with --after ${next}, or take a larger --limit.\n`)
    })
  },
}

const COLUMNS: readonly Column[] = [
  { title: 'id', align: 'left' },
  { title: 'status', align: 'left' },
  { title: 'key', align: 'left' },
  { title: 'spent', align: 'right' },
  { title: 'cap', align: 'right' },
  { title: 'last used (UTC)', align: 'left' },
  { title: 'name', align: 'left' },
]

function keyTable(keys: readonly KeyAnswer[], look: Look): string {
  const spent = alignAmounts(keys.map((key) => key.month_spend_usd))
  const caps = alignAmounts(keys.map((key) => key.monthly_budget_usd ?? '0'))
  const rows = keys.map((key, at) => [
    shownText(key.id),
    statusCell(key),
    shownKey(key),
    spent[at] ?? '',
    key.monthly_budget_usd === null ? '-' : (caps[at] ?? ''),
    shownInstant(key.last_used_at),
    shownText(key.name, 40),
  ])
  return renderTable(COLUMNS, rows, look)
}
