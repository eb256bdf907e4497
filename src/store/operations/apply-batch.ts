import { StoreRefused } from '../../kernel/errors.ts'
import type { Admission, CallClosing, CallOpening, Settled } from '../../ledger/call.ts'
import { NOTHING_USED } from '../../ledger/call-columns.ts'
import { text } from '../rows.ts'
import { admitCalls } from './admission.ts'
import { type BatchContext, type BatchRows, type CallBatch, readBatch } from './batch-rows.ts'
import { type Batch, inBatch, lastStep, ROLLBACK, step } from './operation.ts'
import { type BulkStatement, prepare } from './prepared.ts'
import { settleCalls } from './settlement.ts'
import { isBalanceUncertain, type Settlement, settlementEvents } from './settlement-events.ts'

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
  const admission = admitCalls(batch.openings, rows, context.node?.id ?? LOCAL_NODE)
  const writes = [
    rows.money.budgetWrites(),
    ...settlementWrites,
    ...admission.writes,
    rows.money.accountLine(),
  ]
  yield* writeBatch(writes, settlements, rows)
  const results = { settle: settled.values(), admit: admission.admitted.values() }
  return commands.map(
    ([name, { requestId }]) =>
      results[name].next().value ?? new StoreRefused(`there is no call ${requestId} to settle`),
  )
}

/** If an event may depend on what other nodes have added to an account, the batch reads it before it commits. */
function* writeBatch(
  writes: readonly BulkStatement[],
  settlements: readonly Settlement[],
  { money, settings }: BatchRows,
): Batch<void> {
  const accountWrites = money.accountWrites()
  if (!settlements.some(isBalanceUncertain) && settlementEvents(settlements, settings).length === 0) {
    yield lastStep([...writes, ...accountWrites])
    return
  }
  const written = yield step([...writes, ...accountWrites])
  const missed = money.missedBy(written.slice(writes.length).flat())
  for (const record of settlementEvents(settlements, settings, missed)) yield* inBatch(record())
  yield lastStep([])
}

const READ_OPEN = prepare`
  SELECT id, account_id, budget_id FROM hold WHERE node_id = ${'text'} ORDER BY id LIMIT ${'bigint'}`

export function* interruptCalls(
  nodeId: string,
  limit: number,
  atMs: number,
  context: BatchContext,
): Batch<number | 'fenced'> {
  const [open = []] = yield step([READ_OPEN([nodeId, limit])])
  const closings = open.map((row): CallClosing => {
    const owner = { accountId: text(row, 'account_id'), budgetId: text(row, 'budget_id') }
    return { ...NOTHING_USED, requestId: text(row, 'id'), owner, state: 'interrupted', atMs }
  })
  const applied = yield* applyBatch(
    closings.map((closing) => ['settle', closing]),
    context,
  )
  return applied === 'fenced' ? applied : open.length
}
