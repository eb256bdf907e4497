import { z } from 'zod'
import type { EventType } from '../kernel/vocabulary.ts'
import { ownAccountSchema } from './account.ts'
import { adminKeySchema } from './admin-key.ts'
import { balanceSchema, creditSchema } from './credit.ts'
import * as f from './fields.ts'
import { keySchema } from './key.ts'
import { personSchema } from './person.ts'
import { webhookSchema } from './webhook.ts'

/** The messages that webhooks send: for each type of event, the members of its `data`. */

const key = keySchema
  .omit({ month_waiting: true })
  .meta({ id: 'event_key', description: 'A key, without the calls that wait on one node.' })

const ANY = { type: ['string', 'number', 'boolean', 'object', 'array', 'null'] }
const value = z.unknown().meta(ANY)

const changes = z
  .record(z.string(), z.object({ old: value, new: value }))
  .describe('The old and new values of the fields that changed. Both are null if a secret changed.')

const figures = {
  period: z.enum(['month', 'day']),
  threshold_percent: z.number().describe('100 in `*.exceeded` events.'),
  spent_usd: f.usdAmount('The spend of the period.'),
  cap_usd: f.usdAmount('The budget of the period.'),
  held_usd: f.usdAmount('What running calls have reserved.'),
  resets_at: f.instant(),
  request_id: f.stringOrNull('The call that crossed the threshold; null if a lower budget did.'),
}

const account = ownAccountSchema
const person = personSchema
const admin_key = adminKeySchema
const webhook = webhookSchema
const balance = balanceSchema

const DATA = {
  'key.created': { key },
  'key.updated': { key, changes },
  'key.rotated': { key, old_key: key },
  'key.revoked': { key },
  'key.expired': { key },
  'key.expiring': { key },
  'key.budget.threshold': { key, ...figures },
  'key.budget.exceeded': { key, ...figures },
  'account.budget.threshold': { account, ...figures },
  'account.budget.exceeded': { account, ...figures },
  'balance.low': { balance },
  'balance.exhausted': { balance },
  'credit.added': { credit: creditSchema, balance },
  'call.unpriced': {
    model: f.stringOrNull('Null if the call named none.'),
    request_id: z.string(),
    refused: f.flag('Whether the call was refused, because its model has no price.'),
  },
  'reload.refused': { file: z.string(), reason: z.string() },
  'prices.updated': { prices: z.object({ version: z.string(), models: z.array(z.string()) }) },
  'account.created': { account },
  'account.updated': { account, changes },
  'account.suspended': { account },
  'account.resumed': { account },
  'admin_key.created': { admin_key },
  'admin_key.revoked': { admin_key },
  'person.created': { person },
  'person.updated': { person, changes },
  'person.moved': { person, changes },
  'person.blocked': { person },
  'person.unblocked': { person },
  'webhook.created': { webhook },
  'webhook.updated': { webhook, changes },
  'webhook.deleted': { webhook },
  'webhook.disabled': { webhook },
  'webhook.test': { webhook },
} as const satisfies Readonly<Record<EventType, z.ZodRawShape>>

type DataShape = (typeof DATA)[EventType]
type NameOf<Any> = Any extends unknown ? keyof Any : never

/** The members of all events. An event has those of its type. */
export type EventData = {
  readonly [Name in NameOf<DataShape>]?: z.infer<Extract<DataShape, Readonly<Record<Name, unknown>>>[Name]>
}

/** The payload of each type, by the type. The headers `webhook-id`, `webhook-timestamp` and `webhook-signature` come with it. */
export const EVENT_PAYLOADS: ReadonlyMap<string, z.ZodType> = new Map(
  Object.entries(DATA).map(([type, data]) => [
    type,
    z
      .object({
        type: z.literal(type),
        timestamp: f.instant(),
        account_id: z.string(),
        actor: f.actorSchema,
        data: z.object(data),
      })
      .meta({ id: `${type}_event`, description: `The message of \`${type}\`.` }),
  ]),
)
