import { z } from 'zod'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { type KeyRecord, type KeyStatus, keyStatus } from '../keys/key-store.ts'
import { nextMonthMs } from '../ledger/calendar.ts'
import { formatInstant, instant } from './instant-field.ts'
import type { Management } from './route.ts'
import { usd, usdAmount } from './usd.ts'

export const KEY_STATUSES = ['usable', 'revoked', 'expired'] as const satisfies readonly KeyStatus[]

export const keyId = (expected?: string) => z.string().regex(/^key_[0-9A-HJKMNP-TV-Z]{26}$/, expected)

export const keySchema = z
  .object({
    id: keyId(),
    object: z.literal('key'),
    name: z.string(),
    prefix: z.string().meta({ description: 'The first characters of the key, to tell keys apart.' }),
    last4: z.string().meta({ description: 'The last four characters of the key.' }),
    status: z.enum(KEY_STATUSES).meta({ description: 'Revoked and expired are final.' }),
    monthly_budget_usd: usdAmount('The cap of each month, or null where there is none.').nullable(),
    month_spend_usd: usdAmount('What the calls admitted in this month (UTC) have cost.'),
    month_held_usd: usdAmount('What calls in flight may still cost at most.'),
    month_waiting: z.int().min(0).meta({
      description: 'Calls that wait for room under the cap or for credit, on the node that answers.',
    }),
    month_lost_usd: usdAmount('What the interrupted calls of this month may have cost at list price.'),
    budget_resets_at: instant().meta({ description: 'When the next month begins.' }),
    allowed_models: z
      .array(z.string())
      .nullable()
      .meta({ description: 'The models this key may call; null is every model.' }),
    log_requests: z.boolean(),
    expires_at: instant().nullable(),
    created_at: instant(),
    revoked_at: instant().nullable(),
    last_used_at: instant().nullable().meta({ description: 'The last request that came with this key.' }),
    rotated_from: keyId().nullable().meta({ description: 'The key in whose place this one was made.' }),
  })
  .meta({ id: 'key', description: 'An API key and its limits. The secret is not part of it.' })

export const createdKeySchema = keySchema
  .extend({
    key: z.string().optional().meta({
      description: 'The secret. It is told once, and not when an Idempotency-Key repeats the request.',
    }),
  })
  .meta({ id: 'created_key', description: 'A new API key.' })

/** A key as the API shows it. The secret is not part of it: only its creation tells it, once. */
export function keyObject(
  key: KeyRecord,
  nowMs: number,
  waitingCalls: Management['waitingCalls'],
): Record<keyof z.infer<typeof keySchema>, unknown> {
  return {
    id: key.id,
    object: 'key',
    name: key.name,
    prefix: key.prefix,
    last4: key.last4,
    status: keyStatus(key, nowMs),
    monthly_budget_usd: usd(key.monthlyBudgetNanos),
    month_spend_usd: usd(key.month.spentNanos),
    month_held_usd: usd(key.month.heldNanos),
    month_waiting: waitingCalls.countOf(key.id),
    month_lost_usd: usd(key.month.lostNanos),
    budget_resets_at: formatInstant(nextMonthMs(nowMs)),
    allowed_models: key.allowedModels,
    log_requests: key.logRequests,
    expires_at: formatInstant(key.expiresAtMs),
    created_at: formatInstant(key.createdAtMs),
    revoked_at: formatInstant(key.revokedAtMs),
    last_used_at: formatInstant(key.lastUsedAtMs),
    rotated_from: key.rotatedFrom,
  }
}

export function refuseMissingKey(): Refusal {
  return refuse('not_found', 'There is no key with this id.')
}

export function refuseFinalKey(key: KeyRecord): Refusal {
  const how = key.revokedAtMs === null ? 'has expired' : 'is revoked'
  return refuse('conflict', `This key ${how} and cannot be changed any more.`)
}
