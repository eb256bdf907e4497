import { parseArgs } from 'node:util'
import { CONNECTION_HELP, CONNECTION_OPTIONS, EXIT_HELP, withClient } from './connection.ts'
import { findKey, KEY_HELP, onlyKey } from './find-key.ts'
import { keyAnswer, renderKey } from './key-answer.ts'
import { LIMIT_HELP, LIMIT_NAMES, LIMIT_OPTIONS, limitFields } from './key-options.ts'
import { lookOf } from './look.ts'
import { print } from './print.ts'
import { readAnswer } from './read-answer.ts'
import { type Command, UsageError } from './run-command.ts'

export const keysUpdate: Command = {
  name: 'keys update',
  help: `Usage
  tollgate keys update <key> [--name <name>] [--monthly-budget <usd>|none] [--allow-model <model> … | --all-models]
                       [--log-requests | --no-log-requests] [--expires-at <instant>|never] [--json] [--no-color]

Changes what is named and leaves the rest. It counts from the next call on; what was spent stays spent. A list of
models takes the place of the one before. A revoked or expired key cannot be changed.
  --name <name>             what people call it
${LIMIT_HELP}  --json                    print the API's answer instead of the key
  --no-color                no colour on a terminal either; the variable NO_COLOR says the same

Examples
  tollgate keys update key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --monthly-budget 200
  tollgate keys update key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --monthly-budget none --all-models --expires-at never

${KEY_HELP}
${CONNECTION_HELP}
${EXIT_HELP}`,
  async run(args) {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        ...LIMIT_OPTIONS,
        ...CONNECTION_OPTIONS,
        json: { type: 'boolean' },
        'no-color': { type: 'boolean', default: false },
      },
    })
    const named = onlyKey(positionals)
    const body = limitFields(values)
    if (Object.keys(body).length === 0)
      throw new UsageError('say what to change, such as --monthly-budget 200')
    await withClient(values, async (client) => {
      const id = await findKey(client, '<key>', named)
      const answer = await client.ask('PATCH', `/v1/keys/${id}`, { body })
      const key = readAnswer(client, answer, keyAnswer, LIMIT_NAMES)
      const look = lookOf(process.stdout, process.env, values['no-color'])
      await print(values.json === true ? `${answer.text}\n` : renderKey(key, look))
    })
  },
}
