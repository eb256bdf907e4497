import { parseArgs } from 'node:util'
import { CONNECTION_HELP, CONNECTION_OPTIONS, EXIT_HELP, withClient } from './connection.ts'
import { keyAnswer, keyPath, renderKey } from './key-answer.ts'
import { lookOf } from './look.ts'
import { print } from './print.ts'
import { readAnswer } from './read-answer.ts'
import type { Command } from './run-command.ts'

export const keysShow: Command = {
  name: 'keys show',
  help: `Usage
  tollgate keys show <id> [--json] [--no-color]

Shows an API key, its limits and what it has spent this month. The key itself is never shown again.
  --json       print the API's answer instead
  --no-color   no colour on a terminal either; the variable NO_COLOR says the same

Examples
  tollgate keys show key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X
  tollgate keys show key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --json --url http://127.0.0.1:8787 --admin-key-file data/admin-key

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
    const path = keyPath(positionals)
    await withClient(values, async (client) => {
      const answer = await client.ask('GET', path)
      const key = readAnswer(client, answer, keyAnswer)
      const look = lookOf(process.stdout, process.env, values['no-color'])
      await print(values.json === true ? `${answer.text}\n` : renderKey(key, look))
    })
  },
}
