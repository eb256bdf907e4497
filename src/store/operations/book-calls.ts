import type { Admission, CallClosing, CallOpening, Settled } from '../../ledger/call.ts'
import { admitCalls } from './admission.ts'
import { type Batch, type Step, step } from './operation.ts'
import { type SettlementParts, settleCalls } from './settlement.ts'

/** Calls that end and calls that begin, to be booked in one transaction. */
export interface CallBatch {
  readonly closings: readonly CallClosing[]
  readonly openings: readonly CallOpening[]
}

/** The answers in the order of the batch. */
export interface BookedCalls {
  readonly settled: readonly (Settled | null)[]
  readonly admitted: readonly Admission[]
}

/**
 * Settlements go first, since they make room under the limits; both halves share one commit. `fenced`: the node was given
 * up. `again`: a limit was set while the batch was read. Nothing was done in both cases.
 */
export function* bookCalls(
  { closings, openings }: CallBatch,
  parts: SettlementParts,
): Batch<BookedCalls | 'fenced' | 'again'> {
  const [settled, admitted] = yield* inTurn(
    closings.length === 0 ? null : settleCalls(closings, parts),
    openings.length === 0 ? null : admitCalls(openings, parts),
  )
  if (typeof settled === 'string') return settled
  if (typeof admitted === 'string') return admitted
  return { settled: settled ?? [], admitted: admitted ?? [] }
}

/** One batch after the other in one transaction: the last step of the first goes with the first step of the second. */
function* inTurn<A, B>(
  first: Batch<A> | null,
  second: Batch<B> | null,
): Batch<readonly [A | null, B | null]> {
  if (first === null || second === null)
    return [first === null ? null : yield* first, second === null ? null : yield* second]
  let a = first.next()
  while (!a.done && a.value.end === null) a = first.next(yield a.value)
  let b = second.next()
  if (a.done || b.done || a.value.end === 'rollback') return [yield* rest(first, a), null]
  const { statements } = a.value
  const rows = yield step([...statements, ...b.value.statements])
  a = first.next(rows.slice(0, statements.length))
  b = second.next(rows.slice(statements.length))
  return [yield* rest(first, a), yield* rest(second, b)]
}

function* rest<T>(batch: Batch<T>, result: IteratorResult<Step, T>): Batch<T> {
  let next = result
  while (!next.done) next = batch.next(yield next.value)
  return next.value
}
