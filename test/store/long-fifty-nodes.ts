import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { SYSTEM } from '../../src/kernel/actor.ts'
import { createUlidSource } from '../../src/kernel/ids.ts'
import { createLog } from '../../src/kernel/log.ts'
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts'
import { createDatabase, openPatientPool, stopPostgres } from '../support/postgres.ts'
import { addKey, closing, opening } from './conformance/fixtures.ts'

/**
 * `npm run test:long -- fifty-nodes [nodes] [calls]`: many stores on one PostgreSQL, while the key that they use and the
 * account change. On a machine without other work, no call may fail because its batch waited too long for a lock. The
 * figures say how long calls and changes wait.
 */
const NODES = Number(process.argv[2] ?? 50)
const CALLS_PER_NODE = Number(process.argv[3] ?? 200)
const CALLERS_PER_NODE = 4
const PLENTY = 10n ** 15n

const clock = { nowMs: () => Date.now(), monotonicMs: () => performance.now() }
const nextUlid = createUlidSource(clock)
const database = await createDatabase()
const stores = await Promise.all(
  Array.from({ length: NODES }, (_, n) =>
    openPostgresStore(database.url, {
      clock: 'database',
      node: { name: `node-${n}`, alone: true },
      log: createLog('error'),
    }),
  ),
)
const pool = openPatientPool(database.url)
const [first] = stores
assert.ok(first !== undefined)
const names = Array.from({ length: NODES }, (_, n) => String(n))
for (const name of names) {
  await addKey(first, `own-${name}`, { monthlyBudgetNanos: PLENTY })
  await pool.query('INSERT INTO account (id, created_at_ms) VALUES ($1, 0)', [`account-${name}`])
  await addKey(first, `alone-${name}`, { accountId: `account-${name}`, monthlyBudgetNanos: PLENTY })
}
await addKey(first, 'shared', { monthlyBudgetNanos: PLENTY })

let calls = 0

async function call(store: (typeof stores)[number], keyName: string): Promise<number> {
  const sinceMs = performance.now()
  const id = `req_${nextUlid()}`
  const admission = await store.admit(opening(id, keyName))
  const waitedMs = performance.now() - sinceMs
  assert.equal(admission.kind, 'admitted')
  if (admission.kind !== 'admitted') return waitedMs
  const { accountId, budgetId } = admission
  await store.settle(closing(id, { owner: { accountId, budgetId } }))
  calls += 1
  return waitedMs
}

/** Changes a key and the credit of its account until the calls end. */
async function change(keyId: string, accountId: string, load: { ended: boolean }): Promise<number[]> {
  const waits: number[] = []
  for (let n = 1n; !load.ended; n += 1n) {
    const sinceMs = performance.now()
    await first?.updateKey(accountId, keyId, { monthlyBudgetNanos: PLENTY + n }, Date.now(), SYSTEM)
    const id = `crd_${nextUlid()}`
    const credit = { id, accountId, amountNanos: n, reason: 'top-up', actor: SYSTEM, atMs: Date.now() }
    await first?.addCredit(credit, null)
    waits.push((performance.now() - sinceMs) / 2)
    await sleep(20)
  }
  return waits
}

const p99 = (sorted: readonly number[]): string =>
  `${sorted.at(Math.floor(sorted.length * 0.99))?.toFixed(0)} ms`

async function run(
  nodes: number,
  words: string,
  keyOf: (name: string) => string,
  accountId: string,
): Promise<void> {
  const sinceMs = performance.now()
  const load = { ended: false }
  const changing = change(`key_${keyOf('0')}`, accountId, load)
  const waits = await Promise.all(
    stores.slice(0, nodes).flatMap((store, n) =>
      Array.from({ length: CALLERS_PER_NODE }, async () => {
        const own: number[] = []
        for (let i = 0; i < CALLS_PER_NODE / CALLERS_PER_NODE; i++)
          own.push(await call(store, keyOf(names[n] ?? '')))
        return own
      }),
    ),
  )
  load.ended = true
  const perSecond = (nodes * CALLS_PER_NODE * 1_000) / (performance.now() - sinceMs)
  const admissions = waits.flat().sort((a, b) => a - b)
  const changes = (await changing).sort((a, b) => a - b)
  process.stdout.write(
    `${nodes} nodes, ${words}: ${Math.round(perSecond)} calls per second, p99 of an admission ${p99(admissions)}, ` +
      `of a change ${p99(changes)}\n`,
  )
}

// A first call opens a connection and prepares statements, which takes long if all nodes do it at once.
for (const [n, store] of stores.entries()) await call(store, `alone-${n}`)

for (const nodes of [1, 3, 10, NODES]) {
  await first.updateAccount('default', { monthlyBudgetNanos: null }, SYSTEM, Date.now())
  await run(nodes, 'each with an account of its own', (name) => `alone-${name}`, 'account-0')
  await run(nodes, 'all with one key', () => 'shared', 'default')
  await run(nodes, 'each with a key of its own, of one account', (name) => `own-${name}`, 'default')
  await first.updateAccount('default', { monthlyBudgetNanos: PLENTY }, SYSTEM, Date.now())
  await run(
    nodes,
    'each with a key of its own, of one account with a budget',
    (name) => `own-${name}`,
    'default',
  )
}

const [counts] = await pool.query(
  'SELECT (SELECT count(*) FROM hold) AS open, (SELECT count(*) FROM call) AS closed',
)
assert.deepEqual(counts, { open: 0n, closed: BigInt(calls) })
await pool.close()
await Promise.all(stores.map((store) => store.close()))
await stopPostgres()
