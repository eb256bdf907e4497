import type { KeyChanges, KeyRecord, NewKey } from '../../keys/key-store.ts'
import type { Store } from '../store.ts'
import { toKeptJson } from './any-text.ts'
import { Bound } from './bound.ts'
import type { Database } from './database.ts'
import {
  KEY_COLUMNS,
  keyRecord,
  keySource,
  lockedKeySource,
  OWN_KEY_COLUMNS,
  statusSql,
} from './key-record.ts'
import { CLAIMED_COLUMNS, claimName, findRepeated, repeatedIn } from './once.ts'
import { bool, present, type Row } from './rows.ts'
import { nowSql, type StoreClock } from './store-clock.ts'

type KeyOperations = Pick<Store, 'createKey' | 'getKey' | 'updateKey' | 'revokeKey' | 'rotateKey'>

const NEW_KEY_COLUMNS = `id, account_id, name, name_upper, digest, prefix, last4, created_at_ms, rotated_from,
  monthly_budget_nanos, allowed_models, log_requests, expires_at_ms`

/** A key that was made in this statement has no month yet. */
const CREATED = `SELECT ${OWN_KEY_COLUMNS}, 0::bigint AS spent_nanos, 0::bigint AS held_nanos, 0::bigint AS lost_nanos FROM created`

/**
 * API keys: every statement that changes one, but for the mark of its use, is in this file. Each command is one
 * statement, so that a node that is paused in the middle holds no lock that admissions wait for. What a decision
 * depends on is read under the lock, and the time after it.
 */
export function keyOperations(db: Database, clock: StoreClock): KeyOperations {
  async function getKey(accountId: string, id: string, atMs: number): Promise<KeyRecord | null> {
    const bound = new Bound()
    const month = `(SELECT month_of(${nowSql(clock, bound, atMs)}))`
    const [row] = await db.query(
      `SELECT ${KEY_COLUMNS} FROM ${keySource('api_key', month)}
       WHERE account_id = ${bound.as('text', accountId)} AND id = ${bound.as('text', id)}`,
      bound.values,
    )
    return row === undefined ? null : keyRecord(row)
  }

  /** The key under its lock, as `looked`: its status and the instant it is of are two more columns. */
  function lookAt(bound: Bound, accountId: string, id: string, atMs: number): string {
    return `
      held AS MATERIALIZED (
        SELECT * FROM api_key WHERE account_id = ${bound.as('text', accountId)} AND id = ${bound.as('text', id)}
        FOR NO KEY UPDATE
      ), dated AS MATERIALIZED (SELECT held.*, ${nowSql(clock, bound, atMs)} AS at_ms FROM held),
      looked AS MATERIALIZED (SELECT dated.*, ${statusSql('at_ms')} AS status FROM dated)`
  }

  /** Changes the key if it is usable. */
  async function change(
    bound: Bound,
    set: string,
    accountId: string,
    id: string,
    atMs: number,
  ): Promise<Row | null> {
    const [row] = await db.query(
      `WITH ${lookAt(bound, accountId, id, atMs)}, changed AS (
         UPDATE api_key SET ${set} FROM looked WHERE api_key.id = looked.id AND status = 'usable'
         RETURNING api_key.*, looked.at_ms
       ), shown AS (
         SELECT true AS is_changed, ${OWN_KEY_COLUMNS}, at_ms FROM changed
         UNION ALL
         SELECT false, ${OWN_KEY_COLUMNS}, at_ms FROM looked WHERE status <> 'usable'
       )
       SELECT is_changed, ${KEY_COLUMNS} FROM ${lockedKeySource('shown', 'month_of(k.at_ms)')}`,
      bound.values,
    )
    return row ?? null
  }

  return {
    async createKey(key, once) {
      const bound = new Bound()
      const lasting = `WHERE coalesce(${bound.integer(key.expiresAtMs)} > ${nowSql(clock, bound, key.createdAtMs)}, true)`
      const [row] = await db.query(
        `WITH ${claimName(bound, once, key.id, clock, lasting)}, created AS (
           INSERT INTO api_key (${NEW_KEY_COLUMNS}) SELECT ${newKey(bound, key)} FROM claimed WHERE mine
           RETURNING *
         )
         SELECT ${CLAIMED_COLUMNS}, shown.* FROM claimed LEFT JOIN (${CREATED}) AS shown ON true`,
        bound.values,
      )
      const readNow = (id: string) => getKey(key.accountId, id, once?.atMs ?? key.createdAtMs)
      if (row === undefined) {
        // A repeated command must find its key even if that has expired since.
        const repeated = once === null ? null : await findRepeated(db, once, clock, new Bound(), readNow)
        return repeated ?? { kind: 'born_expired' }
      }
      return repeatedIn(row, once, readNow) ?? { kind: 'done', value: keyRecord(row) }
    },

    getKey,

    async updateKey(accountId, id, changes, atMs) {
      const bound = new Bound()
      const row = await change(bound, changesSql(bound, changes), accountId, id, atMs)
      if (row === null) return { kind: 'none' }
      return { kind: bool(row, 'is_changed') ? 'changed' : 'final', key: keyRecord(row) }
    },

    async revokeKey(accountId, id, atMs) {
      const row = await change(new Bound(), 'revoked_at_ms = looked.at_ms', accountId, id, atMs)
      return row === null ? null : keyRecord(row)
    },

    async rotateKey(accountId, id, successor, once) {
      const { createdAtMs, oldExpiresAtMs } = successor
      const bound = new Bound()
      const usable = "FROM looked WHERE status = 'usable'"
      // From the instant at which the database looks, not from that of the node that asks.
      const oldEnd = `looked.at_ms + ${bound.integer(oldExpiresAtMs === null ? null : oldExpiresAtMs - createdAtMs)}`
      const row = await one(
        `WITH ${lookAt(bound, accountId, id, createdAtMs)},
         ${claimName(bound, once, successor.id, clock, usable)}, created AS (
           INSERT INTO api_key (${NEW_KEY_COLUMNS})
           SELECT ${bound.as('text', successor.id)}, account_id, name, name_upper,
             ${bound.as('bytea', successor.digest)}, ${bound.as('text', successor.prefix)},
             ${bound.as('text', successor.last4)}, ${bound.integer(createdAtMs)}, id, monthly_budget_nanos,
             allowed_models, log_requests, expires_at_ms
           FROM looked, claimed WHERE mine
           RETURNING *
         ), ended AS (
           UPDATE api_key SET expires_at_ms = ${oldEnd} FROM looked, claimed
           WHERE mine AND api_key.id = looked.id
             AND coalesce(${oldEnd} < coalesce(looked.expires_at_ms, ${oldEnd} + 1), false)
         ), final AS (
           SELECT ${KEY_COLUMNS} FROM ${lockedKeySource('looked', 'month_of(k.at_ms)')} WHERE status <> 'usable'
         )
         SELECT ${CLAIMED_COLUMNS}, shown.*
         FROM (SELECT) AS one LEFT JOIN claimed ON true
           LEFT JOIN (${CREATED} UNION ALL SELECT * FROM final) AS shown ON true`,
        bound,
      )
      const readNow = (newId: string) => getKey(accountId, newId, once?.atMs ?? createdAtMs)
      if (row['once_mine'] === null) {
        // A repeated rotation must find its new key even if the old one has ended since, by the rotation itself even.
        const repeated = once === null ? null : await findRepeated(db, once, clock, new Bound(), readNow)
        if (repeated !== null) return repeated
        return row['id'] === null ? { kind: 'none' } : { kind: 'final', key: keyRecord(row) }
      }
      return repeatedIn(row, once, readNow) ?? { kind: 'done', value: keyRecord(row) }
    },
  }

  async function one(text: string, bound: Bound): Promise<Row> {
    const [row] = await db.query(text, bound.values)
    return present(row)
  }
}

function newKey(bound: Bound, key: NewKey): string {
  return [
    bound.as('text', key.id),
    bound.as('text', key.accountId),
    bound.as('text', key.name),
    bound.as('text', key.name.toUpperCase()),
    bound.as('bytea', key.digest),
    bound.as('text', key.prefix),
    bound.as('text', key.last4),
    bound.integer(key.createdAtMs),
    'NULL::text',
    bound.as('bigint', key.monthlyBudgetNanos),
    models(bound, key.allowedModels),
    bound.as('boolean', key.logRequests),
    bound.integer(key.expiresAtMs),
  ].join(', ')
}

/** What is absent stays. */
function changesSql(bound: Bound, changes: KeyChanges): string {
  const { name, monthlyBudgetNanos, allowedModels, logRequests, expiresAtMs } = changes
  const set: string[] = []
  if (name !== undefined) {
    set.push(`name = ${bound.as('text', name)}`, `name_upper = ${bound.as('text', name.toUpperCase())}`)
  }
  if (monthlyBudgetNanos !== undefined)
    set.push(`monthly_budget_nanos = ${bound.as('bigint', monthlyBudgetNanos)}`)
  if (allowedModels !== undefined) set.push(`allowed_models = ${models(bound, allowedModels)}`)
  if (logRequests !== undefined) set.push(`log_requests = ${bound.as('boolean', logRequests)}`)
  if (expiresAtMs !== undefined) set.push(`expires_at_ms = ${bound.integer(expiresAtMs)}`)
  return set.length === 0 ? 'name = api_key.name' : set.join(', ')
}

function models(bound: Bound, allowed: readonly string[] | null): string {
  return bound.as('jsonb', allowed === null ? null : toKeptJson(allowed))
}
