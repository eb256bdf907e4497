import type { Batches } from '../../ledger/audited.ts'

/** Enough that to wait for each costs nothing. */
const BATCH_ROWS = 1_000

/** What SQLite gives row by row. */
export async function* inBatches<T>(rows: Iterable<T>): Batches<T> {
  let batch: T[] = []
  for (const row of rows) {
    batch.push(row)
    if (batch.length < BATCH_ROWS) continue
    yield batch
    batch = []
  }
  if (batch.length > 0) yield batch
}
