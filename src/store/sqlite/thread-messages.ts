import { StoreRefused, StoreUnavailable } from '../../kernel/errors.ts'
import type { AccountTerms } from '../../ledger/account.ts'
import type {
  Admission,
  CallClosing,
  CallOpening,
  CallOwner,
  Reservation,
  Settled,
} from '../../ledger/call.ts'
import { CLOSING_NAMES, OPENING_NAMES } from '../../ledger/call-columns.ts'
import type { CallCommand } from '../operations/apply-batch.ts'
import type { BRIEF, REFUSED } from '../store.ts'

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
    commands.map((command) => (command[0] === 'admit' ? openingList(command[1]) : closingList(command[1]))),
  )
}

export function decodeCommands(message: BatchMessage): readonly Command[] {
  if (typeof message !== 'string') return message
  return (JSON.parse(message) as List[]).map((list) =>
    list[0] === 'a' ? ['admit', openingOf(list)] : ['settle', closingOf(list)],
  )
}

/** A command or an answer, as a flat list (nesting takes a sixth longer). The first element is its kind. */
type List = unknown[]

/** The members that JSON can represent directly. Digest, hold and nested objects are converted. */
const OPENING_PLAIN = [
  ...OPENING_NAMES,
  ...(['atMs', 'ambiguity', 'unratable', 'countsHolds', 'hasWaited'] as const),
  ...(['isRequest', 'hasBegun', 'isCheckOnly', 'isStanding'] as const),
]
const BLANK_OPENING = blank(OPENING_PLAIN) as CallOpening

function openingList(opening: CallOpening): List {
  const { digest, hold, models } = opening
  const { nanos, listNanos, neededNanos } = hold as Partial<Extract<Reservation, { kind: 'bound' }>>
  const list: List = ['a', bytesText(digest), hold.kind, amountText(nanos), amountText(listNanos)]
  list.push(amountText(neededNanos), String(opening.unboundedNanos))
  list.push(models.names, models.unknown, models.batchFile)
  for (const name of OPENING_PLAIN) list.push(opening[name])
  return list
}

function openingOf(list: List): CallOpening {
  const [, digest = '', kind, nanos = '', listNanos = '', neededNanos, unboundedNanos = ''] = list as string[]
  const names = list[7] as readonly string[]
  const unknown = list[8] as string | null
  const batchFile = list[9] as string | null
  const needed = neededNanos ? { neededNanos: BigInt(neededNanos) } : null
  const hold =
    kind === 'bound'
      ? { kind, nanos: BigInt(nanos), listNanos: BigInt(listNanos), ...needed }
      : { kind, ...needed }
  const opening: CallOpening = {
    ...BLANK_OPENING,
    digest: Buffer.from(digest, 'latin1'),
    hold: hold as Reservation,
    models: { names, unknown, batchFile },
    unboundedNanos: BigInt(unboundedNanos),
  }
  return setValues(opening, OPENING_PLAIN, list, 10)
}

const CLOSING_PLAIN = [
  ...CLOSING_NAMES.filter((name) => name !== 'costNanos' && name !== 'listNanos'),
  ...(['requestId', 'state', 'atMs'] as const),
]
const BLANK_CLOSING = blank([...CLOSING_PLAIN, 'costNanos', 'listNanos']) as CallClosing

function closingList(closing: CallClosing): List {
  const { input, output, cacheRead, cacheWrite } = closing.tokens
  const list: List = ['s', String(closing.costNanos), String(closing.listNanos), closing.losesRest === true]
  list.push(input, output, cacheRead, cacheWrite, closing.owner ?? null)
  for (const name of CLOSING_PLAIN) list.push(closing[name])
  return list
}

function closingOf(list: List): CallClosing {
  const input = list[4] as number
  const output = list[5] as number
  const cacheRead = list[6] as number
  const cacheWrite = list[7] as number
  const closing: CallClosing = {
    ...BLANK_CLOSING,
    costNanos: BigInt(list[1] as string),
    listNanos: BigInt(list[2] as string),
    tokens: { input, output, cacheRead, cacheWrite },
  }
  setValues(closing, CLOSING_PLAIN, list, 9)
  const owner = list[8] as CallOwner | null
  const owned = owner === null ? closing : { ...closing, owner }
  return list[3] === true ? { ...owned, losesRest: true } : owned
}

/** A template object with all members, to be copied: adding members one by one takes three times as long. */
function blank(names: readonly string[]): unknown {
  return Object.fromEntries(names.map((name) => [name, null]))
}

function setValues<Value>(value: Value, names: readonly (keyof Value)[], list: List, from: number): Value {
  for (let i = 0; i < names.length; i += 1) {
    value[names[i] as keyof Value] = list[from + i] as Value[keyof Value]
  }
  return value
}

function bytesText({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString('latin1')
}

function amountText(nanos: bigint | undefined): string {
  return nanos === undefined ? '' : String(nanos)
}

export function encodeOutcomes(
  commands: readonly Command[],
  outcomes: readonly ThreadOutcome[] | ThreadFailure,
): OutcomesMessage {
  if ('ok' in outcomes) return outcomes
  const lists: List[] = []
  for (const [i, outcome] of outcomes.entries()) {
    const list = outcome.ok ? answerAsList(commands[i]?.[0], outcome.value) : null
    if (list === null) return outcomes
    lists.push(list)
  }
  return JSON.stringify(lists)
}

export function decodeOutcomes(message: Exclude<OutcomesMessage, ThreadFailure>): readonly ThreadOutcome[] {
  return typeof message === 'string'
    ? (JSON.parse(message) as List[]).map((list) => ({ ok: true, value: answerOf(list) }))
    : message
}

/** The answer of an admission or a settlement as a flat list. Null for other answers, which are sent as objects. */
function answerAsList(name: Command[0] | undefined, value: unknown): List | null {
  if (name === 'settle') {
    const { balanceNanos, applied } = value as Settled
    return ['s', String(balanceNanos), applied]
  }
  const admission = name === 'admit' ? (value as Admission) : null
  if (admission?.kind !== 'admitted') return null
  const { keyId, budgetId, accountId, logRequests, balanceNanos, hasOthers, terms } = admission
  return ['a', String(balanceNanos), keyId, budgetId, accountId, logRequests, hasOthers, terms]
}

function answerOf(list: List): Admission | Settled {
  const balanceNanos = BigInt(list[1] as string)
  if (list[0] === 's') return { balanceNanos, applied: list[2] as boolean }
  const [keyId, budgetId, accountId] = list.slice(2) as [string, string, string]
  const [logRequests, hasOthers, terms] = list.slice(5) as [boolean, boolean, AccountTerms | null]
  return { kind: 'admitted', keyId, budgetId, accountId, logRequests, balanceNanos, hasOthers, terms }
}
