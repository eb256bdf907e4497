import { limits } from '../../kernel/limits.ts'
import { MEMBER_LIMITS, type MemberLimits, type NoNewKey } from '../../keys/person-store.ts'
import { startOfDayMs } from '../../ledger/calendar.ts'
import { number, present, recordOf } from '../rows.ts'
import type { Operation } from './operation.ts'
import { type Sql, sql } from './sql.ts'

/** The limits of an account for its people: how many keys each may have, and what a key gets. */

export function* readMemberLimits(accountId: string): Operation<MemberLimits> {
  const [row] = yield sql`
    SELECT keys_max, key_days_max, monthly_budget_nanos, daily_budget_nanos, requests_per_minute, allowed_models,
      log_requests FROM members WHERE account_id = ${accountId}`
  return row === undefined ? MEMBER_LIMITS : recordOf<MemberLimits>(row)
}

/** The condition of a usable key. A device is usable as long as it can be refreshed. */
export function isUsable(nowMs: number): Sql {
  return sql`revoked_at_ms IS NULL
    AND (expires_at_ms IS NULL OR expires_at_ms > ${nowMs} OR device_until_ms > ${nowMs})`
}

interface KeyOwner {
  readonly personId: string
  readonly accountId: string
}

/** Why the person gets no further key; null if the person does. The person must be locked. Devices do not count. */
export function* refuseNewKey(
  { personId, accountId }: KeyOwner,
  isReplacing: boolean,
  nowMs: number,
): Operation<Extract<NoNewKey, { kind: 'too_many_keys' | 'too_many_today' }> | null> {
  const { keysMax } = yield* readMemberLimits(accountId)
  const today = startOfDayMs(new Date(nowMs).toISOString().slice(0, 10))
  const [row] = yield sql`
    SELECT count(CASE WHEN ${isUsable(nowMs)} THEN 1 END) AS usable,
      count(CASE WHEN created_at_ms >= ${today} THEN 1 END) AS today
    FROM api_key WHERE person_id = ${personId} AND device_until_ms IS NULL`
  const usable = number(present(row), 'usable') - (isReplacing ? 1 : 0)
  if (usable >= keysMax) return { kind: 'too_many_keys', keysMax }
  if (number(present(row), 'today') < limits.personKeysPerDayMax) return null
  return { kind: 'too_many_today', retryAfterSeconds: Math.ceil((today + DAY_MS - nowMs) / 1_000) }
}

export const DAY_MS = 24 * 60 * 60 * 1000
