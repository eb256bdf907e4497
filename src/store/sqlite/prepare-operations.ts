import type { DatabaseSync } from 'node:sqlite'
import { BRIEF, REFUSED } from '../operations/cold-operations.ts'
import { admitOperation, lookUpKeyOperation } from './admit.ts'
import { type BatchRows, prepareBatchRows } from './batch-rows.ts'
import { callOperations, type OpenCalls } from './calls.ts'
import type { Command, OperationName, Operations } from './operations.ts'
import { operationsOn } from './run-operation.ts'

export interface PreparedOperations {
  /** Whether the commands write nothing that a caller waits for: they can be run without a transaction. */
  onlyLook(commands: readonly Command[]): boolean
  /** Whether there is something to commit without a command. */
  hasUnwritten(): boolean
  /** Does a command, in the transaction at hand. */
  run(command: Command): unknown
  /** To be called before the transaction is committed. */
  beforeCommit(): void
  /** To be called when the transaction is committed. */
  committed(): void
  /** To be called when the transaction could not be committed. */
  rolledBack(): void
}

/** Commands of calls work on the rows of the batch; every other command looks at the tables themselves. */
const OF_CALLS: ReadonlySet<OperationName> = new Set(['admit', 'settle', 'lookUpKey'])

export function prepareOperations(db: DatabaseSync): PreparedOperations {
  const rows = prepareBatchRows(db)
  const openCalls: OpenCalls = new Map()
  const operations = allOperations(db, rows, openCalls)

  return {
    onlyLook: (commands) => rows.notedUsesCanWait() && commands.every(([name]) => name === 'lookUpKey'),
    hasUnwritten: rows.hasNotedUses,
    run(command) {
      const [name, ...args] = command
      if (!OF_CALLS.has(name)) rows.write()
      const operation = operations[name] as (...args: unknown[]) => ReturnType<Operations[typeof name]>
      const value = operation(...args)
      // The row of a deferred call has changed, so the map of open calls must not answer for it.
      if (name === 'deferCall') openCalls.delete(command[1].requestId)
      if (!OF_CALLS.has(name)) rows.write()
      return value
    },
    beforeCommit: rows.write,
    committed: rows.committed,
    rolledBack() {
      rows.rolledBack()
      openCalls.clear()
    },
  }
}

/** All operations over one connection, their statements prepared once: preparing costs six times running them. */
function allOperations(db: DatabaseSync, rows: BatchRows, openCalls: OpenCalls): Operations {
  return {
    ...operationsOn(db, { ...BRIEF, ...REFUSED }),
    ...lookUpKeyOperation(db, rows.noteUse),
    ...admitOperation(db, rows, openCalls),
    ...callOperations(db, rows, openCalls),
  }
}
