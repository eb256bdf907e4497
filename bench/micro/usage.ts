import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { UsageQuery, UsageReport } from '../../src/ledger/usage-report.ts'
import { READS } from '../../src/store/operations/cold-operations.ts'
import { migrate } from '../../src/store/sqlite/migrate.ts'
import { operationsOn } from '../../src/store/sqlite/run-operation.ts'

/**
 * Whether reports on usage get slower as calls are recorded: the same days, models and keys, once with five thousand
 * calls and once with five million. Needs some 3 GB in the temporary directory, and minutes to fill them.
 * Run: node bench/micro/usage.ts [calls of the large database]
 */

const FEW = 5_000
const MANY = Number(process.argv[2] ?? 5_000_000)
const DAYS = 30
const MODELS = 8
const KEYS = 20
const ROUNDS = 5
const MEASURE_MS = 200

/** Every combination of day, model and key comes up within the first 4,800 calls, and again and again after them. */
const FILL_CALLS = `
  WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :calls)
  INSERT INTO call (id, account_id, key_id, state, started_at_ms, ended_at_ms, month, day, method, path, surface,
    model_asked, model_served, status, stop_reason, usage, input_tokens, output_tokens, hold_nanos, hold_list_nanos,
    cost_nanos, list_nanos, balance_nanos, upstream_ms, overhead_ms, price_version, rating, upstream_request_id,
    client_ip, user_agent, bytes_in, bytes_out)
  SELECT printf('req_%026d', i), 'default', printf('key_%026d', i / ${DAYS * MODELS} % ${KEYS}), 'settled',
    1793491200000 + i, 1793491200000 + i + 900, '2026-11', printf('2026-11-%02d', i % ${DAYS} + 1), 'POST',
    '/v1/messages', 'messages', 'model-' || (i / ${DAYS} % ${MODELS}), 'model-' || (i / ${DAYS} % ${MODELS}), 200,
    'end_turn', '{"parts":[{"kind":"input","units":1000},{"kind":"output","units":200}]}', 1000, 200, 250000, 250000,
    160000, 200000, 1000000000 - i, 850, 2, 'list-2026-11-01', '{"endpoint":"messages"}', 'req_upstream_' || i,
    '127.0.0.1', 'anthropic-sdk/1.0', 2000, 8000
  FROM n`

const FILL_ROLLUPS = `
  INSERT INTO rollup (account_id, day, model, key_id, requests, input_tokens, output_tokens, cost_nanos, list_nanos)
  SELECT account_id, day, model_served, key_id, count(*), sum(input_tokens), sum(output_tokens), sum(cost_nanos),
    sum(list_nanos)
  FROM call GROUP BY account_id, day, model_served, key_id`

function fill(file: string, calls: number): void {
  const db = new DatabaseSync(file)
  db.exec('PRAGMA journal_mode = off; PRAGMA synchronous = off; PRAGMA cache_size = -262144')
  migrate(db)
  db.exec("INSERT OR IGNORE INTO account (id, created_at_ms) VALUES ('default', 0)")
  const addKey = db.prepare(
    `INSERT INTO api_key (id, account_id, name, name_upper, digest, prefix, last4, created_at_ms)
     VALUES (?, 'default', ?, randomblob(32), 'svc_live_xxxxxxx', 'xxxx', 0)`,
  )
  for (let i = 0; i < KEYS; i += 1) addKey.run(keyId(i), `key ${i}`)
  db.prepare(FILL_CALLS).run({ calls })
  db.exec(FILL_ROLLUPS)
  db.exec('PRAGMA journal_mode = wal')
  db.close()
}

function keyId(i: number): string {
  return `key_${String(i).padStart(26, '0')}`
}

const ALL: UsageQuery = {
  accountId: 'default',
  keyId: null,
  startDay: '2026-11-01',
  endDay: '2026-11-30',
  groupBy: [],
  after: null,
  limit: 1_000,
}

const queries: Readonly<Record<string, UsageQuery>> = {
  'the month': ALL,
  'one day': { ...ALL, startDay: '2026-11-15', endDay: '2026-11-15' },
  'by day': { ...ALL, groupBy: ['day'] },
  'by model': { ...ALL, groupBy: ['model'] },
  'by key': { ...ALL, groupBy: ['key'] },
  'by day and model': { ...ALL, groupBy: ['day', 'model'] },
  'by day, model and key': { ...ALL, groupBy: ['day', 'model', 'key'] },
  'its fourth page': {
    ...ALL,
    groupBy: ['day', 'model', 'key'],
    after: { day: '2026-11-20', model: 'model-3', keyId: keyId(9) },
  },
  'one key': { ...ALL, keyId: keyId(7) },
  'one key by day and model': { ...ALL, keyId: keyId(7), groupBy: ['day', 'model'] },
}

/** The time that this thread computed: other load on the machine does not count. */
function busyMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** The time of one report, in milliseconds. */
function time(read: () => void): number {
  const start = busyMs()
  let runs = 0
  let elapsedMs = 0
  do {
    read()
    runs += 1
    elapsedMs = busyMs() - start
  } while (elapsedMs < MEASURE_MS)
  return elapsedMs / runs
}

interface Filled {
  readUsage(query: UsageQuery): UsageReport
  close(): void
}

function open(file: string, calls: number): Filled {
  const start = performance.now()
  fill(file, calls)
  const seconds = ((performance.now() - start) / 1000).toFixed(0)
  const megabytes = (statSync(file).size / 1e6).toFixed(0)
  console.log(`${calls.toLocaleString('en')} calls: ${megabytes} MB, filled in ${seconds} s`)
  // The database is opened as the reading thread opens it.
  const db = new DatabaseSync(file, { readOnly: true, readBigInts: true })
  return { ...operationsOn(db, READS), close: () => db.close() }
}

const folder = mkdtempSync(join(tmpdir(), 'tollgate-bench-usage-'))
try {
  const few = open(join(folder, 'few.db'), FEW)
  const many = open(join(folder, 'many.db'), MANY)
  console.log(`\n${'milliseconds for a report'.padEnd(30)}${['few', 'many', 'ratio'].map(toCell).join('')}`)
  for (const [name, query] of Object.entries(queries)) {
    let [small, large] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
    // Both databases take turns and the shortest time of each counts, so that both meet the same machine.
    for (let round = 0; round < ROUNDS; round += 1) {
      small = Math.min(
        small,
        time(() => few.readUsage(query)),
      )
      large = Math.min(
        large,
        time(() => many.readUsage(query)),
      )
    }
    const cells = [small.toFixed(3), large.toFixed(3), (large / small).toFixed(2)]
    console.log(name.padEnd(30) + cells.map(toCell).join(''))
  }
  few.close()
  many.close()
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function toCell(text: string): string {
  return text.padStart(10)
}
