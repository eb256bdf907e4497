import { z } from 'zod'
import type { Look } from './look.ts'
import { shownInstant, shownText } from './shown-text.ts'
import type { Cell } from './table.ts'

/** A key as the API answers it. Numbers are texts. */
export const keyAnswer = z.object({
  id: z.string(),
  name: z.string(),
  prefix: z.string(),
  last4: z.string(),
  status: z.string(),
  monthly_budget_usd: z.string().nullable(),
  month_spend_usd: z.string(),
  month_held_usd: z.string(),
  month_waiting: z.string(),
  month_lost_usd: z.string(),
  budget_resets_at: z.string(),
  allowed_models: z.array(z.string()).nullable(),
  log_requests: z.boolean(),
  expires_at: z.string().nullable(),
  created_at: z.string(),
  revoked_at: z.string().nullable(),
  last_used_at: z.string().nullable(),
  rotated_from: z.string().nullable(),
  /** The secret of a key that was just made. */
  key: z.string().optional(),
})

export type KeyAnswer = z.infer<typeof keyAnswer>

export function shownKey({ prefix, last4 }: KeyAnswer): string {
  return shownText(`${prefix}…${last4}`)
}

export function statusCell({ status }: KeyAnswer): Cell {
  return { text: shownText(status), style: status === 'usable' ? 'green' : 'red' }
}

/** All that there is to say of a key, for people. */
export function renderKey(key: KeyAnswer, look: Look): string {
  const { text, style } = { style: 'bold' as const, text: shownText(key.name, 120) }
  const cap = key.monthly_budget_usd
  const lines: [string, string][] = [
    ['status', look.paint(key.status === 'usable' ? 'green' : 'red', shownText(key.status))],
    ['key', shownKey(key)],
    ['monthly cap', cap === null ? 'none' : `${cap} USD`],
    ['this month', `${key.month_spend_usd} USD spent, ${key.month_held_usd} USD held by calls in flight`],
    [
      'waiting',
      key.month_waiting === '0' ? '' : `calls for room under the cap or for credit: ${key.month_waiting}`,
    ],
    ['lost', `${key.month_lost_usd} USD at list price, in calls of this month that were interrupted`],
    ['month ends', utc(key.budget_resets_at)],
    [
      'models',
      key.allowed_models === null ? 'all' : key.allowed_models.map((model) => shownText(model)).join(', '),
    ],
    ['bodies', key.log_requests ? 'logged' : 'not logged'],
    ['expires', key.expires_at === null ? 'never' : utc(key.expires_at)],
    ['created', utc(key.created_at)],
    ['last used', key.last_used_at === null ? 'never' : utc(key.last_used_at)],
    ['revoked', key.revoked_at === null ? '' : utc(key.revoked_at)],
    ['rotated from', key.rotated_from === null ? '' : shownText(key.rotated_from)],
  ]
  const shown = lines.filter(
    ([name, value]) => value !== '' && !(name === 'lost' && key.month_lost_usd === '0'),
  )
  return [
    `${shownText(key.id)}  ${look.paint(style, text)}`,
    ...shown.map(([name, value]) => `  ${look.paint('dim', name.padEnd(13))} ${value}`),
    '',
  ].join('\n')
}

function utc(instant: string): string {
  return `${shownInstant(instant)} UTC`
}
