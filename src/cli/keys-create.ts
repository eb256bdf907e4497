import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { CONNECTION_HELP, CONNECTION_OPTIONS, EXIT_HELP, withClient } from './connection.ts'
import { keyAnswer } from './key-answer.ts'
import { LIMIT_HELP, LIMIT_NAMES, LIMIT_OPTIONS, limitFields } from './key-options.ts'
import { print } from './print.ts'
import { printNewKey } from './print-new-key.ts'
import { readAnswer } from './read-answer.ts'
import type { Command } from './run-command.ts'

export const keysCreate: Command = {
  name: 'keys create',
  help: `Usage
  tollgate keys create --name <name> [--monthly-budget <usd>] [--allow-model <model> …] [--log-requests]
                       [--expires-at <instant>] [--idempotency-key <text>] [--json]

Creates an API key. The key is printed to standard output, once, and everything else to standard error.
  --name <name>             what people call it
${LIMIT_HELP}  --idempotency-key <text>  repeating the command with the same text creates no second key
  --json                    print the API's answer instead, with the key in it

Examples
  KEY=$(tollgate keys create --name checkout --monthly-budget 50)
  tollgate keys create --name trial --allow-model claude-haiku-5-5 --expires-at 2030-01-31T00:00:00Z

${CONNECTION_HELP}
${EXIT_HELP}`,
  async run(args) {
    const { values } = parseArgs({
      args,
      options: {
        ...LIMIT_OPTIONS,
        ...CONNECTION_OPTIONS,
        'idempotency-key': { type: 'string' },
        json: { type: 'boolean' },
      },
    })
    const body = limitFields(values)
    const idempotencyKey = values['idempotency-key'] ?? randomUUID()
    await withClient(values, async (client) => {
      const answer = await client.ask('POST', '/v1/keys', { body, idempotencyKey })
      const key = readAnswer(client, answer, keyAnswer, LIMIT_NAMES)
      if (values.json === true) await print(`${answer.text}\n`)
      else await printNewKey(key, 'Created')
    })
  },
}
