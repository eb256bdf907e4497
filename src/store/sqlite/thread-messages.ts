import { StoreRefused, StoreUnavailable } from '../../kernel/errors.ts'
import type { NamedModels } from '../../kernel/vocabulary.ts'
import type { AccountTerms } from '../../ledger/account.ts'
import type { Admission, CallClosing, CallOpening, Hold, Settled } from '../../ledger/call.ts'
import { CLOSING_AMOUNTS, CLOSING_NAMES, OPENING_NAMES } from '../../ledger/call-columns.ts'
import type { BRIEF, CommitMemory, REFUSED } from '../store.ts'

/**
 * How commands and outcomes are sent between threads. A batch of admissions and settlements is one JSON text of arrays,
 * with amounts and bytes as text: JSON objects took twice as long on both sides, and structured cloning six times.
 * Batches with any other command are rare and are cloned.
 */
export type Command =
  | readonly ['admit', opening: CallOpening]
  | readonly ['settle', closing: CallClosing]
  | readonly ['interruptOpenCalls', atMs: number]
  | readonly [name: keyof (typeof BRIEF & typeof REFUSED), ...args: unknown[]]

export type BatchMessage = string | readonly Command[]
export type OutcomesMessage = string | readonly Outcome[]

/** Parameters of the writer thread. All memory is shared. */
export interface WorkerParts {
  readonly file: string
  /** One 32-bit integer, incremented and notified when a message is in the port. */
  readonly bell: SharedArrayBuffer
  /** One 32-bit integer: while it is not 0, commits fail with it as SQLite's error code. For tests. */
  readonly diskFault: SharedArrayBuffer | null
  readonly commits: CommitMemory
  readonly events: SharedArrayBuffer
}

/** Parameters of a side thread. */
export interface SideParts {
  readonly kind: 'reader' | 'bodies'
  readonly file: string
}

/** A thread's answer to a command. A failure is plain data, because Error objects do not survive the transfer well. */
export type Outcome = { readonly ok: true; readonly value: unknown } | Failure

export interface Failure {
  readonly ok: false
  readonly error: string
  /** The disk can no longer be trusted: completed writes may be missing. */
  readonly fatal: boolean
  /** Temporary: the disk was full, or another connection was writing. */
  readonly passing: boolean
  readonly full: boolean
}

/** SQLITE_IOERR and its extended codes: a failed read, write or fsync. */
const IO_ERROR = 10

const FULL = 13

/** SQLITE_IOERR_SHMSIZE: there is no room for the index of the write-ahead log, and nothing has been written yet. */
const NO_ROOM_FOR_INDEX = 4874

/** SQLITE_BUSY, LOCKED, NOMEM, INTERRUPT, FULL. */
const PASSING: ReadonlySet<number> = new Set([5, 6, 7, 9, FULL])

export function failureOf(error: unknown): Failure {
  const detailed = error instanceof Error && 'errcode' in error ? Number(error.errcode) : 0
  const code = detailed === NO_ROOM_FOR_INDEX ? FULL : detailed & 0xff
  return {
    ok: false,
    error: error instanceof Error ? error.message : String(error),
    fatal: code === IO_ERROR,
    passing: PASSING.has(code),
    full: code === FULL,
  }
}

/** Converts a failure to an error. Undefined: the command got no answer and may still get one. */
export function errorOf(failure: Failure | undefined): Error {
  if (failure === undefined) return new StoreUnavailable('the store gave no answer')
  return failure.passing || failure.fatal
    ? new StoreUnavailable(failure.error)
    : new StoreRefused(failure.error)
}

export function writeBatch(commands: readonly Command[]): BatchMessage {
  const lists: CommandList[] = []
  for (const command of commands) {
    if (command[0] === 'admit') lists.push(openingList(command[1]))
    else if (command[0] === 'settle') lists.push(closingList(command[1]))
    else return commands
  }
  return JSON.stringify(lists)
}

export function readBatch(message: BatchMessage): readonly Command[] {
  return typeof message === 'string' ? (JSON.parse(message) as CommandList[]).map(commandOf) : message
}

/** Only this file writes these texts, so the parsed lists need no validation. */
type CommandList = OpeningList | ClosingList

function commandOf(list: CommandList): Command {
  return list[0] === 'a' ? ['admit', openingOf(list)] : ['settle', closingOf(list)]
}

/** The members that JSON can represent directly. Digest, hold and nested objects are converted. */
const OPENING_PLAIN = [
  ...OPENING_NAMES,
  ...([
    'atMs',
    'endpoint',
    'ambiguity',
    'unratable',
    'heldCounts',
    'askedBefore',
    'isRequest',
    'hasBegun',
    'hasHold',
  ] as const),
]
const BLANK_OPENING = blank(OPENING_PLAIN) as Pick<CallOpening, (typeof OPENING_PLAIN)[number]>

/** The list is flat: nesting takes a sixth longer. */
type OpeningList = readonly [
  'a',
  digest: string,
  hold: Hold['kind'],
  nanos: string,
  listNanos: string,
  ...models: readonly [names: NamedModels['names'], unknown: string | null, batchFile: string | null],
  neededNanos: string,
  unboundedNanos: string,
  ...plain: unknown[],
]

function openingList(opening: CallOpening): OpeningList {
  const { digest, hold, models } = opening
  const list: [...OpeningList] = [
    'a',
    bytesText(digest),
    hold.kind,
    hold.kind === 'bound' ? String(hold.nanos) : '',
    hold.kind === 'bound' ? String(hold.listNanos) : '',
    models.names,
    models.unknown,
    models.batchFile,
    hold.kind !== 'none' && hold.neededNanos !== undefined ? String(hold.neededNanos) : '',
    String(opening.unboundedNanos),
  ]
  for (const name of OPENING_PLAIN) list.push(opening[name])
  return list
}

function openingOf(list: OpeningList): CallOpening {
  const opening: CallOpening = {
    ...BLANK_OPENING,
    digest: bytesOf(list[1]),
    hold: {
      ...(list[2] === 'bound'
        ? { kind: list[2], nanos: BigInt(list[3]), listNanos: BigInt(list[4]) }
        : { kind: list[2] }),
      ...(list[8] === '' ? {} : { neededNanos: BigInt(list[8]) }),
    },
    models: { names: list[5], unknown: list[6], batchFile: list[7] },
    unboundedNanos: BigInt(list[9]),
  }
  return setValues(opening, OPENING_PLAIN, list, 10)
}

const CLOSING_PLAIN = [
  ...CLOSING_NAMES.filter((name) => !CLOSING_AMOUNTS.includes(name)),
  ...(['requestId', 'state', 'atMs'] as const),
]
const BLANK_CLOSING = blank([...CLOSING_PLAIN, ...CLOSING_AMOUNTS]) as Omit<CallClosing, 'tokens'>

type ClosingList = readonly [
  's',
  input: number,
  output: number,
  cacheRead: number,
  cacheWrite: number,
  losesRest: boolean,
  ...plain: unknown[],
]

function closingList(closing: CallClosing): ClosingList {
  const { input, output, cacheRead, cacheWrite } = closing.tokens
  const list: [...ClosingList] = ['s', input, output, cacheRead, cacheWrite, closing.losesRest === true]
  for (const name of CLOSING_PLAIN) list.push(closing[name])
  for (const name of CLOSING_AMOUNTS) list.push(String(closing[name]))
  return list
}

function closingOf(list: ClosingList): CallClosing {
  const tokens = { input: list[1], output: list[2], cacheRead: list[3], cacheWrite: list[4] }
  const rest = list[5] ? { losesRest: true } : null
  const closing: CallClosing = setValues({ ...BLANK_CLOSING, tokens, ...rest }, CLOSING_PLAIN, list, 6)
  const amounts = list.slice(6 + CLOSING_PLAIN.length) as string[]
  return setValues(closing, CLOSING_AMOUNTS, amounts.map(BigInt), 0)
}

/** A template object with all members, to be copied: adding members one by one takes three times as long. */
function blank(names: readonly string[]): unknown {
  return Object.fromEntries(names.map((name) => [name, null]))
}

/** Sets the named members from the list, beginning at the index `from`. */
function setValues<Value>(
  value: Value,
  names: readonly (keyof Value)[],
  list: readonly unknown[],
  from: number,
): Value {
  for (let i = 0; i < names.length; i += 1) {
    value[names[i] as keyof Value] = list[from + i] as Value[keyof Value]
  }
  return value
}

function bytesText({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString('latin1')
}

function bytesOf(text: string): Uint8Array {
  return Buffer.from(text, 'latin1')
}

export function writeOutcomes(commands: readonly Command[], outcomes: readonly Outcome[]): OutcomesMessage {
  const lists: OutcomeList[] = []
  for (const [i, outcome] of outcomes.entries()) {
    const list = outcome.ok ? outcomeList(commands[i]?.[0], outcome.value) : null
    if (list === null) return outcomes
    lists.push(list)
  }
  return JSON.stringify(lists)
}

export function readOutcomes(message: OutcomesMessage): readonly Outcome[] {
  return typeof message === 'string'
    ? (JSON.parse(message) as OutcomeList[]).map((list) => ({ ok: true, value: answerOf(list) }))
    : message
}

type OutcomeList =
  | readonly [
      'a',
      keyId: string,
      budgetId: string,
      accountId: string,
      logRequests: boolean,
      balanceNanos: string,
      hasOthers: boolean,
      terms: AccountTerms | null,
    ]
  | readonly ['s', balanceNanos: string, booked: boolean]

/** Null: not a common answer, sent as an object. */
function outcomeList(name: Command[0] | undefined, value: unknown): OutcomeList | null {
  if (name === 'settle') {
    const { balanceNanos, booked } = value as Settled
    return ['s', String(balanceNanos), booked]
  }
  const admission = name === 'admit' ? (value as Admission) : null
  if (admission?.kind !== 'admitted') return null
  const { keyId, budgetId, accountId, logRequests, balanceNanos, hasOthers, terms } = admission
  return ['a', keyId, budgetId, accountId, logRequests, String(balanceNanos), hasOthers, terms]
}

function answerOf(list: OutcomeList): Admission | Settled {
  if (list[0] === 's') return { balanceNanos: BigInt(list[1]), booked: list[2] }
  const [, keyId, budgetId, accountId, logRequests, balance, hasOthers, terms] = list
  const balanceNanos = BigInt(balance)
  return { kind: 'admitted', keyId, budgetId, accountId, logRequests, balanceNanos, hasOthers, terms }
}
