import assert from 'node:assert/strict'
import type { RemoveCalls } from '../../src/ledger/request-log.ts'
import type { Store } from '../../src/store/store.ts'
import { creditBackOf, NOON } from '../store/conformance/fixtures.ts'
import { stopPostgres } from '../support/postgres.ts'
import { after, describe, test } from '../support/suite.ts'
import { BOTH } from './both-ledgers.ts'
import { audit, billed, fillLedger, type TestLedger, withStore } from './test-ledger.ts'

after(stopPostgres)

/** The ids of the fixtures are no ULIDs: they sort before those of this time. */
const LATER = Date.UTC(2500, 0)
const portion = (more: Partial<RemoveCalls> = {}): RemoveCalls => ({
  ...{ beforeMs: LATER, after: '', limit: 3, node: 'node_a', atMs: NOON },
  ...more,
})

async function removeAll(store: Store, beforeMs = LATER): Promise<number> {
  let calls = 0
  for (let last: string | null = ''; last !== null; ) {
    const removed = await store.removeCalls(portion({ beforeMs, after: last }))
    assert.ok(removed.kind === 'removed')
    calls += removed.calls
    last = removed.next
  }
  return calls
}

/** All sums that reports, budgets and balances are read from. */
async function sumsOf(ledger: TestLedger): Promise<unknown> {
  const tables = ['account', 'budget', 'rollup']
  return Promise.all(tables.map((table) => ledger.rows(`SELECT * FROM ${table} ORDER BY 1, 2, 3, 4`)))
}

/** Fails the last statement of a portion. */
const FULL_AT_DELETE: Readonly<Record<string, string>> = {
  SQLite: "CREATE TRIGGER full_disk BEFORE DELETE ON call BEGIN SELECT RAISE(ABORT, 'disk full'); END",
  PostgreSQL: `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'disk full' USING ERRCODE = 'disk_full'; END $$;
    CREATE TRIGGER full_disk BEFORE DELETE ON call EXECUTE FUNCTION full_disk()`,
}

for (const [name, create] of BOTH) {
  describe(`calls of old months on ${name}`, () => {
    const filled = async (prove: (ledger: TestLedger, store: Store) => Promise<void>) => {
      await using ledger = await create()
      await fillLedger(ledger)
      await withStore(ledger, (store) => prove(ledger, store))
    }

    test('are removed in portions; sums stay, and the audit names their months', () =>
      filled(async (ledger, store) => {
        const credited = await store.creditBack(creditBackOf(['req_01', 'req_02'], 'crd_removed'), null)
        assert.equal(credited.kind, 'done')
        const before = await sumsOf(ledger)
        const open = await ledger.rows('SELECT id FROM hold ORDER BY 1')
        const kept = await ledger.rows("SELECT id FROM call WHERE state = 'interrupted' ORDER BY 1")
        assert.ok(kept.length > 0 && open.length > 0)
        assert.ok((await removeAll(store)) > 3)
        assert.deepEqual(await ledger.rows('SELECT id FROM call ORDER BY 1'), kept)
        assert.deepEqual(await ledger.rows('SELECT id FROM hold ORDER BY 1'), open)
        assert.deepEqual(await ledger.rows('SELECT * FROM credit_call'), [])
        assert.deepEqual(await sumsOf(ledger), before)
        const report = await audit(ledger)
        assert.deepEqual([report.difference, report.removedMonths], [null, ['2026-10', '2026-11']])
      }))

    test('stay with all of their sums if the disk is full before the end of a portion, and go later', () =>
      filled(async (ledger, store) => {
        const everything = async () => [
          await sumsOf(ledger),
          ...(await Promise.all(
            ['call', 'removed_total', 'credit', 'credit_call'].map((table) =>
              ledger.rows(`SELECT * FROM ${table} ORDER BY 1, 2, 3, 4`),
            ),
          )),
        ]
        await store.creditBack(creditBackOf(['req_01'], 'crd_kept'), null)
        const before = await everything()
        await ledger.tamper(FULL_AT_DELETE[name] ?? '')
        await assert.rejects(store.removeCalls(portion()), /disk full/)
        assert.deepEqual(await everything(), before)
        await ledger.tamper(`DROP TRIGGER full_disk ${name === 'PostgreSQL' ? 'ON call' : ''}`)
        assert.ok((await removeAll(store)) > 3)
        assert.equal((await audit(ledger)).difference, null)
      }))

    test('stay if their month is kept, and cannot be credited back once they are removed', () =>
      filled(async (_ledger, store) => {
        assert.equal(await removeAll(store, Date.UTC(2026, 10)), 0)
        await removeAll(store)
        assert.equal(await store.getCall('req_01'), null)
        const result = await store.creditBack(creditBackOf(['req_01']), null)
        assert.deepEqual(result, {
          kind: 'nothing',
          ...{ credited: [], alreadyCredited: [], notCredited: [{ requestId: 'req_01', why: 'not_found' }] },
        })
      }))

    test('an interrupted call that stayed can still settle, and its cost is added', () =>
      filled(async (ledger, store) => {
        await removeAll(store)
        assert.equal((await store.settle(billed('req_04', 10))).applied, true)
        assert.equal((await audit(ledger)).difference, null)
        await removeAll(store)
        assert.equal((await audit(ledger)).difference, null)
      }))

    test('one node removes at a time; another takes over after a minute of silence', () =>
      filled(async (_ledger, store) => {
        const by = async (node: string, atMs: number) =>
          (await store.removeCalls(portion({ node, atMs }))).kind
        assert.equal(await by('node_a', NOON), 'removed')
        assert.equal(await by('node_b', NOON + 59_000), 'other_node')
        assert.equal(await by('node_a', NOON + 59_000), 'removed')
        assert.equal(await by('node_b', NOON + 61_000), 'other_node')
        assert.equal(await by('node_b', NOON + 120_000), 'removed')
      }))

    test('the audit finds a changed sum of removed calls', () =>
      filled(async (ledger, store) => {
        await removeAll(store)
        await store.close()
        const { difference } = await ledger.auditAfter('UPDATE removed_total SET cost_nanos = cost_nanos + 1')
        assert.match(difference?.what ?? '', /_nanos$/)
      }))
  })
}
