import type { Actor } from '../../kernel/actor.ts'
import type { Idempotency } from '../../kernel/idempotency.ts'
import { NO_LIMITS } from '../../keys/key-store.ts'
import type { NewPersonKey, NewPersonSession } from '../../keys/person-store.ts'
import { findSession } from './key-lookup.ts'
import { getKey, insertKey, recordKeyEvent } from './keys.ts'
import { DAY_MS, readMemberLimits, refuseNewKey } from './member-limits.ts'
import { atomic } from './operation.ts'
import { lockPerson } from './people.ts'
import { runOnce } from './settings.ts'
import { now, sql } from './sql.ts'
import { insertInto } from './write-rows.ts'

/** New keys and sessions of people. The person's status is checked under the lock that blocking takes too. */

const createPersonKey = atomic(function* (key: NewPersonKey, idempotency: Idempotency | null, actor: Actor) {
  const { id, accountId, personId, createdAtMs } = key
  const readNow = (known: string) => getKey(accountId, known, createdAtMs)
  return yield* runOnce(idempotency, id, readNow, function* () {
    const locked = yield* lockPerson(personId, createdAtMs)
    const { status, accountId: ownAccountId, budgetId = '' } = locked?.person ?? {}
    if (locked === null || status !== 'active' || ownAccountId !== accountId)
      return { kind: 'not_active' } as const
    const { nowMs } = locked
    const { keyDaysMax, allowedModels, logRequests } = yield* readMemberLimits(accountId)
    const latestMs = nowMs + keyDaysMax * DAY_MS
    const expiresAtMs = key.expiresAtMs ?? latestMs
    if (expiresAtMs <= nowMs) return { kind: 'already_expired' } as const
    if (expiresAtMs > latestMs) return { kind: 'expires_too_late', latestMs } as const
    const refusal = yield* refuseNewKey(key, false, nowMs)
    if (refusal !== null) return refusal
    const value = yield* insertKey({
      ...NO_LIMITS,
      ...{ allowedModels, logRequests },
      ...{ ...key, budgetId, expiresAtMs },
    })
    yield* recordKeyEvent('key.created', value, actor, createdAtMs)
    return { kind: 'done', value } as const
  })
})

/** Null: the person is blocked or does not exist. */
const openPersonSession = atomic(function* (session: NewPersonSession) {
  const { digest, personId, atMs, lifeMs, sessionsMax } = session
  if ((yield* lockPerson(personId, atMs))?.person.status !== 'active') return null
  yield insertInto('session', [{ digest, personId, expiresAtMs: sql`${now(atMs)} + ${lifeMs}` }])
  yield sql`DELETE FROM session WHERE expires_at_ms <= (SELECT ${now(atMs)})`
  yield sql`
    DELETE FROM session WHERE digest IN (
      SELECT digest FROM session WHERE person_id = ${personId} ORDER BY expires_at_ms DESC LIMIT 100 OFFSET ${sessionsMax})`
  return yield* findSession(digest, atMs)
})

export const PERSON_KEYS = { brief: { createPersonKey, openPersonSession }, reads: {} }
