import { parseArgs } from 'node:util'
import { CONNECTION_HELP, CONNECTION_OPTIONS, EXIT_HELP, withClient } from './connection.ts'
import { findKey, KEY_HELP, onlyKey } from './find-key.ts'
import { keyAnswer, renderKey } from './key-answer.ts'
import { lookOf } from './look.ts'
import { print } from './print.ts'
import { readAnswer } from './read-answer.ts'
import type { Command } from './run-command.ts'

export const keysShow: Command = {
  name: 'keys show',
  help: `Usage
  tollgate keys show <key> [--json] [--no-color]

Shows an API key, its limits and what it has spent this month. The key itself is never shown again.
  --json       print the API's answer instead
  --no-color   no colour on a terminal either; the variable NO_COLOR says the same

Examples
  tollgate keys show checkout
  tollgate keys show key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --json --url http://127.0.0.1:8787 --admin-key-file data/admin-key

${KEY_HELP}
${CONNECTION_HELP}
${EXIT_HELP}`,
  async run(args) {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        ...CONNECTION_OPTIONS,
        json: { type: 'boolean' },
        'no-color': { type: 'boolean', default: false },
      },
    })
    const named = onlyKey(positionals)
    await withClient(values, async (client) => {
      const id = await findKey(client, '<key>', named)
      const answer = await client.ask('GET', `/v1/keys/${id}`)
      const key = readAnswer(client, answer, keyAnswer)
      const look = lookOf(process.stdout, process.env, values['no-color'])
      await print(values.json === true ? `${answer.text}\n` : renderKey(key, look))
    })
  },
}
