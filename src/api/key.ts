import { z } from 'zod'
import { limits } from '../kernel/limits.ts'
import { BUDGET_MODES, KEY_STATUSES } from '../kernel/vocabulary.ts'
import * as f from './fields.ts'

const MODEL_CHARS_MAX = 256

const capField = (name: string, period: string) =>
  f.budgetField(
    name,
    `Maximum spend of this key and its rotations per ${period}, in US dollars with at ` +
      'most 9 decimals. Null: no budget. 0: every billed call is refused.',
  )

export const keyFields = {
  name: f.textField('name', 120, { blank: false }).describe('The name of the key, for people.'),
  monthly_budget_usd: capField('monthly_budget_usd', 'calendar month (UTC)'),
  daily_budget_usd: capField('daily_budget_usd', 'day (UTC)'),
  requests_per_minute: f
    .wholeField('requests_per_minute', 1, 1_000_000, ', or null')
    .nullable()
    .optional()
    .describe(
      'Maximum admitted calls per clock minute (UTC), over all nodes. Free endpoints do not count. Null: no limit.',
    ),
  budget_mode: z
    .enum(BUDGET_MODES, `budget_mode must be ${BUDGET_MODES.join(' or ')}, or null.`)
    .nullable()
    .optional()
    .describe(
      '`exact`: calls in flight count with their maximum cost, and a new call may wait until some have ended. ' +
        '`settled`: only finished calls count, and calls in flight may exceed the budget. Null: `budgets.mode` of the gateway.',
    ),
  allowed_models: z
    .array(
      f
        .textField('Each of allowed_models', MODEL_CHARS_MAX)
        .refine((entry) => entry !== '*', 'allowed_models must not be `*`; leave it out for all models.')
        .refine(
          (entry) => !/\*./.test(entry),
          'Each of allowed_models must be a model or end in `*`, such as claude-*.',
        ),
      `allowed_models must be null or a list of 1 to ${limits.allowedModelsMax} models.`,
    )
    .min(1, 'allowed_models must not be an empty list; null allows every model.')
    .max(limits.allowedModelsMax, `allowed_models must have at most ${limits.allowedModelsMax} entries.`)
    .refine((names) => new Set(names).size === names.length, 'allowed_models must not name a model twice.')
    .meta({ uniqueItems: true })
    .nullable()
    .optional()
    .describe(
      'The models that this key may call: exact ids, or patterns that end in `*`. Each must match an id or alias of the ' +
        'price book. Null: every model.',
    ),
  log_requests: f.flagField(
    'log_requests',
    'Whether the bodies of calls with this key are stored with their records.',
  ),
  expires_at: f
    .instantField('expires_at')
    .nullable()
    .optional()
    .describe('When the key stops working: a future time in UTC. Null: never.'),
  metadata: f
    .metadataField()
    .optional()
    .describe(
      'Up to 16 pairs of strings, such as {"team": "web"}; names have up to 64 characters, values up to 512. PATCH replaces ' +
        'all of them. Null: none.',
    ),
}

export const newKeyFields = z.strictObject({
  ...keyFields,
  person: z
    .literal('me', 'person must be "me", or left out.')
    .optional()
    .describe(
      '`me`: the key belongs to the person who signed in and draws on the budget of that person. Then only name and ' +
        'expires_at are accepted. Members may leave it out.',
    ),
})
export type OwnKeyFields = z.infer<typeof newKeyFields>

export const keyEditFields = z.strictObject({ ...keyFields, name: keyFields.name.optional() })
export type KeyEditFields = z.infer<typeof keyEditFields>

const YEAR_SECONDS = 31_536_000

export const rotateFields = z.strictObject({
  old_expires_in_seconds: f
    .wholeField('old_expires_in_seconds', 0, YEAR_SECONDS)
    .optional()
    .describe('Ends the old key this many seconds from now, unless it expires earlier. Absent: no change.'),
})

export const keyListQuery = z.strictObject({
  ...f.paging('key'),
  status: f.choiceParameter('status', KEY_STATUSES, 'Only keys with this status.'),
  person: f.personParameter('Only keys of this person.'),
  search: f
    .textField('search', 200)
    .optional()
    .describe(
      'Part of a name (case-insensitive), id, prefix or last four characters. `metadata.team:web` finds the keys ' +
        'whose `metadata` has this pair.',
    ),
})

export const keySchema = z
  .object({
    id: f.idOf('key'),
    object: z.literal('key'),
    account_id: z.string(),
    budget_id: f
      .idOf('budget')
      .describe('The budget of the key: limits, mode and counters. A key and its rotations share it.'),
    person_id: f
      .idOf('person')
      .nullable()
      .describe(
        'The person whose key it is. All keys of a person share one budget. Null: the key of a service.',
      ),
    name: z.string(),
    prefix: f.string('The first characters of the key, to identify it in lists.'),
    last4: f.string('The last four characters of the key.'),
    status: z.enum(KEY_STATUSES).describe('Revoked and expired are final.'),
    monthly_budget_usd: f.usdAmount('The budget of each month. Null: none.').nullable(),
    daily_budget_usd: f.usdAmount('The budget of each day. Null: none.').nullable(),
    requests_per_minute: f.whole().nullable().describe('Maximum calls per minute. Null: no limit.'),
    budget_mode: z.enum(BUDGET_MODES).nullable().describe('Null: `budgets.mode` of the gateway.'),
    month_spend_usd: f.usdAmount('The cost of the calls admitted in this month (UTC).'),
    month_held_usd: f.usdAmount('The amount that calls in flight of this month have reserved.'),
    month_waiting: f.whole('Calls that wait for a budget or for credit, on this node.'),
    month_lost_usd: f.usdAmount('Maximum list cost of the calls of this month that were interrupted.'),
    day_spend_usd: f.usdAmount('The cost of the calls admitted on this day (UTC).'),
    budget_resets_at: f.instant().describe('When the next month begins.'),
    allowed_models: z
      .array(z.string())
      .nullable()
      .describe('The models that this key may call; null: every model.'),
    log_requests: z.boolean(),
    expires_at: f.instant().nullable(),
    created_at: f.instant(),
    revoked_at: f.instant().nullable(),
    last_used_at: f
      .instant()
      .nullable()
      .describe('The last call with this key. Requests to the gateway itself do not count.'),
    rotated_from: f.idOf('key').nullable().describe('The key that this one was rotated from.'),
    metadata: f.metadata(),
  })
  .meta({ id: 'key', description: 'An API key and its limits. The secret is not part of it.' })
export type Key = z.infer<typeof keySchema>

export const createdKeySchema = keySchema
  .extend({
    key: f.optionalText('The secret, shown once: a replay with the same Idempotency-Key omits it.'),
  })
  .meta({ id: 'created_key', description: 'A new API key with its secret.' })
export type CreatedKey = z.infer<typeof createdKeySchema>
