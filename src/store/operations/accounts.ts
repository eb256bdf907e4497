import { text } from '../rows.ts'
import type { Operation } from './operation.ts'
import { raw, sql } from './sql.ts'

export function* hasAccount(id: string): Operation<boolean> {
  return (yield sql`SELECT id FROM account WHERE id = ${id}`).length > 0
}

/** Tables whose rows belong to an account, by the prefix of their ids. */
const TABLES_BY_PREFIX: Readonly<Record<string, readonly string[]>> = {
  key: ['api_key'],
  req: ['call', 'refused_call'],
  wh: ['webhook'],
  adm: ['admin_key'],
}

/** The account of the record with this id; null if there is none, or if it belongs to no account. */
export function* findAccountOf(id: string): Operation<string | null> {
  const [prefix = ''] = id.split('_')
  for (const table of TABLES_BY_PREFIX[prefix] ?? []) {
    const [row] = yield sql`SELECT account_id FROM ${raw(table)} WHERE id = ${id} AND account_id IS NOT NULL`
    if (row !== undefined) return text(row, 'account_id')
  }
  return null
}
