import { StoreRefused } from '../../kernel/errors.ts'
import type { Admission, CallClosing, CallOpening, Settled } from '../../ledger/call.ts'
import { NOTHING_USED } from '../../ledger/call-columns.ts'
import { text } from '../rows.ts'
import { admitCalls, readHoldFloors } from './admission.ts'
import {
  type BatchCache,
  type BatchContext,
  CACHED_MAX,
  type CallBatch,
  type CallRow,
  readBatch,
} from './batch-rows.ts'
import { type Batch, inBatch, lastStep, ROLLBACK, step } from './operation.ts'
import { prepare } from './prepared.ts'
import { raiseHoldFloors, settleCalls } from './settlement.ts'
import { settlementEvents } from './settlement-events.ts'

export type CallCommand = readonly ['admit', opening: CallOpening] | readonly ['settle', closing: CallClosing]

export function toBatch(commands: readonly CallCommand[]): CallBatch {
  const closings: CallClosing[] = []
  const openings: CallOpening[] = []
  for (const command of commands)
    if (command[0] === 'settle') closings.push(command[1])
    else openings.push(command[1])
  return { closings, openings }
}

/** The node of all calls that SQLite admits. Deferred calls belong to no node. */
export const LOCAL_NODE = 'local'

/** Settles before it admits, because settlements free parts of budgets. `fenced`: the batch changed nothing. */
export function* applyBatch(
  commands: readonly CallCommand[],
  context: BatchContext,
): Batch<readonly (Admission | Settled | StoreRefused)[] | 'fenced'> {
  const batch = toBatch(commands)
  const rows = yield* readBatch(batch, context)
  if (rows === null) {
    yield ROLLBACK
    return 'fenced'
  }
  const { settlements, settled, writes: settlementWrites } = settleCalls(batch.closings, rows)
  yield* raiseHoldFloors(settlements, rows.money)
  const holdFloors = yield* readHoldFloors(batch.openings, rows)
  const admission = admitCalls(batch.openings, rows, holdFloors, context.node?.id ?? LOCAL_NODE)
  const writes = [...rows.money.writes(), ...settlementWrites, ...admission.writes]
  const events = settlementEvents(settlements, rows.settings)
  yield events.length === 0 ? lastStep(writes) : step(writes)
  if (events.length > 0) {
    for (const record of events) yield* inBatch(record())
    yield lastStep([])
  }
  cacheOpenCalls(admission.opened, batch.closings, context.cache)
  const results = { settle: settled.values(), admit: admission.admitted.values() }
  return commands.map(
    ([name, { requestId }]) =>
      results[name].next().value ?? new StoreRefused(`there is no call ${requestId} to settle`),
  )
}

function cacheOpenCalls(
  opened: readonly CallRow[],
  closings: readonly CallClosing[],
  { openCalls }: BatchCache,
): void {
  for (const { requestId } of closings) openCalls.delete(requestId)
  if (openCalls.size > CACHED_MAX) openCalls.clear()
  for (const call of opened) openCalls.set(call.id, call)
}

const READ_OPEN = prepare`
  SELECT id FROM call WHERE node_id = ${'text'} AND state = 'in_flight' ORDER BY id LIMIT ${'bigint'}`

export function* interruptCalls(
  nodeId: string,
  limit: number,
  atMs: number,
  context: BatchContext,
): Batch<number | 'fenced'> {
  const [open = []] = yield step([READ_OPEN([nodeId, limit])])
  const state = 'interrupted'
  const closings = open.map((row) => ({ ...NOTHING_USED, requestId: text(row, 'id'), state, atMs }) as const)
  const applied = yield* applyBatch(
    closings.map((closing) => ['settle', closing]),
    context,
  )
  return applied === 'fenced' ? applied : open.length
}
