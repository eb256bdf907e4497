import { interruptCalls } from '../operations/apply-batch.ts'
import { createBatchCache } from '../operations/batch-rows.ts'
import { type Batch, step } from '../operations/operation.ts'
import { prepare } from '../operations/prepared.ts'
import type { StoreClock } from '../operations/sql.ts'
import { text } from '../rows.ts'
import type { Pool, Queries } from './database.ts'
import { dialectOf, runBatchOnPostgres } from './run-operation.ts'

/** Fences nodes, and returns their ids. The lock waits for a node's running batches, so all its calls are known. */
export async function fenceNodes(
  db: Queries,
  condition: 'name = $1' | 'id = $1' | 'seen_at_ms < now_ms() - $1',
  value: string | number,
): Promise<readonly string[]> {
  // Other nodes may fence the same silent nodes.
  const others = condition.startsWith('seen_at_ms') ? 'SKIP LOCKED' : ''
  const fenced = await db.query(
    `WITH locked AS (SELECT id FROM node WHERE fenced_at_ms IS NULL AND ${condition}
       ORDER BY id FOR UPDATE ${others})
     UPDATE node SET fenced_at_ms = now_ms() FROM locked WHERE node.id = locked.id RETURNING node.id`,
    [value],
  )
  return fenced.map((row) => text(row, 'id'))
}

/** Removes a fenced node without open calls. If its process still runs, it registers again. */
export async function removeNode(db: Queries, id: string): Promise<void> {
  await db.query(
    `DELETE FROM node WHERE id = $1 AND fenced_at_ms IS NOT NULL
       AND NOT EXISTS (SELECT FROM hold WHERE node_id = $1)`,
    [id],
  )
}

/** Interrupts the calls of all fenced nodes, and removes the nodes. Returns the number of calls. */
export async function interruptFencedNodes(db: Pool, atMs: number | null): Promise<number> {
  let calls = 0
  for (const row of await db.query('SELECT id FROM node WHERE fenced_at_ms IS NOT NULL ORDER BY id')) {
    const id = text(row, 'id')
    calls += await interruptCallsOf(db, id, atMs)
    await removeNode(db, id)
  }
  return calls
}

/** Calls per transaction: other nodes wait for the rows that it locks. */
const INTERRUPTED_AT_ONCE = 200

/** A null time stands for the database's clock. */
export async function interruptCallsOf(db: Pool, id: string, atMs: number | null): Promise<number> {
  const clock: StoreClock = atMs === null ? 'database' : 'caller'
  let total = 0
  for (;;) {
    const calls = await runBatchOnPostgres(db, () => interruptSome(id, atMs, clock), dialectOf(clock))
    if (calls === 0) return total
    total += calls
  }
}

const LOCK_SWEPT = prepare`SELECT id FROM node WHERE id = ${'text'} FOR NO KEY UPDATE SKIP LOCKED`

/** Returns 0 if no call is left, or if another node interrupts the calls of this node at the moment. */
function* interruptSome(id: string, atMs: number | null, clock: StoreClock): Batch<number> {
  const [locked = []] = yield step([LOCK_SWEPT([id])])
  if (locked.length === 0) return 0
  const context = { node: null, clock, cache: createBatchCache() }
  const calls = yield* interruptCalls(id, INTERRUPTED_AT_ONCE, atMs ?? Number.MAX_SAFE_INTEGER, context)
  return calls === 'fenced' ? 0 : calls
}
