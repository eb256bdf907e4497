import { z } from 'zod'
import { BUDGET_MODES, PERSON_ROLES, PERSON_STATUSES } from '../kernel/vocabulary.ts'
import * as f from './fields.ts'
import { keyFields } from './key.ts'

const { monthly_budget_usd, daily_budget_usd, requests_per_minute, budget_mode } = keyFields
const { allowed_models, log_requests } = keyFields

export const personEditFields = z.strictObject({
  monthly_budget_usd,
  daily_budget_usd,
  requests_per_minute,
  budget_mode,
})

export const personMoveFields = z.strictObject({
  account: z
    .string('account must be the id of an account.')
    .min(1, 'account must be the id of an account.')
    .describe('The id of the account that the person moves to.'),
})

export const personListQuery = z.strictObject({
  ...f.paging('person'),
  status: f.choiceParameter('status', PERSON_STATUSES, 'Only people with this status.'),
  search: f.textField('search', 200).optional().describe('Part of a name or email, or of an id.'),
})

export const personSchema = z
  .object({
    id: f.idOf('person'),
    object: z.literal('person'),
    account_id: z.string(),
    email: f.string('As the identity provider said at the last sign-in, like name and role.'),
    name: z.string(),
    role: z.enum(PERSON_ROLES).describe('A member manages only their own keys.'),
    status: z.enum(PERSON_STATUSES).describe('A blocked person has no usable key and cannot sign in.'),
    budget_id: f.idOf('budget').describe('The budget that all keys of the person share.'),
    monthly_budget_usd: f.usdAmount('The budget of each month. Null: none.').nullable(),
    daily_budget_usd: f.usdAmount('The budget of each day. Null: none.').nullable(),
    requests_per_minute: f.whole().nullable().describe('Maximum calls per minute. Null: no limit.'),
    budget_mode: z.enum(BUDGET_MODES).nullable().describe('Null: `budgets.mode` of the gateway.'),
    month_spend_usd: f.usdAmount('The cost of the calls admitted in this month (UTC), over all keys.'),
    month_held_usd: f.usdAmount('The amount that calls in flight of this month have reserved.'),
    day_spend_usd: f.usdAmount('The cost of the calls admitted on this day (UTC).'),
    budget_resets_at: f.instant().describe('When the next month begins.'),
    keys: f.whole('Usable keys, signed-in devices included.'),
    created_at: f.instant(),
    last_seen_at: f.instant().describe('The last sign-in.'),
  })
  .meta({ id: 'person', description: 'A person who signs in at the identity provider.' })
export type Person = z.infer<typeof personSchema>

const limitFields = {
  keys_max: f
    .wholeField('keys_max', 0, 1_000)
    .optional()
    .describe('Maximum usable keys of a person. Signed-in devices do not count.'),
  key_days_max: f
    .wholeField('key_days_max', 1, 400)
    .optional()
    .describe('After so many days a key of a person expires, unless an earlier time was asked for.'),
  monthly_budget_usd,
  daily_budget_usd,
  requests_per_minute,
  allowed_models,
  log_requests,
}

export const memberLimitFields = z.strictObject(limitFields)
export type MemberLimitFields = z.infer<typeof memberLimitFields>

export const memberEditFields = memberLimitFields.extend({
  apply: z
    .literal('all', 'apply must be "all", or left out.')
    .optional()
    .describe(
      '`all`: also sets these fields on the existing people and their usable keys. Never shortens an expiry or revokes a key.',
    ),
})

export const membersSchema = z
  .object({
    object: z.literal('members'),
    keys_max: f.whole('Maximum usable keys of a person. Signed-in devices do not count.'),
    key_days_max: f.whole('The longest life of a key in days, which is also the default.'),
    monthly_budget_usd: f.usdAmount('The budget of a new person per month. Null: none.').nullable(),
    daily_budget_usd: f.usdAmount('The budget of a new person per day. Null: none.').nullable(),
    requests_per_minute: f.whole().nullable().describe('Of a new person, over all keys. Null: no limit.'),
    allowed_models: z.array(z.string()).nullable().describe('Of a new key. Null: every model.'),
    log_requests: f.flag('Of a new key.'),
  })
  .meta({ id: 'members', description: 'What a new person of an account gets, and each new key of a person.' })
export type Members = z.infer<typeof membersSchema>
