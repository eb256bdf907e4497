import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pathToFileURL } from 'node:url'
import { type FillPlan, SECRET_KEYS_FILE } from './fill-plan.ts'
import { MODELS } from './wire-text.ts'

/**
 * Writes keys or calls straight into a new database, in the schema of the revision that will use it.
 * Run: node bench/fill-database.ts '{"root":…,"dataDir":…,"pepper":…,"keys":1000,"allUsedToday":true,"calls":0}'
 */

/** How many keys the load gets. The other keys are in the database only, where no column tells them apart. */
const SECRET_KEYS_MAX = 20_000

const DAYS = 30
const MODEL_COUNT = 8
const BUDGET_NANOS = 1_000_000n * 1_000_000_000n
/** The account of the key with number i: neighbouring keys belong to different accounts. */
const ACCOUNT = `CASE i % :accounts WHEN 0 THEN 'default' ELSE printf('acct_%026d', i % :accounts) END`

const plan = JSON.parse(process.argv[2] ?? '{}') as FillPlan

type Modules = {
  readonly migrateSqlite: typeof import('../src/store/sqlite/database.ts')
  readonly keyFormat: typeof import('../src/keys/key-format.ts')
  readonly keyDigest: typeof import('../src/keys/secrets.ts')
  readonly secret: typeof import('../src/kernel/secret.ts')
}

async function load<T>(path: string): Promise<T> {
  return (await import(pathToFileURL(join(plan.root, path)).href)) as T
}

const { migrateSqlite } = await load<Modules['migrateSqlite']>('src/store/sqlite/database.ts')
const { mintKey, shownParts } = await load<Modules['keyFormat']>('src/keys/key-format.ts')
const { createKeyDigest } = await load<Modules['keyDigest']>('src/keys/secrets.ts')
const { Secret } = await load<Modules['secret']>('src/kernel/secret.ts')

const db = new DatabaseSync(join(plan.dataDir, 'tollgate.db'))
db.exec('PRAGMA journal_mode = off; PRAGMA synchronous = off; PRAGMA cache_size = -262144')
migrateSqlite(db)
db.exec('BEGIN')
const accounts = 1 + (plan.otherAccounts ?? 0)
if (accounts > 1) fillAccounts()
fillKeys()
if (plan.people !== undefined) fillPeople(plan.people)
if (plan.calls > 0) fillCalls()
db.exec('COMMIT')
db.exec('PRAGMA journal_mode = wal')
db.close()

function fillAccounts(): void {
  db.exec('UPDATE account SET has_others = 1')
  db.prepare(
    `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :accounts)
     INSERT INTO account (id, name, name_upper, created_at_ms, has_others, credited_nanos, monthly_budget_nanos)
     SELECT printf('acct_%026d', i), 'account ' || i, 'ACCOUNT ' || i, i, 1, :budget, :budget FROM n`,
  ).run({ accounts: BigInt(accounts), budget: BUDGET_NANOS })
}

function fillKeys(): void {
  db.prepare(
    `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :keys)
     INSERT INTO budget (id, account_id, monthly_budget_nanos) SELECT printf('bud_%026d', i), ${ACCOUNT}, :budget FROM n`,
  ).run({ keys: BigInt(plan.keys), accounts: BigInt(accounts), budget: BUDGET_NANOS })
  db.prepare(
    `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :keys)
     INSERT INTO api_key (id, account_id, budget_id, name, name_upper, digest, prefix, last4, created_at_ms)
     SELECT printf('key_%026d', i), ${ACCOUNT}, printf('bud_%026d', i), 'key ' || i, 'KEY ' || i, randomblob(32),
       'svc_live_xxxxxxx', 'xxxx', 0 FROM n`,
  ).run({ keys: BigInt(plan.keys), accounts: BigInt(accounts) })
  if (plan.allUsedToday) fillToday()

  const digest = createKeyDigest(new Secret(plan.pepper))
  const setSecret = db.prepare('UPDATE api_key SET digest = ?, prefix = ?, last4 = ? WHERE id = ?')
  const secrets: string[] = []
  const count = Math.min(plan.keys, SECRET_KEYS_MAX)
  for (let i = 0; i < count; i += 1) {
    const secret = mintKey('svc', 'live')
    const { prefix, last4 } = shownParts(secret, 'svc')
    const index = Math.floor((i * plan.keys) / count)
    setSecret.run(digest(secret.reveal()), prefix, last4, `key_${String(index).padStart(26, '0')}`)
    secrets.push(secret.reveal())
  }
  writeFileSync(join(plan.dataDir, SECRET_KEYS_FILE), `${shuffled(secrets).join('\n')}\n`)
}

/** All keys of a person draw on one budget. */
function fillPeople(people: number): void {
  db.prepare(
    `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :people)
     INSERT INTO person (id, account_id, budget_id, issuer, subject, email, name, search_upper, role, created_at_ms,
       last_seen_at_ms, checked_at_ms, check_due_ms)
     SELECT printf('per_%026d', i), 'default', printf('bud_%026d', i), 'https://login.example', 'subject ' || i,
       'person' || i || '@example.com', 'Person ' || i, 'PERSON ' || i, 'member', 0, 0, 0, 0 FROM n`,
  ).run({ people: BigInt(people) })
  const owner = 'CAST(substr(id, 5) AS INTEGER) % :people'
  db.prepare(
    `UPDATE api_key SET person_id = printf('per_%026d', ${owner}), budget_id = printf('bud_%026d', ${owner})`,
  ).run({ people: BigInt(people) })
}

function fillToday(): void {
  const day = new Date().toISOString().slice(0, 10)
  db.prepare('UPDATE budget SET month = ?, day = ?').run(day.slice(0, 7), day)
  db.prepare(
    'INSERT INTO rollup (account_id, day, model, key_id) SELECT account_id, ?, ?, id FROM api_key ORDER BY id',
  ).run(day, MODELS.messages)
}

/** Shuffles in the same order every time, so that rounds do not differ. */
function shuffled<T>(items: readonly T[]): T[] {
  let seed = 1
  return items
    .map((item) => {
      seed = (seed * 48_271) % 2_147_483_647
      return { item, at: seed }
    })
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item)
}

/** Every combination of day, model and key comes up among the first calls, and again and again after them. */
function fillCalls(): void {
  db.prepare(
    `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < :calls)
     INSERT INTO call (id, account_id, key_id, state, started_at_ms, ended_at_ms, month, day, method, path, surface,
       model_asked, model_served, status, stop_reason, usage, input_tokens, output_tokens, hold_nanos,
       hold_list_nanos, cost_nanos, list_nanos, balance_nanos, upstream_ms, overhead_ms, price_version, rating,
       upstream_request_id, client_ip, user_agent, bytes_in, bytes_out)
     SELECT printf('req_%026d', i), 'default', printf('key_%026d', i / ${DAYS * MODEL_COUNT} % :keys), 'settled',
       1793491200000 + i, 1793491200000 + i + 900, '2026-11', printf('2026-11-%02d', i % ${DAYS} + 1), 'POST',
       '/v1/messages', 'messages', 'model-' || (i / ${DAYS} % ${MODEL_COUNT}), 'model-' || (i / ${DAYS} % ${MODEL_COUNT}), 200,
       'end_turn', '{"parts":[{"kind":"input","units":1000},{"kind":"output","units":200}]}', 1000, 200, 250000,
       250000, 160000, 200000, 1000000000 - i, 850, 2, '2026-11-01', '{"endpoint":"messages"}',
       'req_upstream_' || i, '127.0.0.1', 'anthropic-sdk/1.0', 2000, 8000
     FROM n`,
  ).run({ calls: BigInt(plan.calls), keys: BigInt(plan.keys) })
  db.exec(
    `INSERT INTO rollup (account_id, day, model, key_id, requests, input_tokens, output_tokens, cost_nanos, list_nanos)
     SELECT account_id, day, model_served, key_id, count(*), sum(input_tokens), sum(output_tokens), sum(cost_nanos),
       sum(list_nanos)
     FROM call GROUP BY account_id, day, model_served, key_id`,
  )
}
