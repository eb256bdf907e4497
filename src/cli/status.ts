import type { Command } from 'commander'
import { registerAll } from './api-command.ts'
import type { ApiAnswer, CommandOptions, ObjectOf } from './client.ts'
import { renderRecord } from './records.ts'
import { outputStyle, print, shownText } from './terminal.ts'

export function register(command: Command): void {
  registerAll(command, 'overview', [['', '', 'GET', '/gateway/v1/overview', { show: printStatus }]])
}

async function printStatus(
  { value }: ApiAnswer<ObjectOf<'overview'>>,
  options: CommandOptions,
): Promise<void> {
  const { attention, alert_thresholds_percent: _, balance, ...status } = value
  const named = (keys: readonly { readonly name: string }[]) => keys.map(({ name }) => name)
  const lines = [
    ['Budget exhausted', named(attention.keys_exhausted.data)],
    ['80 % of the budget spent', named(attention.keys_near_cap.data)],
    ['Expires within a week', named(attention.keys_expiring.data)],
    ['Models without a price', attention.unpriced_models.map(({ model }) => model)],
    ['Refused in the last day', attention.refusals.map(({ code, calls }) => `${code} (${calls})`)],
  ] as const
  const failed = attention.webhooks_failed_deliveries
  const needed = [
    ...lines
      .filter(([, names]) => names.length > 0)
      .map(([what, names]) => `${what}: ${shownText(names.join(', '), 200)}.\n`),
    ...(failed === '0' ? [] : [`Webhook deliveries that failed in the last day: ${failed}.\n`]),
  ]
  await print(
    `${renderRecord({ ...status, balance_usd: balance.balance_usd }, outputStyle(options))}\n${needed.join('') || 'Nothing needs attention.\n'}`,
  )
}
