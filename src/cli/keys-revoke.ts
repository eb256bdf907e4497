import { parseArgs } from 'node:util'
import { CONNECTION_HELP, CONNECTION_OPTIONS, EXIT_HELP, withClient } from './connection.ts'
import { keyAnswer, keyPath } from './key-answer.ts'
import { print } from './print.ts'
import { readAnswer } from './read-answer.ts'
import type { Command } from './run-command.ts'
import { shownText } from './shown-text.ts'

export const keysRevoke: Command = {
  name: 'keys revoke',
  help: `Usage
  tollgate keys revoke <id> [--json]

Ends an API key, for good. When the command has returned, no call is admitted with it any more; streams that run
still finish. Repeating it does no harm. Its records and what it has spent stay.
  --json   print the API's answer instead

Example
  tollgate keys revoke key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X

${CONNECTION_HELP}
${EXIT_HELP}`,
  async run(args) {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: { ...CONNECTION_OPTIONS, json: { type: 'boolean' } },
    })
    const path = keyPath(positionals)
    await withClient(values, async (client) => {
      const answer = await client.ask('POST', `${path}/revoke`)
      const { id, name } = readAnswer(client, answer, keyAnswer)
      await print(values.json === true ? `${answer.text}\n` : `Revoked ${id} (${shownText(name, 120)}).\n`)
    })
  },
}
