import { randomUUID } from 'node:crypto'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { CONNECTION_HELP, CONNECTION_OPTIONS, EXIT_HELP, withClient } from './connection.ts'
import { amountField } from './key-options.ts'
import { print } from './print.ts'
import { readAnswer } from './read-answer.ts'
import { type Command, UsageError } from './run-command.ts'
import { shownText } from './shown-text.ts'

const credit = z.object({ id: z.string(), amount_usd: z.string(), balance_usd: z.string() })

export const creditsAdd: Command = {
  name: 'credits add',
  help: `Usage
  tollgate credits add <amount> --reason <text> [--idempotency-key <text>] [--json]

Adds prepaid credit to the account, in USD with at most 9 decimals. From the first time on, calls are admitted only
while there is credit left.
  --reason <text>           what the books say it was for
  --idempotency-key <text>  repeating the command with the same text adds nothing more
  --json                    print the API's answer instead

Examples
  tollgate credits add 500 --reason "invoice 2026-114"
  tollgate credits add 0.25 --reason trial --idempotency-key trial-42

${CONNECTION_HELP}
${EXIT_HELP}`,
  async run(args) {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        ...CONNECTION_OPTIONS,
        reason: { type: 'string' },
        'idempotency-key': { type: 'string' },
        json: { type: 'boolean' },
      },
    })
    const [amount, ...more] = positionals
    if (amount === undefined || more.length > 0) throw new UsageError('name one <amount> in USD, such as 500')
    if (values.reason === undefined)
      throw new UsageError('--reason is required: what the books say it was for')
    const body = { amount_usd: amountField(amount), reason: values.reason }
    const idempotencyKey = values['idempotency-key'] ?? randomUUID()
    await withClient(values, async (client) => {
      const answer = await client.ask('POST', '/gateway/v1/credits', { body, idempotencyKey })
      const { id, amount_usd, balance_usd } = readAnswer(client, answer, credit, {
        amount_usd: '<amount>',
        reason: '--reason',
        'Idempotency-Key': '--idempotency-key',
      })
      if (values.json === true) return await print(`${answer.text}\n`)
      const repeated = answer.headers.get('idempotent-replayed') === 'true'
      const done = repeated ? 'Added before, and not again:' : 'Added'
      const [sum, balance] = [shownText(amount_usd), shownText(balance_usd)]
      await print(`${done} ${sum} USD as ${shownText(id)}. The balance is ${balance} USD.\n`)
    })
  },
}
