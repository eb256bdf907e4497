import { SYSTEM } from '../../kernel/actor.ts'
import type { PersonRole } from '../../kernel/vocabulary.ts'
import type { ClaimedCheck, PersonToCheck } from '../../keys/person-store.ts'
import { present, recordOf, text } from '../rows.ts'
import { nextCheckMs } from './check-time.ts'
import { takeLease } from './lease.ts'
import { isUsable } from './member-limits.ts'
import { atomic, currentTime, type Operation } from './operation.ts'
import { endAccess, lockPerson, readPerson, recordUpdate, setStatus } from './people.ts'
import { FOR_DELETE, FOR_UPDATE, sql } from './sql.ts'
import { updateRow } from './write-rows.ts'

/** Asking the identity provider about people again. Whoever claims a person asks, so that no other node does. */

const TO_CHECK = sql`
  SELECT id, account_id, email, role, issuer, subject, refresh_token FROM person
  WHERE refresh_token IS NOT NULL AND status = 'active'`

/** Claims a person whom the provider was not asked about since `sinceMs`; null: there is nothing to ask. */
const claimCheck = atomic(function* (id: string, sinceMs: number, atMs: number) {
  const [row] = yield sql`${TO_CHECK} AND id = ${id} AND checked_at_ms <= ${sinceMs} ${FOR_UPDATE}`
  if (row === undefined) return null
  yield* markAsked(id, yield* currentTime(atMs))
  return recordOf<PersonToCheck>(row)
})

/** People who are read at once to find one with usable keys. */
const DUE_MAX = 100

const LEASE = 'checks_people'

/** Claims the next person with usable keys whose daily check is due. One node does this at a time. */
const claimDueCheck = atomic(function* (node: string, atMs: number): Operation<ClaimedCheck> {
  const nowMs = yield* currentTime(atMs)
  const isDue = sql`check_due_ms <= ${nowMs} ORDER BY check_due_ms, id`
  // The lease is a write, which an idle gateway should not make.
  if ((yield sql`${TO_CHECK} AND ${isDue} LIMIT 1`).length === 0) return { kind: 'nobody' }
  if (!(yield* takeLease(LEASE, node, nowMs))) return { kind: 'nobody' }
  const due = yield sql`${TO_CHECK} AND ${isDue} LIMIT ${DUE_MAX} ${FOR_DELETE}`
  for (const row of due) {
    const id = text(row, 'id')
    const keys = yield sql`SELECT id FROM api_key WHERE person_id = ${id} AND ${isUsable(nowMs)} LIMIT 1`
    if (keys.length > 0) {
      yield* markAsked(id, nowMs)
      return { kind: 'person', person: recordOf<PersonToCheck>(row) }
    }
    yield updateRow('person', id, { checkDueMs: nextCheckMs(id, nowMs) })
  }
  return { kind: 'keyless' }
})

/** Without an answer, the person is due again after this time: a leaver must not keep working for a day. */
const RETRY_MS = 3_600_000

function* markAsked(id: string, nowMs: number): Operation<void> {
  yield updateRow('person', id, { checkedAtMs: nowMs, checkDueMs: nowMs + RETRY_MS })
}

/** Null: the person was blocked or moved, or has signed in, since the provider was asked. */
function* lockAsked({ id, refreshToken }: PersonToCheck, atMs: number) {
  const locked = yield* lockPerson(id, atMs)
  const asked: readonly unknown[] =
    yield sql`SELECT id FROM person WHERE id = ${id} AND refresh_token = ${refreshToken}`
  return locked?.person.status === 'active' && asked.length > 0 ? locked : null
}

/** The provider no longer knows the person, or the rules no longer let the person in. */
const blockLeaver = atomic(function* (asked: PersonToCheck, atMs: number): Operation<boolean> {
  const locked = yield* lockAsked(asked, atMs)
  if (locked === null) return false
  yield* endAccess(locked.person, SYSTEM, locked.nowMs)
  yield* setStatus(locked.person, 'blocked', SYSTEM, locked.nowMs)
  return true
})

/**
 * The provider still knows the person, who is due again tomorrow. All sessions have the role that the rules give now. The
 * provider may give a new refresh token for the old one; null: it did not.
 */
const confirmPerson = atomic(function* (
  asked: PersonToCheck,
  role: PersonRole,
  refreshToken: Uint8Array | null,
  atMs: number,
): Operation<void> {
  const locked = yield* lockAsked(asked, atMs)
  if (locked === null) return
  const { person: before, nowMs } = locked
  const checkDueMs = nextCheckMs(before.id, nowMs)
  yield updateRow('person', before.id, { role, checkDueMs, refreshToken: refreshToken ?? undefined })
  yield* recordUpdate(before, present(yield* readPerson(before.id, nowMs)), SYSTEM, nowMs)
})

export const PERSON_CHECKS = {
  brief: { claimCheck, claimDueCheck, blockLeaver, confirmPerson },
  reads: {},
}
