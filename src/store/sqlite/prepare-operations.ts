import type { DatabaseSync } from 'node:sqlite'
import { BRIEF, REFUSED } from '../operations/cold-operations.ts'
import { admitOperation } from './admit.ts'
import { type BatchKeys, prepareBatchKeys } from './batch-keys.ts'
import { type BatchRows, prepareBatchRows } from './batch-rows.ts'
import { callOperations } from './calls.ts'
import { prepareHoldFloors } from './hold-floors.ts'
import { createNotedUses, type NotedUses } from './noted-uses.ts'
import type { OpenCalls } from './open-calls.ts'
import type { Command, OperationName, Operations } from './operations.ts'
import { recogniseOperation } from './recognise.ts'
import { operationsOn } from './run-operation.ts'

export interface PreparedOperations {
  /** Whether the commands write nothing that anybody waits for: they can be run without a transaction. */
  onlyLook(commands: readonly Command[]): boolean
  /** Whether there is something to commit without a command. */
  hasUnwritten(): boolean
  /** Does what a command says, in the transaction at hand. */
  run(command: Command): unknown
  /** To be called before the transaction is committed. */
  beforeCommit(): void
  /** To be called when it is. */
  committed(): void
  /** To be called when it could not be. */
  rolledBack(): void
}

/** Their work goes through the rows of the batch; every other command looks at the tables themselves. */
const OF_CALLS: ReadonlySet<OperationName> = new Set(['admit', 'settle', 'recognise'])

export function prepareOperations(db: DatabaseSync): PreparedOperations {
  const batch: Batch = { keys: prepareBatchKeys(db), rows: prepareBatchRows(db) }
  const openCalls: OpenCalls = new Map()
  const uses = createNotedUses()
  const operations = allOperations(db, batch, openCalls, uses)

  function writeRows(): void {
    for (const [keyId, atMs] of uses.latest) batch.rows.used(keyId, atMs)
    batch.rows.write()
    forgetRows()
  }

  function forgetRows(): void {
    batch.rows.forget()
    batch.keys.forget()
  }

  return {
    onlyLook: (commands) => uses.canWait() && commands.every(([name]) => name === 'recognise'),
    hasUnwritten: () => uses.latest.size > 0,
    run(command) {
      const [name, ...args] = command
      if (!OF_CALLS.has(name)) writeRows()
      const operation = operations[name] as (...args: unknown[]) => ReturnType<Operations[typeof name]>
      const value = operation(...args)
      if (!OF_CALLS.has(name)) writeRows()
      return value
    },
    beforeCommit: writeRows,
    committed: uses.clear,
    rolledBack() {
      forgetRows()
      openCalls.clear()
    },
  }
}

/** What the calls of a batch have read and moved so far. */
interface Batch {
  readonly keys: BatchKeys
  readonly rows: BatchRows
}

/** All operations over one connection, their statements prepared once: preparing costs six times running them. */
function allOperations(
  db: DatabaseSync,
  { keys, rows }: Batch,
  openCalls: OpenCalls,
  uses: NotedUses,
): Operations {
  const floors = prepareHoldFloors(db, keys)
  return {
    ...operationsOn(db, { ...BRIEF, ...REFUSED }),
    ...recogniseOperation(db, uses.note),
    ...admitOperation(db, keys, rows, openCalls, floors),
    ...callOperations(db, rows, openCalls, floors),
  }
}
