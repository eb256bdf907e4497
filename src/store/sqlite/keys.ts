import type { DatabaseSync } from 'node:sqlite'
import { type KeyLimits, type KeyRecord, keyStatus, type NewKey } from '../../keys/key-store.ts'
import { monthOf } from '../../ledger/calendar.ts'
import { KEY_COLUMNS, KEY_SOURCE, keyRecord, modelsToJson } from './key-record.ts'
import type { OnceBook } from './once.ts'
import type { Operations } from './operations.ts'
import { flag, integer, integerOrNull } from './rows.ts'

type KeyOperations = Pick<Operations, 'createKey' | 'getKey' | 'updateKey' | 'revokeKey' | 'rotateKey'>

/** API keys: every statement that changes one, but for the mark of its use, is in this file. */
export function keyOperations(db: DatabaseSync, onceBook: OnceBook): KeyOperations {
  const insertKey = db.prepare(
    `INSERT INTO api_key (id, account_id, name, digest, prefix, last4, created_at_ms, rotated_from,
                          monthly_budget_nanos, allowed_models, log_requests, expires_at_ms)
     VALUES (:id, :account, :name, :digest, :prefix, :last4, :created, :rotated_from,
             :budget, :models, :log, :expires)`,
  )
  const selectKey = db.prepare(
    `SELECT ${KEY_COLUMNS} FROM ${KEY_SOURCE} WHERE account_id = :account AND id = :id`,
  )
  const writeLimits = db.prepare(
    `UPDATE api_key SET name = :name, monthly_budget_nanos = :budget, allowed_models = :models,
       log_requests = :log, expires_at_ms = :expires WHERE id = :id`,
  )
  const markRevoked = db.prepare('UPDATE api_key SET revoked_at_ms = ? WHERE id = ?')
  const setExpiry = db.prepare('UPDATE api_key SET expires_at_ms = ? WHERE id = ?')

  return {
    createKey(key, once) {
      const readNow = (id: string) => read(key.accountId, id, once?.atMs ?? key.createdAtMs)
      const repeated = onceBook.repeated(once, readNow)
      if (repeated !== null) return repeated
      if (key.expiresAtMs !== null && key.expiresAtMs <= key.createdAtMs) return { kind: 'born_expired' }
      insert(key, null)
      onceBook.keep(once, key.id)
      return { kind: 'done', value: mustRead(key.accountId, key.id, key.createdAtMs) }
    },

    getKey: read,

    updateKey(accountId, id, changes, atMs) {
      const key = read(accountId, id, atMs)
      if (key === null) return { kind: 'none' }
      if (keyStatus(key, atMs) !== 'usable') return { kind: 'final', key }
      const changed = { ...key, ...changes }
      writeLimits.run({ id, name: changed.name, ...boundLimits(changed) })
      return { kind: 'changed', key: mustRead(accountId, id, atMs) }
    },

    revokeKey(accountId, id, atMs) {
      const key = read(accountId, id, atMs)
      if (key === null || keyStatus(key, atMs) !== 'usable') return key
      markRevoked.run(integer(atMs), id)
      return { ...key, revokedAtMs: atMs }
    },

    rotateKey(accountId, id, successor, once) {
      const { createdAtMs, oldExpiresAtMs } = successor
      // Asked first: a repeated rotation must find its new key even if the old one has ended since.
      const readNow = (newId: string) => read(accountId, newId, once?.atMs ?? createdAtMs)
      const repeated = onceBook.repeated(once, readNow)
      if (repeated !== null) return repeated
      const old = read(accountId, id, createdAtMs)
      if (old === null) return { kind: 'none' }
      if (keyStatus(old, createdAtMs) !== 'usable') return { kind: 'final', key: old }

      // After this point the key is rotated. The new one gets the old one's expiry as it was before this.
      insert({ ...old, ...successor }, id)
      if (oldExpiresAtMs !== null && oldExpiresAtMs < (old.expiresAtMs ?? Number.POSITIVE_INFINITY)) {
        setExpiry.run(integer(oldExpiresAtMs), id)
      }
      onceBook.keep(once, successor.id)
      return { kind: 'done', value: mustRead(accountId, successor.id, createdAtMs) }
    },
  }

  function insert(key: NewKey, rotatedFrom: string | null): void {
    insertKey.run({
      id: key.id,
      account: key.accountId,
      name: key.name,
      digest: key.digest,
      prefix: key.prefix,
      last4: key.last4,
      created: integer(key.createdAtMs),
      rotated_from: rotatedFrom,
      ...boundLimits(key),
    })
  }

  function read(accountId: string, id: string, atMs: number): KeyRecord | null {
    const row = selectKey.get({ account: accountId, id, month: monthOf(atMs) })
    return row === undefined ? null : keyRecord(row)
  }

  function mustRead(accountId: string, id: string, atMs: number): KeyRecord {
    const key = read(accountId, id, atMs)
    if (key === null) throw new Error(`key ${id} is not there after it was written`)
    return key
  }
}

function boundLimits(key: KeyLimits) {
  return {
    budget: key.monthlyBudgetNanos,
    models: modelsToJson(key.allowedModels),
    log: flag(key.logRequests),
    expires: integerOrNull(key.expiresAtMs),
  }
}
