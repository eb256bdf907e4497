import { parseArgs } from 'node:util'
import { CONNECTION_HELP, CONNECTION_OPTIONS, EXIT_HELP, withClient } from './connection.ts'
import { findKey, KEY_HELP, onlyKey } from './find-key.ts'
import { keyAnswer } from './key-answer.ts'
import { print } from './print.ts'
import { readAnswer } from './read-answer.ts'
import type { Command } from './run-command.ts'
import { shownText } from './shown-text.ts'

export const keysRevoke: Command = {
  name: 'keys revoke',
  help: `Usage
  tollgate keys revoke <key> [--json]

Ends an API key, for good. When the command has returned, no call is admitted with it any more; streams that run
still finish. Repeating it does no harm. Its records and what it has spent stay.
  --json   print the API's answer instead

Examples
  tollgate keys revoke key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X
  tollgate keys revoke svc_live_Ab3dE9f

${KEY_HELP}
${CONNECTION_HELP}
${EXIT_HELP}`,
  async run(args) {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: { ...CONNECTION_OPTIONS, json: { type: 'boolean' } },
    })
    const named = onlyKey(positionals)
    await withClient(values, async (client) => {
      const id = await findKey(client, '<key>', named)
      const answer = await client.ask('POST', `/v1/keys/${id}/revoke`)
      const { name } = readAnswer(client, answer, keyAnswer)
      await print(values.json === true ? `${answer.text}\n` : `Revoked ${id} (${shownText(name, 120)}).\n`)
    })
  },
}
