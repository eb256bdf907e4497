import { z } from 'zod'
import { PERSON_ROLES } from '../kernel/vocabulary.ts'
import { balanceSchema } from './credit.ts'
import * as f from './fields.ts'
import { personSchema } from './person.ts'

/** Maximum number of keys in each list of the overview. The `count` of the list includes the others. */
export const NAMED_KEYS_MAX = 20

/** Objects that only the dashboard uses: its session, its first page and the price book. */

const signInKey = (name: string, expected: string) =>
  z
    .string(`${name} must be ${expected}.`)
    .min(1, `${name} must be ${expected}.`)
    .max(1_024, `${name} must be ${expected}.`)
    .optional()

export const signInFields = z
  .strictObject({
    admin_key: signInKey('admin_key', 'an admin key').describe('The admin key of the session.'),
    key: signInKey('key', 'an API key').describe('The API key of the session.'),
  })
  .meta(f.oneRequired('admin_key', 'key'))

export const sessionSchema = z
  .object({
    object: z.literal('session'),
    expires_at: f.instant(),
    role: z.enum([...PERSON_ROLES, 'api_key']),
    account_id: f.stringOrNull('Null for operators.'),
    person: personSchema.nullable().describe('Null for a session that began with a key.'),
  })
  .meta({
    id: 'session',
    description: 'A dashboard session. It ends when it expires, when its key stops working, or on DELETE.',
  })
export type Session = z.infer<typeof sessionSchema>

export const endedSessionSchema = z.object({
  end_session_url: f.stringOrNull('The page that ends the session at the identity provider too. Null: none.'),
})

const calls = (description: string) => z.number().min(0).meta({ type: 'integer', description })

const cappedKey = z.object({
  id: f.idOf('key'),
  name: z.string(),
  period: z.enum(['month', 'day']).describe('The period of the budget.'),
  percent: f.whole('The part of the budget that is spent, in whole percent.'),
  spent_usd: f.usdAmount('Its spend in the period.'),
  cap_usd: f.usdAmount('The budget.').nullable(),
})

const expiringKey = z.object({ id: f.idOf('key'), name: z.string(), expires_at: f.instant().nullable() })

const named = <Item extends z.ZodType>(item: Item) =>
  z.object({
    count: f.whole(),
    data: z.array(item).describe(`At most ${NAMED_KEYS_MAX}, the most urgent first.`),
  })

export const overviewSchema = z
  .object({
    object: z.literal('overview'),
    month: f.string('Such as `2026-11`, in UTC.'),
    requests: calls('Calls of the month that were settled.'),
    cost_usd: f.usdAmount('The cost of the calls of the month.'),
    list_cost_usd: f.usdAmount('The cost of the calls of the month at list price.'),
    savings_usd: f.usdAmount('List cost minus cost.'),
    credited_usd: f.usdAmount('Credited back for the calls of the month; `cost_usd` still includes it.'),
    balance: balanceSchema,
    version: f.string('The version of the gateway.'),
    store: z.enum(['sqlite', 'postgres']),
    simulator: f.flag('Whether the built-in simulator is the upstream.'),
    calls_in_flight: f.whole(
      'Calls in flight: for operators all of this node, for other roles those of the account.',
    ),
    calls_waiting: f.whole('Waiting calls on this node.'),
    alert_thresholds_percent: z.array(f.whole()).describe('Percentages of a budget that emit an event.'),
    attention: z
      .object({
        keys_exhausted: named(cappedKey).describe('Usable keys that have spent their budget.'),
        keys_near_cap: named(cappedKey).describe('Usable keys that have spent 80 % of their budget or more.'),
        keys_expiring: named(expiringKey).describe('Keys that expire within seven days.'),
        unpriced_models: z
          .array(z.object({ model: z.string(), requests: calls('Calls of the last seven days.') }))
          .describe('Models of the last seven days with usage that has no price.'),
        refusals: z
          .array(z.object({ code: z.string(), calls: calls('In the last 24 hours.') }))
          .describe('Refused calls of the last 24 hours.'),
        webhooks_failed_deliveries: f.whole('Deliveries that failed in the last 24 hours.'),
        webhooks_disabled: f.whole('Webhooks that were disabled because every delivery failed.'),
      })
      .describe('What needs attention.'),
  })
  .meta({ id: 'overview', description: 'The account at a glance.' })
export type OverviewObject = z.infer<typeof overviewSchema>
