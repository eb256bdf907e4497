import assert from 'node:assert/strict'
import { SYSTEM } from '../../src/kernel/actor.ts'
import { createUlidSource } from '../../src/kernel/ids.ts'
import { createLog } from '../../src/kernel/log.ts'
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts'
import { createDatabase, openPatientPool, stopPostgres } from '../support/postgres.ts'
import { addKey, closing, opening } from './conformance/fixtures.ts'

/**
 * `npm run test:long -- fifty-nodes [nodes] [calls]`: many stores on one PostgreSQL. No call may fail because its batch waited
 * too long for a lock.
 */
const NODES = Number(process.argv[2] ?? 50)
const CALLS_PER_NODE = Number(process.argv[3] ?? 200)
const CALLERS_PER_NODE = 4

/** Nodes that share a budget wait for each other: behind many of them a batch may wait too long on a busy machine. */
const SHARING = Math.min(NODES, 8)

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
const [first] = stores
assert.ok(first !== undefined)
for (let n = 0; n < NODES; n++) await addKey(first, `own-${n}`, { monthlyBudgetNanos: 10n ** 15n })
await addKey(first, 'shared', { monthlyBudgetNanos: 10n ** 15n })

let calls = 0

async function run(nodes: number, words: string, keyOf: (node: number) => string): Promise<void> {
  const sinceMs = performance.now()
  await Promise.all(
    stores.slice(0, nodes).flatMap((store, n) =>
      Array.from({ length: CALLERS_PER_NODE }, async () => {
        for (let i = 0; i < CALLS_PER_NODE / CALLERS_PER_NODE; i++) {
          const id = `req_${nextUlid()}`
          const admission = await store.admit(opening(id, keyOf(n)))
          assert.equal(admission.kind, 'admitted')
          if (admission.kind !== 'admitted') continue
          const { accountId, budgetId } = admission
          await store.settle(closing(id, { owner: { accountId, budgetId } }))
        }
      }),
    ),
  )
  calls += nodes * CALLS_PER_NODE
  const perSecond = (nodes * CALLS_PER_NODE * 1_000) / (performance.now() - sinceMs)
  process.stdout.write(`${nodes} nodes, ${words}: ${Math.round(perSecond)} calls per second\n`)
}

await run(NODES, 'each with a key of its own, of one account', (n) => `own-${n}`)
await run(SHARING, 'all with one key', () => 'shared')
await first.updateAccount('default', { monthlyBudgetNanos: 10n ** 15n }, SYSTEM, Date.now())
await run(SHARING, 'each with a key of its own, of one account with a budget', (n) => `own-${n}`)

const pool = openPatientPool(database.url)
const [counts] = await pool.query(
  'SELECT (SELECT count(*) FROM hold) AS open, (SELECT count(*) FROM call) AS closed',
)
assert.deepEqual(counts, { open: 0n, closed: BigInt(calls) })
await pool.close()
await Promise.all(stores.map((store) => store.close()))
await stopPostgres()
