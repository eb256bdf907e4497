import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import type { CallFilter } from '../../src/ledger/request-log.ts'
import { createRateAgain } from '../../src/pricing/rate-again.ts'
import { audit, type Books, DataDir, withStore } from '../ledger/books.ts'
import { PostgresBooks } from '../ledger/postgres-books.ts'
import { createEmptyDatabase, runOn, stopPostgres } from '../support/postgres.ts'
import { closing, opening } from './conformance/fixtures.ts'

after(stopPostgres)

/** Databases of gateways of earlier revisions: see fixtures/make-fixture.ts. */
const EARLIER: readonly (readonly [made: string, unpack: () => Promise<Books>])[] = [
  ['SQLite, schema 6', () => unpackSqlite('sqlite-6')],
  ['SQLite, schema 13', () => unpackSqlite('sqlite-13')],
  ['PostgreSQL, schema 9', () => unpackPostgres('postgres-9.sql')],
  ['PostgreSQL, schema 16', () => unpackPostgres('postgres-16.sql')],
]

const unpacked = (name: string): Buffer =>
  gunzipSync(readFileSync(join(import.meta.dirname, 'fixtures', `${name}.gz`)))

async function unpackSqlite(name: string): Promise<Books> {
  const dir = new DataDir()
  writeFileSync(dir.file, unpacked(`${name}.db`))
  writeFileSync(join(dir.path, 'bodies.db'), unpacked(`${name}-bodies.db`))
  return dir
}

async function unpackPostgres(name: string): Promise<Books> {
  const database = await createEmptyDatabase()
  await runOn(database.url, unpacked(name).toString())
  // Other nodes fence a node that is silent for some seconds; these stores do nothing by themselves.
  await runOn(database.url, 'UPDATE node SET fenced_at_ms = seen_at_ms')
  return new PostgresBooks(database)
}

const ALL: CallFilter = {
  ...{ accountId: 'default', keyId: null, fromMs: null, toMs: null, model: null, status: null, state: null },
  ...{ minCostNanos: null, flag: null },
}

for (const [made, unpack] of EARLIER) {
  test(`the books of an earlier revision are opened, audited and added to (${made})`, async () => {
    const books = await unpack()
    try {
      await withStore(books, async (store) => {
        const { calls } = await store.listCalls(ALL, null, 100)
        const states = Object.groupBy(calls, ({ state }) => state)
        const count = (state: keyof typeof states) => states[state]?.length
        assert.deepEqual(
          [calls.length, count('settled'), count('released'), count('interrupted')],
          [10, 7, 1, 1],
        )
        const open = states.in_flight?.[0]
        assert.ok(open !== undefined && open.costNanos === null && open.priceVersion !== null)
        for (const call of calls) assert.deepEqual(await store.getCall(call.requestId), call)
        const refused = await store.listCalls({ ...ALL, state: 'refused' }, null, 100)
        assert.deepEqual(refused.calls.map(({ code }) => code).toSorted(), [
          'budget_exceeded',
          'invalid_api_key',
          'model_not_allowed',
        ])
        const overrun = await store.listCalls({ ...ALL, flag: 'overrun' }, null, 100)
        assert.equal(overrun.calls[0]?.costNanos, 9_004_500n)
        const [logged] = await books.rows("SELECT id FROM api_key WHERE name = 'logged'")
        const ofLogged = calls.find(({ keyId }) => keyId === logged?.['id'])
        assert.ok((await store.getBodies(ofLogged?.requestId ?? ''))?.request)
        const { creditedNanos, chargedNanos } = await store.getBalance('default')
        assert.deepEqual([creditedNanos, chargedNanos], [5_000_025_500n, 9_117_100n])
      })
      assert.equal((await audit(books, createRateAgain())).difference, null)

      await withStore(books, async (store) => {
        // The call in flight of the process that is gone.
        assert.equal(await store.interruptOpenCalls(Date.now()), 1)
        const [key] = await books.rows("SELECT digest FROM api_key WHERE name = 'test'")
        const [version] = await books.rows('SELECT id FROM price_version')
        const priceVersion = String(version?.['id'])
        const digest = key?.['digest'] as Uint8Array
        const admission = await store.admit({
          ...opening('req_new', 'test', { priceVersion, socketId: 'req_new' }),
          digest,
        })
        assert.equal(admission.kind, 'admitted')
        const nothing = { usage: null, costNanos: 0n, listNanos: 0n, modelServed: null }
        assert.ok((await store.settle(closing('req_new', nothing))).booked)
        const { calls } = await store.listCalls({ ...ALL, socketId: 'req_new' }, null, 100)
        assert.deepEqual(calls, [await store.getCall('req_new')])
      })
      const { difference, calls } = await audit(books, createRateAgain())
      assert.equal(difference, null)
      assert.equal(calls, 11)
    } finally {
      await books.remove()
    }
  })
}
