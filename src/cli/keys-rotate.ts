import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { CONNECTION_HELP, CONNECTION_OPTIONS, EXIT_HELP, withClient } from './connection.ts'
import { findKey, KEY_HELP, onlyKey } from './find-key.ts'
import { keyAnswer } from './key-answer.ts'
import { print } from './print.ts'
import { printNewKey } from './print-new-key.ts'
import { readAnswer } from './read-answer.ts'
import { type Command, UsageError } from './run-command.ts'

export const keysRotate: Command = {
  name: 'keys rotate',
  help: `Usage
  tollgate keys rotate <key> [--old-expires-in <time>] [--idempotency-key <text>] [--json]

Creates a key with the name and the limits of another one and a month of its own. The new key is printed to standard
output, once, and everything else to standard error. The old one works on, unless it is given an end.
  --old-expires-in <time>   ends the old key after this time: seconds, or such as 90s, 15m, 24h, 7d
  --idempotency-key <text>  repeating the command with the same text creates no second key
  --json                    print the API's answer instead, with the key in it

Examples
  KEY=$(tollgate keys rotate key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --old-expires-in 24h)
  tollgate keys rotate key_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --json

${KEY_HELP}
${CONNECTION_HELP}
${EXIT_HELP}`,
  async run(args) {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        ...CONNECTION_OPTIONS,
        'old-expires-in': { type: 'string' },
        'idempotency-key': { type: 'string' },
        json: { type: 'boolean' },
      },
    })
    const named = onlyKey(positionals)
    const time = values['old-expires-in']
    const body = time === undefined ? {} : { old_expires_in_seconds: secondsOf(time) }
    const idempotencyKey = values['idempotency-key'] ?? randomUUID()
    await withClient(values, async (client) => {
      const id = await findKey(client, '<key>', named)
      const answer = await client.ask('POST', `/v1/keys/${id}/rotate`, { body, idempotencyKey })
      const key = readAnswer(client, answer, keyAnswer, {
        old_expires_in_seconds: '--old-expires-in',
        'Idempotency-Key': '--idempotency-key',
      })
      if (values.json === true) return await print(`${answer.text}\n`)
      const old = time === undefined ? 'which works on' : `which ends in ${time}`
      await printNewKey(key, `In the place of ${id}, ${old}, created`)
    })
  },
}

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const

function secondsOf(text: string): number {
  const [, count, unit = 's'] = /^(\d{1,9})([smhd])?$/.exec(text) ?? []
  if (count === undefined)
    throw new UsageError('--old-expires-in must be seconds, or a time such as 90s, 15m, 24h or 7d')
  return Number(count) * SECONDS[unit as keyof typeof SECONDS]
}
