import assert from 'node:assert/strict'
import type { CallFilter } from '../../src/ledger/request-log.ts'
import { edgeSql, IN_ORDER_OF_AN_INDEX, matchingSql } from '../../src/store/operations/request-log.ts'
import { sql } from '../../src/store/operations/sql.ts'
import { dialectOf, runStatement } from '../../src/store/postgres/run-operation.ts'
import { text } from '../../src/store/rows.ts'
import { createDatabase, openPatientPool, stopPostgres } from '../support/postgres.ts'
import { after, test } from '../support/suite.ts'

after(stopPostgres)

const ALL: CallFilter = {
  accountId: 'default',
  keyId: null,
  fromMs: null,
  toMs: null,
  model: null,
  status: null,
  state: null,
  minCostNanos: null,
  flag: null,
}
const OF_KEY = { ...ALL, keyId: 'key_a' }
const RARE = { model: 'rare' }
const OF_SOCKET = { ...ALL, socketId: 'req_socket' }
const MARCH = { fromMs: Date.UTC(2026, 2, 1), toMs: Date.UTC(2026, 3, 1) - 1 }

const dialect = dialectOf('database')

test('a page of the log is read in the order of an index', async () => {
  const database = await createDatabase()
  const db = openPatientPool(database.url)
  try {
    for (const month of [1, 2, 3]) {
      const from = Date.UTC(2026, month, 1)
      await db.query(
        `INSERT INTO call (id, month, account_id, key_id, node_id, state, started_at_ms, day, method, path, surface,
           hold_nanos, hold_list_nanos, price_version, rating, client_ip)
         SELECT 'req_' || $1 || i, '2026-01', 'default', CASE WHEN i % 100 = 0 THEN 'key_b' ELSE 'key_a' END, 'n', 'settled', at, '2026-01-01', 'POST', '/', 'chat',
           0, 0, 'v', '{}', ''
         FROM (SELECT i, $1::bigint + i * 1000 AS at FROM generate_series(1, 5000) AS i) AS calls`,
        [from],
      )
    }
    // The planner now knows that one of the keys has few calls, and that they could be sorted.
    await db.query('ANALYZE call')
    const planOf = (filter: CallFilter): Promise<string> =>
      db.transaction(async (tx) => {
        const before = { startedAtMs: filter.toMs ?? Number.MAX_SAFE_INTEGER, requestId: '' }
        const from = { startedAtMs: filter.fromMs ?? Number.MIN_SAFE_INTEGER, requestId: '' }
        await runStatement(tx, IN_ORDER_OF_AN_INDEX, dialect)
        const looks = [edgeSql(filter, before, from, 400), matchingSql(filter, before, from, 100)]
        const plans = []
        for (const look of looks) plans.push(await runStatement(tx, sql`EXPLAIN ${look}`, dialect))
        return plans
          .flat()
          .map((line) => text(line, 'QUERY PLAN'))
          .join('\n')
      })
    const filters = [ALL, OF_KEY, { ...ALL, ...RARE }, { ...OF_KEY, ...RARE }]
    const ofSockets = [OF_SOCKET, { ...OF_SOCKET, ...RARE, keyId: 'key_b' }]
    const all = { ...ALL, accountId: null }
    for (const filter of [...filters, all, { ...OF_KEY, ...RARE, keyId: 'key_b' }, ...ofSockets]) {
      const whole = await planOf(filter)
      assert.doesNotMatch(whole, /Seq Scan|Bitmap|Sort {2}/, whole)
      const name = 'socketId' in filter ? 'by_socket' : filter.keyId === null ? 'by_start' : 'by_key'
      const index = filter.accountId === null ? 'call_pkey' : `call_${name}`
      assert.match(await planOf({ ...filter, ...MARCH }), new RegExp(index))
    }
  } finally {
    await db.close()
    await database.drop()
  }
})
