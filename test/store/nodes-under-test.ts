import assert from 'node:assert/strict'
import type { Store } from '../../src/store/store.ts'
import { test } from '../support/suite.ts'
import { assertConserved } from './conformance/conservation.ts'
import { type OpenDatabase, openByCallersClock, openTestDatabase } from './postgres-under-test.ts'

/** Several nodes on one database. Afterwards the ledger must balance. */
export function nodesTest(
  sentence: string,
  names: readonly string[],
  prove: (stores: readonly Store[], database: OpenDatabase) => Promise<void>,
): void {
  test(`PostgreSQL, ${names.length} nodes: ${sentence}`, async () => {
    const database = await openTestDatabase()
    const stores = await Promise.all(
      names.map((name) =>
        openByCallersClock(database.url, { node: { name, alone: true, beatEveryMs: null } }),
      ),
    )
    try {
      await prove(stores, database)
      await assertConserved(database)
      await Promise.all(stores.map((store) => store.close()))
      const [ended] = await database.query(
        'SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()',
      )
      assert.equal(ended?.['deadlocks'], 0n, 'the calls waited for each other')
    } finally {
      await Promise.all(stores.map((store) => store.close()))
      await database.close()
    }
  })
}

export const nth = <T>(list: readonly T[], i: number): T => {
  const found = list[i % list.length]
  assert.ok(found !== undefined)
  return found
}

export const ids = (count: number): string[] =>
  Array.from({ length: count }, (_, i) => `req_${String(i).padStart(4, '0')}`)

export async function waitingIn(database: OpenDatabase): Promise<number> {
  const who = "datname = current_database() AND wait_event_type = 'Lock'"
  return (await database.query(`SELECT pid FROM pg_stat_activity WHERE ${who}`)).length
}
