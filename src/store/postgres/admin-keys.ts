import type { AdminKeyRecord } from '../../keys/key-store.ts'
import type { Store } from '../store.ts'
import { Bound } from './bound.ts'
import type { Database } from './database.ts'
import { bool, number, numberOrNull, present, type Row, text } from './rows.ts'
import { nowSql, type StoreClock } from './store-clock.ts'

const ADMIN_COLUMNS = 'id, account_id, name, prefix, last4, created_at_ms, revoked_at_ms, bootstrap'

type AdminKeyOperations = Pick<Store, 'createAdminKey' | 'listAdminKeys' | 'revokeAdminKey'>

export function adminKeyOperations(db: Database, clock: StoreClock): AdminKeyOperations {
  return {
    async createAdminKey(key) {
      const bound = new Bound()
      const values = [
        bound.as('text', key.id),
        bound.as('text', key.accountId),
        bound.as('text', key.name),
        bound.as('bytea', key.digest),
        bound.as('text', key.prefix),
        bound.as('text', key.last4),
        bound.integer(key.createdAtMs),
        bound.as('boolean', key.bootstrap),
      ]
      const insert = `
        INSERT INTO admin_key (id, account_id, name, digest, prefix, last4, created_at_ms, bootstrap)
        VALUES (${values.join(', ')})`
      if (!key.bootstrap) {
        const [row] = await db.query(`${insert} RETURNING ${ADMIN_COLUMNS}`, bound.values)
        return adminRecord(present(row))
      }
      return db.transaction(async (tx) => {
        // All nodes do this when they start, and they may start at once.
        await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1::text, 0))', [
          `tollgate bootstrap admin key ${key.accountId}`,
        ])
        const retired = new Bound()
        await tx.query(
          `UPDATE admin_key SET revoked_at_ms = ${nowSql(clock, retired, key.createdAtMs)}
           WHERE account_id = ${retired.as('text', key.accountId)} AND bootstrap AND revoked_at_ms IS NULL
             AND digest <> ${retired.as('bytea', key.digest)}`,
          retired.values,
        )
        const [row] = await tx.query(
          `${insert} ON CONFLICT (digest) DO UPDATE SET revoked_at_ms = NULL, bootstrap = true
           RETURNING ${ADMIN_COLUMNS}`,
          bound.values,
        )
        return adminRecord(present(row))
      })
    },

    async listAdminKeys() {
      return (await db.query(`SELECT ${ADMIN_COLUMNS} FROM admin_key ORDER BY id DESC`)).map(adminRecord)
    },

    async revokeAdminKey(id, atMs) {
      const bound = new Bound()
      const [row] = await db.query(
        `UPDATE admin_key SET revoked_at_ms = coalesce(revoked_at_ms, ${nowSql(clock, bound, atMs)})
         WHERE id = ${bound.as('text', id)} RETURNING ${ADMIN_COLUMNS}`,
        bound.values,
      )
      return row === undefined ? null : adminRecord(row)
    },
  }
}

function adminRecord(row: Row): AdminKeyRecord {
  return {
    id: text(row, 'id'),
    accountId: text(row, 'account_id'),
    name: text(row, 'name'),
    prefix: text(row, 'prefix'),
    last4: text(row, 'last4'),
    createdAtMs: number(row, 'created_at_ms'),
    revokedAtMs: numberOrNull(row, 'revoked_at_ms'),
    bootstrap: bool(row, 'bootstrap'),
  }
}
