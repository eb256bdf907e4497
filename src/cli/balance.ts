import type { Command } from 'commander'
import type { BalanceObject } from '../api/credit.ts'
import { type ConnectionOptions, connect, type Exact, withConnection } from './client.ts'
import { print, printData, shownText } from './terminal.ts'

/** The prepaid credit of the account over HTTP. */
export function register(command: Command): void {
  withConnection(command)
    .option('--json', "print the API's answer")
    .action(async (options: ConnectionOptions & { json?: true }) => {
      const { value, text } = await connect(options, process.env).get<Exact<BalanceObject>>(
        'balance',
        '/gateway/v1/balance',
      )
      if (options.json) return await printData([`${text}\n`])
      const rows = [
        ['balance', `${value.balance_usd} USD`],
        ['reserved', `${value.held_usd} USD by calls in flight`],
        ['credited', `${value.credited_usd} USD in all`],
        ['charged', `${value.charged_usd} USD in all`],
        ['enforced', value.enforced ? 'yes: calls are refused when the credit is used up' : 'no'],
      ] as const
      await print(rows.map(([name, amount]) => `${name.padEnd(9)} ${shownText(amount)}\n`).join(''))
    })
}
