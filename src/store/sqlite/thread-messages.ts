import { StoreRefused, StoreUnavailable } from '../../kernel/errors.ts'
import type { Admission, CallClosing, CallOpening, Reservation, Settled } from '../../ledger/call.ts'
import { CLOSING_NAMES, OPENING_NAMES } from '../../ledger/call-columns.ts'
import type { CallCommand } from '../operations/apply-batch.ts'
import type { BRIEF, REFUSED } from '../store.ts'
import { AMOUNT, BYTES, codecOf, type List, plain } from './record-codec.ts'

/** A batch of calls is one JSON text of arrays: JSON objects took twice as long, structured cloning six times. */
export type Command =
  | CallCommand
  | readonly ['interruptOpenCalls', atMs: number]
  | readonly [name: keyof (typeof BRIEF & typeof REFUSED), ...args: unknown[]]

export function isCallCommand(command: Command): command is CallCommand {
  return command[0] === 'admit' || command[0] === 'settle'
}

export type BatchMessage = string | readonly Command[]
/** A failure stands for the whole batch. */
export type OutcomesMessage = string | readonly ThreadOutcome[] | ThreadFailure

/** All memory is shared. */
export interface WorkerOptions {
  readonly file: string
  /** One 32-bit integer, incremented and notified when a message is in the port. */
  readonly bell: SharedArrayBuffer
  /** One 32-bit integer: while it is not 0, commits fail with it as SQLite's error code. For tests. */
  readonly diskFault: SharedArrayBuffer | null
  readonly events: SharedArrayBuffer
}

export interface SideOptions {
  readonly kind: 'reader' | 'bodies'
  readonly file: string
}

/** A thread's answer to a command. A failure is plain data, because Error objects do not survive the transfer well. */
export type ThreadOutcome = { readonly ok: true; readonly value: unknown } | ThreadFailure

export interface ThreadFailure {
  readonly ok: false
  readonly error: string
  /** The disk can no longer be trusted: completed writes may be missing. */
  readonly isFatal: boolean
  /** The disk was full, or another connection was writing. */
  readonly isTemporary: boolean
}

/** SQLITE_IOERR and its extended codes: a failed read, write or fsync. */
const IO_ERROR = 10

const DISK_FULL = 13

/** SQLITE_IOERR_SHMSIZE: there is no room for the index of the write-ahead log, and nothing has been written yet. */
const NO_ROOM_FOR_INDEX = 4874

const BUSY = 5

/** SQLITE_BUSY, LOCKED, NOMEM, INTERRUPT, FULL. */
const TEMPORARY: ReadonlySet<number> = new Set([BUSY, 6, 7, 9, DISK_FULL])

/** SQLite's error code; 0 for other errors. */
function codeOf(error: unknown): number {
  const detailed = error instanceof Error && 'errcode' in error ? Number(error.errcode) : 0
  return detailed === NO_ROOM_FOR_INDEX ? DISK_FULL : detailed & 0xff
}

/** Another process held a lock on the file for longer than the timeout. */
export function isLocked(error: unknown): boolean {
  return codeOf(error) === BUSY
}

export function threadFailure(error: unknown): ThreadFailure {
  const code = codeOf(error)
  return {
    ok: false,
    error: error instanceof Error ? error.message : String(error),
    isFatal: code === IO_ERROR,
    isTemporary: TEMPORARY.has(code),
  }
}

export function errorOf(failure: ThreadFailure): Error {
  return failure.isTemporary || failure.isFatal
    ? new StoreUnavailable(failure.error)
    : new StoreRefused(failure.error)
}

export function encodeCommands(commands: readonly Command[]): BatchMessage {
  if (!commands.every(isCallCommand)) return commands
  return JSON.stringify(
    commands.map((command) =>
      command[0] === 'admit' ? OPENING.encode(command[1]) : CLOSING.encode(command[1]),
    ),
  )
}

export function decodeCommands(message: BatchMessage): readonly Command[] {
  if (typeof message !== 'string') return message
  return (JSON.parse(message) as List[]).map((list) =>
    list[0] === 'admit' ? ['admit', OPENING.decode(list)] : ['settle', CLOSING.decode(list)],
  )
}

export function encodeOutcomes(
  commands: readonly Command[],
  outcomes: readonly ThreadOutcome[] | ThreadFailure,
): OutcomesMessage {
  if ('ok' in outcomes) return outcomes
  const lists: List[] = []
  for (const [i, outcome] of outcomes.entries()) {
    const list = outcome.ok ? encodeAnswer(commands[i]?.[0], outcome.value) : null
    if (list === null) return outcomes
    lists.push(list)
  }
  return JSON.stringify(lists)
}

export function decodeOutcomes(message: Exclude<OutcomesMessage, ThreadFailure>): readonly ThreadOutcome[] {
  if (typeof message !== 'string') return message
  return (JSON.parse(message) as List[]).map((list) => {
    return { ok: true, value: list[0] === 'admit' ? ADMITTED.decode(list) : SETTLED.decode(list) }
  })
}

/** Null: this answer is sent as an object. */
function encodeAnswer(name: Command[0] | undefined, value: unknown): List | null {
  if (name === 'settle') return SETTLED.encode(value as Settled)
  const admission = name === 'admit' ? (value as Admission) : null
  return admission?.kind === 'admitted' ? ADMITTED.encode(admission) : null
}

const HOLD = {
  encode(hold: Reservation): List {
    const { kind, nanos, listNanos, neededNanos } = hold as Partial<Extract<Reservation, { kind: 'bound' }>>
    return [kind, nanos, listNanos, neededNanos].map((part) =>
      typeof part === 'bigint' ? String(part) : part,
    )
  },
  decode([kind, nanos, listNanos, neededNanos]: readonly (string | null)[]): Reservation {
    const needed = neededNanos == null ? null : { neededNanos: BigInt(neededNanos) }
    const bound =
      nanos == null || listNanos == null ? null : { nanos: BigInt(nanos), listNanos: BigInt(listNanos) }
    return { kind, ...bound, ...needed } as Reservation
  },
}

const OPENING = codecOf<CallOpening>('admit', {
  ...plain(OPENING_NAMES),
  ...plain(['atMs', 'models', 'ambiguity', 'unratable', 'countsHolds', 'hasWaited']),
  ...plain(['isRequest', 'hasBegun', 'isCheckOnly', 'isStanding']),
  digest: BYTES,
  unboundedNanos: AMOUNT,
  hold: HOLD,
})

const CLOSING = codecOf<CallClosing>('settle', {
  ...plain(CLOSING_NAMES),
  ...plain(['requestId', 'state', 'atMs', 'tokens']),
  costNanos: AMOUNT,
  listNanos: AMOUNT,
  owner: 'optional',
  losesRest: 'optional',
})

const ADMITTED = codecOf<Extract<Admission, { kind: 'admitted' }>>('admit', {
  ...plain(['kind', 'keyId', 'budgetId', 'accountId', 'logRequests', 'hasOthers', 'terms']),
  balanceNanos: AMOUNT,
})

const SETTLED = codecOf<Settled>('settle', { applied: 'plain', balanceNanos: AMOUNT })
