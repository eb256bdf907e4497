import type { Store } from '../store.ts'
import { Bound } from './bound.ts'
import type { Database } from './database.ts'
import { KEY_COLUMNS, keyRecord, keySource, statusSql } from './key-record.ts'
import { nowSql, type StoreClock } from './store-clock.ts'

export function keyListOperation(db: Database, clock: StoreClock): Pick<Store, 'listKeys'> {
  return {
    async listKeys({ accountId, status, search, after, limit, atMs }) {
      const bound = new Bound()
      const where = [`account_id = ${bound.as('text', accountId)}`]
      if (after !== null) where.push(`id < ${bound.as('text', after)}`)
      const now = nowSql(clock, bound, atMs)
      if (status !== null) where.push(`${statusSql(`(SELECT ${now})`)} = ${bound.as('text', status)}`)
      if (search !== null) where.push(found(bound, search))
      const rows = await db.query(
        // The page is cut before the months are looked up.
        `SELECT ${KEY_COLUMNS}
         FROM ${keySource(
           // One more than asked for tells whether there are more.
           `(SELECT * FROM api_key WHERE ${where.join(' AND ')} ORDER BY id DESC LIMIT ${bound.integer(limit + 1)})`,
           `(SELECT month_of(${now}))`,
         )}
         ORDER BY id DESC`,
        bound.values,
      )
      return { rows: rows.slice(0, limit).map(keyRecord), more: rows.length > limit }
    },
  }
}

/** `strpos` gives no character a meaning, as LIKE would. */
function found(bound: Bound, search: string): string {
  const part = bound.as('text', search)
  const parts = ['id', 'prefix', 'last4'].map((column) => `strpos(${column}, ${part}) > 0`)
  return `(strpos(name_upper, ${bound.as('text', search.toUpperCase())}) > 0 OR ${parts.join(' OR ')})`
}
