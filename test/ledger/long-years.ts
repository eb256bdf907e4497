import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../../src/kernel/clock.ts'
import { firstUlid } from '../../src/kernel/ids.ts'
import { BODIES_DELETED_AT_ONCE, removeOldCalls } from '../../src/ledger/retention.ts'
import { migratePostgres } from '../../src/store/postgres/migrate.ts'
import { migrateBodies, migrateSqlite } from '../../src/store/sqlite/database.ts'
import type { Store } from '../../src/store/store.ts'
import { addKey } from '../store/conformance/fixtures.ts'
import { NEXT } from '../store/next-release.ts'
import { stopPostgres } from '../support/postgres.ts'
import { testStore } from '../support/test-store.ts'
import { PostgresLedger } from './postgres-ledger.ts'
import { audit, billed, DataDir, rated, type TestLedger, V1, withStore } from './test-ledger.ts'

/**
 * The drill of an operator after two years: fills a log, upgrades the database, removes calls of the first year, alone from
 * a cold disk and then while calls run, and audits. `node test/ledger/long-years.ts [calls [seconds]]` fills so many calls,
 * and removes for so many seconds beside calls; TEST_STORE=postgres selects PostgreSQL.
 */
const CALLS = Number(process.argv[2] ?? 500_000)
const REMOVE_MS = Number(process.argv[3] ?? 60) * 1_000
const DAY_MS = 24 * 60 * 60 * 1000
const DAYS = 730
const KEYS = 100
const BODIES = 5_000
const LAST_MONTH_ENDED_MS = Date.UTC(2026, 10)
const FIRST_MS = LAST_MONTH_ENDED_MS - DAYS * DAY_MS
const REMOVED_BEFORE_MS = Date.UTC(2025, 10)
const CALLERS = 8
const ALONE_MS = 20_000
const UNDISTURBED_MS = 5_000

const say = (text: string) => process.stdout.write(`${text}\n`)

async function timed<T>(what: string, work: () => Promise<T>): Promise<T> {
  const sinceMs = performance.now()
  const result = await work()
  say(`${what}: ${((performance.now() - sinceMs) / 1_000).toFixed(1)} s`)
  return result
}

/** Copies one settled call to every day and key, and adds the copies to all sums. */
async function fill(ledger: TestLedger): Promise<void> {
  await withStore(ledger, async (store) => {
    await addKey(store, 'a')
    for (let n = 0; n < KEYS; n += 1) await addKey(store, `k${n}`)
    await store.storePriceVersion('v1', V1)
    await store.admit(rated('req_seed', 'a'))
    await store.settle(billed('req_seed', 10))
  })
  const [seed] = await ledger.rows("SELECT * FROM call WHERE id = 'req_seed'")
  const perDay = Math.ceil(CALLS / DAYS)
  const replaced = new Set(['id', 'key_id', 'started_at_ms', 'ended_at_ms', 'month', 'day'])
  const copied = Object.keys(seed ?? {})
    .filter((name) => !replaced.has(name))
    .join(', ')
  for (let day = 0; day < DAYS; day += 1) {
    const atMs = FIRST_MS + day * DAY_MS
    const [prefix, date] = [firstUlid(atMs).slice(0, 10), new Date(atMs).toISOString().slice(0, 10)]
    await ledger.tamper(`
      INSERT INTO call (id, key_id, started_at_ms, ended_at_ms, month, day, ${copied})
      WITH RECURSIVE n (i) AS (SELECT 1000000000000000 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${10n ** 15n + BigInt(perDay)})
      SELECT 'req_${prefix}' || i, 'key_k' || (i % ${KEYS}), ${atMs}, ${atMs + 900}, '${date.slice(0, 7)}', '${date}', ${copied}
      FROM n, call WHERE id = 'req_seed'`)
  }
  const sums = [
    'requests',
    'input_tokens',
    'output_tokens',
    'cache_read_tokens',
    'cache_write_tokens',
    'cost_nanos',
    'list_nanos',
  ]
  await ledger.tamper(`
    INSERT INTO rollup (account_id, day, model, key_id, ${sums.join(', ')})
    SELECT account_id, day, model_served, key_id, ${sums.map((name) => `sum(${name})`).join(', ')} FROM call
    WHERE id <> 'req_seed' GROUP BY account_id, day, model_served, key_id`)
  await ledger.tamper(
    'UPDATE account SET charged_nanos = (SELECT sum(cost_nanos) FROM call WHERE call.account_id = account.id)',
  )
}

async function upgrade(ledger: TestLedger): Promise<void> {
  if (ledger instanceof PostgresLedger) return migratePostgres(ledger.url, { release: NEXT })
  const { file } = ledger as DataDir
  const db = new DatabaseSync(file, { readBigInts: true })
  migrateSqlite(db, 'main', NEXT)
  migrateBodies(file, NEXT)
  db.close()
}

/** Empties the kernel's cache of SQLite's file, so that pages come from the disk. */
function coolDown(ledger: TestLedger): void {
  if (!(ledger instanceof DataDir)) return
  execFileSync('dd', [`if=${ledger.file}`, 'iflag=nocache', 'count=0', 'status=none'])
}

async function storeBodies(store: Store): Promise<void> {
  const compressed = randomBytes(50_000)
  const request = { compressed, contentType: null, lengthBytes: 50_000, truncated: false }
  for (let n = 0; n < BODIES; n += 1)
    await store.storeBodies({ requestId: `req_${n}`, atMs: FIRST_MS, request, response: null })
}

async function deleteBodies(store: Store): Promise<void> {
  while ((await store.deleteBodies(REMOVED_BEFORE_MS, BODIES_DELETED_AT_ONCE)) > 0);
}

/** Removes calls, first alone and then beside callers. Prints how many, and the longest portion. */
async function remove(store: Store): Promise<void> {
  let [calls, longestMs, isOver] = [0, 0, false]
  const removeCalls: Store['removeCalls'] = async (portion) => {
    const begunMs = performance.now()
    const removed = await store.removeCalls(portion)
    longestMs = Math.max(longestMs, performance.now() - begunMs)
    if (removed.kind === 'removed') calls += removed.calls
    return removed
  }
  const removing = removeOldCalls({
    ...{ store: { removeCalls }, kind: testStore, clock: systemClock, beforeMs: REMOVED_BEFORE_MS },
    isStopped: () => isOver,
  })
  const phase = async (what: string, forMs: number) => {
    const sinceMs = performance.now()
    ;[calls, longestMs] = [0, 0]
    await Promise.race([removing, sleep(forMs)])
    const perSecond = (calls / (performance.now() - sinceMs)) * 1_000
    say(
      `  removed ${what}: ${calls} calls, ${perSecond.toFixed(0)} a second, longest portion ${longestMs.toFixed(1)} ms`,
    )
  }
  await phase('alone', ALONE_MS)
  await callUntil(store, 'while calls are removed', phase('beside calls', REMOVE_MS))
  isOver = true
  await removing
}

/** Admits and settles calls until told to stop; prints how long they took. */
async function callUntil(store: Store, what: string, over: Promise<unknown>): Promise<void> {
  let isOver = false
  const took: number[] = []
  const caller = async (number: number) => {
    for (let i = 0; !isOver; i += 1) {
      const id = `req_${what.replaceAll(' ', '_')}_${number}_${i}`
      const sinceMs = performance.now()
      await store.admit(rated(id, 'a'))
      took.push(performance.now() - sinceMs)
      await store.settle(billed(id, 10))
    }
  }
  const callers = Array.from({ length: CALLERS }, (_, number) => caller(number))
  const stopped = over.finally(() => {
    isOver = true
  })
  await Promise.all([stopped, ...callers])
  const sorted = took.toSorted((a, b) => a - b)
  const at = (share: number) => (sorted[Math.floor((sorted.length - 1) * share)] ?? 0).toFixed(1)
  say(`  admissions, ${what}: ${sorted.length}, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, largest ${at(1)} ms`)
}

const ledger: TestLedger = testStore === 'sqlite' ? new DataDir() : await PostgresLedger.create()
try {
  say(`${testStore}, ${CALLS} calls of two years`)
  await timed('fill', () => fill(ledger))
  await timed('upgrade by a column, a table and an index', () => upgrade(ledger))
  const sums = () =>
    ledger.rows(
      "SELECT sum(requests) AS requests, sum(cost_nanos) AS nanos FROM rollup WHERE day < '2026-11'",
    )
  const before = await sums()
  coolDown(ledger)
  await withStore(ledger, async (store) => {
    await remove(store)
    await storeBodies(store)
    await callUntil(store, 'undisturbed', sleep(UNDISTURBED_MS))
    await callUntil(store, 'while bodies are deleted', deleteBodies(store))
  })
  const report = await timed('audit', () => audit(ledger))
  if (report.difference !== null)
    throw new Error(`the audit found a difference: ${JSON.stringify(report.difference)}`)
  if (JSON.stringify(before, bigints) !== JSON.stringify(await sums(), bigints))
    throw new Error('a usage sum has changed')
  say('every figure agrees')
} finally {
  await ledger.remove()
  await stopPostgres()
}

function bigints(_name: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}
