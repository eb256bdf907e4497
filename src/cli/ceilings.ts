import { amountField, type FieldOption } from './api-command.ts'

/** The ceilings that keys, people and the defaults of new people have in common. */
export const CEILINGS: readonly FieldOption[] = [
  [
    '--monthly-budget <usd>',
    'monthly_budget_usd',
    'maximum spend per month (UTC), or `none`',
    { read: amountField },
  ],
  [
    '--daily-budget <usd>',
    'daily_budget_usd',
    'maximum spend per day (UTC), or `none`',
    { read: amountField },
  ],
  ['--rpm <n>', 'requests_per_minute', 'maximum calls per minute, or `none`', { read: amountField }],
]
