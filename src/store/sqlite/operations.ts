import type { Admission, CallClosing, CallOpening, Settled } from '../../ledger/call.ts'
import type { CommitMemory } from '../../ledger/store-facts.ts'
import type { BODIES, BRIEF, READS, REFUSED } from '../operations/cold-operations.ts'
import type { Answers } from '../operations/operation.ts'

/**
 * The operations of the writing thread. The types on both sides of the thread boundary come from this map, so that a
 * caller cannot send a command that the worker does not understand. Operations that read many rows are not here but
 * among the `READS`: on this thread every admission would wait for them.
 */
export type Operations = Answers<typeof BRIEF> &
  Answers<typeof REFUSED> & {
    admit(opening: CallOpening): Admission
    settle(closing: CallClosing): Settled
    interruptOpenCalls(atMs: number): number
  }

export type ReadOperations = Answers<typeof READS>
export type BodyOperations = Answers<typeof BODIES>

export type OperationName = keyof Operations
export type Command = {
  [Name in OperationName]: readonly [Name, ...Parameters<Operations[Name]>]
}[OperationName]

/** The parameters that the worker is started with. */
export interface WorkerParts {
  readonly file: string
  /** One 32-bit integer: it is counted up, and the thread that waits at it woken, when there is a message at the port. */
  readonly bell: SharedArrayBuffer
  /** One 32-bit integer: while it is not 0, commits fail with it as SQLite's error code. For tests. */
  readonly diskFault: SharedArrayBuffer | null
  /** Shared memory in which the thread counts its commits, for the metrics: to read them, nothing has to be sent. */
  readonly commits: CommitMemory
  /** Shared memory in which the thread counts events. */
  readonly events: SharedArrayBuffer
}

/** The parameters that a thread beside the worker is started with. */
export interface SideParts {
  readonly kind: 'reader' | 'bodies'
  readonly file: string
}
