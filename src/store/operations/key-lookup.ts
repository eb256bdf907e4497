import type { KeyLookup, PersonCaller } from '../../keys/credential.ts'
import {
  type AdminKeyRecord,
  type KeyRecord,
  keyStatus,
  type NewSession,
  type SessionRecord,
} from '../../keys/key-store.ts'
import type { PersonRecord } from '../../keys/person-store.ts'
import { dayOf } from '../../ledger/calendar.ts'
import { number, recordOf, text, textOrNull } from '../rows.ts'
import {
  ACCOUNT_COLUMNS,
  accountCeilings,
  accountState,
  BUDGET_COLUMNS,
  budgetState,
  keyCeilings,
  upstreamOf,
} from './money-rows.ts'
import { atomic, type Operation } from './operation.ts'
import { now, raw, type Sql, sql } from './sql.ts'
import { insertInto } from './write-rows.ts'

/** How exact the last use of an admin key is. More often, each request would wait for the disk. */
const USE_EVERY_MS = 60_000

/** Records the use of an admin key. The uses of an API key are its calls. */
function* lookUpKey(digest: Uint8Array, atMs: number): Operation<KeyLookup> {
  const caller = yield* findCaller(sql`digest = ${digest}`, atMs)
  if (caller.kind === 'admin_key')
    yield sql`
      UPDATE admin_key SET last_used_at_ms = ${now(atMs)}
      WHERE id = ${caller.keyId} AND coalesce(last_used_at_ms, 0) <= ${now(atMs)} - ${USE_EVERY_MS}`
  return caller
}

function* mayCall(keyId: string, atMs: number): Operation<boolean> {
  const rows = yield sql`
    SELECT k.id FROM api_key k JOIN account a ON a.id = k.account_id
    WHERE k.id = ${keyId} AND k.revoked_at_ms IS NULL AND a.status = 'active'
      AND (k.expires_at_ms IS NULL OR k.expires_at_ms > (SELECT ${now(atMs)}))`
  return rows.length > 0
}

function* findCaller(where: Sql, atMs: number): Operation<KeyLookup> {
  const [key] = yield sql`
    SELECT id, account_id, budget_id, person_id, name, expires_at_ms, revoked_at_ms, ${now(atMs)} AS now_ms
    FROM api_key WHERE ${where}`
  return key === undefined ? yield* lookUpAdminKey(where) : yield* apiCaller(recordOf(key))
}

function* apiCaller(key: KeyRecord & { readonly nowMs: number }): Operation<KeyLookup> {
  const { id: keyId, accountId, personId, name, nowMs } = key
  const status = keyStatus(key, nowMs)
  if (status !== 'usable') return { kind: 'refused', reason: `${status}_key` }
  const [budget] = yield sql`SELECT ${raw(BUDGET_COLUMNS)} FROM budget b WHERE b.id = ${key.budgetId}`
  const [account] = yield sql`SELECT ${raw(ACCOUNT_COLUMNS)} FROM account a WHERE a.id = ${accountId}`
  if (budget === undefined || account === undefined) return { kind: 'refused', reason: 'unknown_key' }
  const state = accountState(account)
  const day = dayOf(nowMs)
  return {
    kind: 'api_key',
    keyId,
    personId,
    name,
    accountId,
    funds: {
      keyCeilings: keyCeilings(budgetState(budget), day),
      accountCeilings: accountCeilings(state, day),
      creditEnforced: state.creditEnforced,
      balanceNanos: state.creditedNanos - state.chargedNanos,
    },
    isSuspended: state.status === 'suspended',
    hasOthers: state.hasOthers,
    upstreams: { messages: upstreamOf(state, 'messages'), chat: upstreamOf(state, 'chat') },
  }
}

function* lookUpAdminKey(where: Sql): Operation<KeyLookup> {
  const [row] = yield sql`SELECT id, role, account_id, name, revoked_at_ms FROM admin_key WHERE ${where}`
  if (row === undefined) return { kind: 'refused', reason: 'unknown_key' }
  const { id: keyId, role, accountId, name, revokedAtMs } = recordOf<AdminKeyRecord>(row)
  if (revokedAtMs !== null) return { kind: 'refused', reason: 'revoked_key' }
  return { kind: 'admin_key', keyId, name, role, accountId }
}

const openSession = atomic(function* (session: NewSession) {
  const { digest, keyId, atMs, lifeMs, sessionsMax } = session
  if ((yield* findCaller(sql`id = ${keyId}`, atMs)).kind === 'refused') return null
  yield insertInto('session', [{ digest, keyId, expiresAtMs: sql`${now(atMs)} + ${lifeMs}` }])
  // Delete expired sessions whenever a session is opened, so that their number is bounded.
  yield sql`DELETE FROM session WHERE expires_at_ms <= (SELECT ${now(atMs)})`
  yield sql`
    DELETE FROM session WHERE digest IN (
      SELECT digest FROM session WHERE key_id = ${keyId} ORDER BY expires_at_ms DESC LIMIT 100 OFFSET ${sessionsMax})`
  return yield* findSession(digest, atMs)
})

export function* findSession(digest: Uint8Array, atMs: number): Operation<SessionRecord | null> {
  const [row] = yield sql`
    SELECT key_id, person_id, expires_at_ms FROM session
    WHERE digest = ${digest} AND expires_at_ms > (SELECT ${now(atMs)})`
  if (row === undefined) return null
  const personId = textOrNull(row, 'person_id')
  const caller =
    personId === null
      ? yield* findCaller(sql`id = ${text(row, 'key_id')}`, atMs)
      : yield* findPersonCaller(personId)
  return caller.kind === 'refused' ? null : { caller, expiresAtMs: number(row, 'expires_at_ms') }
}

/** The role is that of the person now, not at the sign-in. */
function* findPersonCaller(personId: string): Operation<PersonCaller | { readonly kind: 'refused' }> {
  const [row] = yield sql`
    SELECT account_id, name, email, role FROM person WHERE id = ${personId} AND status = 'active'`
  if (row === undefined) return { kind: 'refused' }
  const { accountId, name, email, role } = recordOf<PersonRecord>(row)
  const isOperator = role === 'operator'
  return {
    kind: 'person',
    personId,
    name: name === '' ? email : name,
    role,
    accountId: isOperator ? null : accountId,
  }
}

function* endSession(digest: Uint8Array): Operation<void> {
  yield sql`DELETE FROM session WHERE digest = ${digest}`
}

/** A bootstrap key may become usable again; its sessions from before the revocation must not. */
export function* endSessionsOf(keyId: string): Operation<void> {
  yield sql`DELETE FROM session WHERE key_id = ${keyId}`
}

export const LOOKUPS = { brief: { lookUpKey, mayCall, openSession, findSession, endSession }, reads: {} }
