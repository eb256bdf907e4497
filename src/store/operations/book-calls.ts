import { StoreRefused } from '../../kernel/errors.ts'
import type { Admission, CallClosing, CallOpening, Settled } from '../../ledger/call.ts'
import { NOTHING_USED } from '../../ledger/call-columns.ts'
import { text } from '../rows.ts'
import { admitCalls, readFloors } from './admission.ts'
import {
  type BatchMemory,
  type BatchParts,
  type CallBatch,
  type CallRow,
  REMEMBERED_MAX,
  readBatch,
} from './batch-rows.ts'
import { ABANDON, type Batch, inBatch, lastStep, step } from './operation.ts'
import { prepare } from './prepared.ts'
import { raiseFloors, settleCalls } from './settlement.ts'
import { settlementEvents } from './settlement-events.ts'

/** In the order of the batch. */
interface BookedCalls {
  /** Null for a closing whose call does not exist. */
  readonly settled: readonly (Settled | null)[]
  readonly admitted: readonly Admission[]
}

export type CallCommand = readonly ['admit', opening: CallOpening] | readonly ['settle', closing: CallClosing]

export function batchOf(commands: readonly CallCommand[]): CallBatch {
  const closings: CallClosing[] = []
  const openings: CallOpening[] = []
  for (const command of commands)
    if (command[0] === 'settle') closings.push(command[1])
    else openings.push(command[1])
  return { closings, openings }
}

export function answersOf(
  commands: readonly CallCommand[],
  { settled, admitted }: BookedCalls,
): readonly (Admission | Settled | null)[] {
  let settlements = 0
  let admissions = 0
  return commands.map(
    ([name]) => (name === 'settle' ? settled[settlements++] : admitted[admissions++]) ?? null,
  )
}

export function noCall([, { requestId }]: CallCommand): StoreRefused {
  return new StoreRefused(`there is no call ${requestId} to settle`)
}

/** The node of all calls that SQLite admits. Deferred calls belong to no node. */
export const LOCAL_NODE = 'local'

/** Settlements come first, because they free parts of budgets. `fenced`: nothing was done. */
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
  const writes = [...rows.money.writes(), ...settlement.writes, ...admission.writes]
  const events = settlementEvents(settlement.bookings, rows.settings)
  yield events.length === 0 ? lastStep(writes) : step(writes)
  if (events.length > 0) {
    for (const record of events) yield* inBatch(record())
    yield lastStep([])
  }
  remember(admission.opened, batch.closings, parts.memory)
  return { settled: settlement.settled, admitted: admission.admitted }
}

function remember(
  opened: readonly CallRow[],
  closings: readonly CallClosing[],
  { openCalls }: BatchMemory,
): void {
  for (const { requestId } of closings) openCalls.delete(requestId)
  if (openCalls.size > REMEMBERED_MAX) openCalls.clear()
  for (const call of opened) openCalls.set(call.id, call)
}

const READ_OPEN = prepare`
  SELECT id FROM call WHERE node_id = ${'text'} AND state = 'in_flight' ORDER BY id LIMIT ${'bigint'}`

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
