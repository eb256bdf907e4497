import { memberLimitsObject } from '../api/objects.ts'
import { type MemberLimitFields, memberEditFields } from '../api/person.ts'
import type { MemberLimits } from '../keys/person-store.ts'
import { checkAllowedModels } from './keys.ts'
import { defineRoute, withoutUndefined } from './route.ts'

/** What an account gives to its people. */

function limitChanges(fields: MemberLimitFields): Partial<MemberLimits> {
  return withoutUndefined({
    keysMax: fields.keys_max,
    keyDaysMax: fields.key_days_max,
    monthlyBudgetNanos: fields.monthly_budget_usd,
    dailyBudgetNanos: fields.daily_budget_usd,
    requestsPerMinute: fields.requests_per_minute,
    allowedModels: fields.allowed_models,
    logRequests: fields.log_requests,
  })
}

export const getMembers = defineRoute({
  summary: 'Show what a new person of the account gets',
  handle: async ({ accountId }, { store }) => memberLimitsObject(await store.readMemberLimits(accountId)),
})

export const updateMembers = defineRoute({
  summary: 'Change what a new person of the account gets',
  description:
    'Changes the fields that are sent and leaves the others. With `"apply": "all"` the fields of this request are also set ' +
    'on the existing people and their usable keys, a few people at a time, with one event for each person who changed.',
  body: memberEditFields,
  async handle({ accountId, actor, body, atMs }, management) {
    const { store } = management
    const wrong = checkAllowedModels(body, atMs, management)
    if (wrong !== null) return wrong
    const { apply, ...fields } = body
    const changes = limitChanges(fields)
    const limits = await store.updateMemberLimits(accountId, changes, actor, atMs)
    if (apply === 'all') {
      let after: string | null = null
      do after = await store.applyMemberLimits({ accountId, changes, after, actor, atMs })
      while (after !== null)
      management.recheckWaitingCalls()
    }
    return memberLimitsObject(limits)
  },
})
