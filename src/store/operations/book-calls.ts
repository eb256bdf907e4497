import type { Admission, Settled } from '../../ledger/call.ts'
import { NOTHING_USED } from '../../ledger/call-columns.ts'
import { text } from '../rows.ts'
import { admitCalls, readFloors } from './admission.ts'
import { type BatchParts, type CallBatch, readBatch } from './batch-rows.ts'
import { ABANDON, type Batch, inBatch, lastStep, step } from './operation.ts'
import { raiseFloors, settleCalls } from './settlement.ts'
import { settlementEvents } from './settlement-events.ts'
import { prepare } from './sql.ts'

/** The answers in the order of the batch. */
export interface BookedCalls {
  /** Null for a closing whose call does not exist. */
  readonly settled: readonly (Settled | null)[]
  readonly admitted: readonly Admission[]
}

/** The node of all calls that SQLite admits. Deferred calls belong to no node. */
export const LOCAL_NODE = 'local'

/**
 * Settles and admits calls in one transaction. The first step locks and reads, the last step writes. Settlements come
 * first, because they free parts of budgets. `fenced`: nothing was done, because the node was fenced.
 */
export function* bookCalls(batch: CallBatch, parts: BatchParts): Batch<BookedCalls | 'fenced'> {
  const rows = yield* readBatch(batch, parts)
  if (rows === null) {
    yield ABANDON
    return 'fenced'
  }
  const settlement = settleCalls(batch.closings, rows)
  yield* raiseFloors(settlement.bookings, rows.money)
  const floors = yield* readFloors(batch.openings, rows)
  const admission = admitCalls(batch.openings, rows, floors, parts.node?.id ?? LOCAL_NODE)
  const writes = rows.money.writes().concat(settlement.writes, admission.writes)
  const events = settlementEvents(settlement.bookings, rows.settings)
  yield events.length === 0 ? lastStep(writes) : step(writes)
  if (events.length > 0) {
    for (const record of events) yield* inBatch(record())
    yield lastStep([])
  }
  return { settled: settlement.settled, admitted: admission.admitted }
}

const READ_OPEN = prepare`
  SELECT id FROM call WHERE node_id = ${'text'} AND state = 'in_flight' ORDER BY id LIMIT ${'bigint'}`

/** Closes open calls of a node as interrupted. Returns their number. */
export function* interruptCalls(
  nodeId: string,
  limit: number,
  atMs: number,
  parts: BatchParts,
): Batch<number | 'fenced'> {
  const [open = []] = yield step([READ_OPEN([nodeId, limit])])
  const state = 'interrupted'
  const closings = open.map((row) => ({ ...NOTHING_USED, requestId: text(row, 'id'), state, atMs }) as const)
  const booked = yield* bookCalls({ closings, openings: [] }, parts)
  return booked === 'fenced' ? booked : open.length
}
