import { accountObject, changesOf, memberLimitsObject } from '../../api/objects.ts'
import type { Actor } from '../../kernel/actor.ts'
import type { MemberLimits, MemberLimitsStep } from '../../keys/person-store.ts'
import { present, recordOf, text } from '../rows.ts'
import { getAccount } from './accounts.ts'
import { recordEvent } from './events.ts'
import { isUsable, readMemberLimits } from './member-limits.ts'
import { atomic, currentTime, type Operation } from './operation.ts'
import { changeLimits, lockPerson } from './people.ts'
import { and, FOR_UPDATE, onPostgres, type Sql, sql } from './sql.ts'
import { insertInto, updateRow } from './write-rows.ts'

/** Changes of the limits that an account gives to its people. */

const updateMemberLimits = atomic(function* (
  accountId: string,
  changes: Partial<MemberLimits>,
  actor: Actor,
  atMs: number,
): Operation<MemberLimits> {
  // There may be no row yet, so the account is the lock.
  yield onPostgres(sql`SELECT id FROM account WHERE id = ${accountId} ${FOR_UPDATE}`)
  const nowMs = yield* currentTime(atMs)
  const before = yield* readMemberLimits(accountId)
  const after = { ...before, ...changes }
  yield sql`DELETE FROM members WHERE account_id = ${accountId}`
  yield insertInto('members', [{ ...after, accountId }])
  const changed = Object.entries(changesOf(memberLimitsObject(before), memberLimitsObject(after)) ?? {})
  if (changed.length > 0) {
    const account = accountObject(present(yield* getAccount(accountId, nowMs)), nowMs)
    const named = Object.fromEntries(changed.map(([field, change]) => [`members.${field}`, change]))
    yield* recordEvent(
      { accountId, type: 'account.updated', actor, data: { account, changes: named } },
      nowMs,
    )
  }
  return after
})

/** People per step. Admissions wait while a step runs. */
const PEOPLE_PER_STEP = 20

/** Sets these limits for the next people of an account and for their usable keys. Returns where to continue; null: done. */
const applyMemberLimits = atomic(function* (step: MemberLimitsStep): Operation<string | null> {
  const { accountId, changes, after, actor, atMs } = step
  const people = yield sql`
    SELECT id FROM person WHERE account_id = ${accountId} ${after === null ? sql`` : sql`AND id > ${after}`}
    ORDER BY id LIMIT ${PEOPLE_PER_STEP}`
  for (const { id } of people.map(recordOf<{ id: string }>)) {
    const locked = yield* lockPerson(id, atMs)
    // The person may have been moved meanwhile.
    if (locked?.person.accountId !== accountId) continue
    const ofKeys = yield* changeKeys(id, changes, locked.nowMs)
    yield* changeLimits(locked.person, ofBudget(changes), actor, locked.nowMs, ofKeys)
  }
  const last = people[PEOPLE_PER_STEP - 1]
  return last === undefined ? null : text(last, 'id')
})

function ofBudget({ monthlyBudgetNanos, dailyBudgetNanos, requestsPerMinute }: Partial<MemberLimits>) {
  const limits = { monthlyBudgetNanos, dailyBudgetNanos, requestsPerMinute }
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined))
}

type KeyLimits = Partial<Pick<MemberLimits, 'allowedModels' | 'logRequests'>>

/** Returns the changes for the event of the person. `old` is what the newest of the keys had. */
function* changeKeys(
  personId: string,
  { allowedModels, logRequests }: KeyLimits,
  nowMs: number,
): Operation<object> {
  if (allowedModels === undefined && logRequests === undefined) return {}
  const ofPerson: Sql = and([sql`person_id = ${personId}`, isUsable(nowMs)])
  const keys =
    yield sql`SELECT id, allowed_models, log_requests FROM api_key WHERE ${ofPerson} ORDER BY id DESC`
  for (const key of keys) yield updateRow('api_key', text(key, 'id'), { allowedModels, logRequests })
  const [newest] = keys.map(recordOf<Required<KeyLimits>>)
  if (newest === undefined) return {}
  const before = { allowed_models: newest.allowedModels, log_requests: newest.logRequests }
  const after = {
    ...(allowedModels === undefined ? {} : { allowed_models: allowedModels }),
    ...(logRequests === undefined ? {} : { log_requests: logRequests }),
  }
  return changesOf(before, after) ?? {}
}

export const MEMBERS = {
  brief: { readMemberLimits, updateMemberLimits, applyMemberLimits },
  reads: {},
}
