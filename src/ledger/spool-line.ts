import { crc32 } from 'node:zlib'
import type { CallClosing } from './call.ts'
import { CALL_COLUMNS, CLOSING_NAMES, type ColumnKind, TOKEN_COLUMNS } from './call-columns.ts'

/**
 * A line of the settlement spool: a checksum, a space, JSON. The checksum finds what a crash has torn and what a disk
 * has changed; a figure that was changed could otherwise still be a figure.
 */
export type SpoolEntry =
  | { readonly kind: 'kept'; readonly closing: CallClosing }
  /** The store has taken it. */
  | { readonly kind: 'done'; readonly requestId: string }

export function keptLine(closing: CallClosing): Buffer {
  return toLine(JSON.stringify({ kept: amountsAsText(closing) }))
}

export function doneLine(requestId: string): Buffer {
  return toLine(JSON.stringify({ done: requestId }))
}

/** For a person, who may want to know why and to book it by hand. */
export function refusedLine(closing: CallClosing, reason: string): Buffer {
  return Buffer.from(`${JSON.stringify({ refused: reason, kept: amountsAsText(closing) })}\n`)
}

/** What a line says, without its newline; null if it is damaged. */
export function readSpoolLine(line: Buffer): SpoolEntry | null {
  const json = line.subarray(CHECKSUM_CHARS + 1)
  if (line.subarray(0, CHECKSUM_CHARS + 1).toString('latin1') !== `${checksumOf(json)} `) return null
  const { done, kept } = parseObject(json.toString())
  if (typeof done === 'string') return { kind: 'done', requestId: done }
  const closing = readClosing(kept)
  return closing === null ? null : { kind: 'kept', closing }
}

/** Nothing in it if it is none: a file may have been written by anybody, checksums and all. */
function parseObject(json: string): { readonly done?: unknown; readonly kept?: unknown } {
  try {
    const value: unknown = JSON.parse(json)
    return typeof value === 'object' && value !== null ? value : {}
  } catch {
    return {}
  }
}

const CHECKSUM_CHARS = 8

function toLine(json: string): Buffer {
  return Buffer.from(`${checksumOf(json)} ${json}\n`)
}

function checksumOf(json: Buffer | string): string {
  return crc32(json).toString(16).padStart(CHECKSUM_CHARS, '0')
}

/** As JSON numbers the amounts would pass through doubles. */
type Written = Omit<CallClosing, 'costNanos' | 'listNanos'> & Record<'costNanos' | 'listNanos', string>

function amountsAsText(closing: CallClosing): Written {
  return { ...closing, costNanos: String(closing.costNanos), listNanos: String(closing.listNanos) }
}

/**
 * Null where it is not what this version writes. A column that may be null may be missing: the version before may not
 * have had it.
 */
function readClosing(value: unknown): CallClosing | null {
  if (!fits(value, CLOSING)) return null
  const members: Record<string, unknown> = { ...value }
  for (const name of NULLABLE) members[name] ??= null
  const written = members as unknown as Written
  if (!fits(written.tokens, TOKENS)) return null
  return { ...written, costNanos: BigInt(written.costNanos), listNanos: BigInt(written.listNanos) }
}

type Check = (value: unknown) => boolean
type Shape = Readonly<Record<string, Check>>

const isText: Check = (value) => typeof value === 'string'
const isNumber: Check = (value) => typeof value === 'number'
const isAmount: Check = (value) => typeof value === 'string' && /^-?\d+$/.test(value)
const isState: Check = (value) => value === 'settled' || value === 'released' || value === 'interrupted'
const orMissing =
  (is: Check): Check =>
  (value) =>
    value === null || value === undefined || is(value)

const IS: Readonly<Record<ColumnKind, Check>> = {
  text: isText,
  'text?': orMissing(isText),
  count: isNumber,
  'count?': orMissing(isNumber),
  flag: (value) => typeof value === 'boolean',
  nanos: isAmount,
  'nanos?': orMissing(isAmount),
}

const CLOSING: Shape = {
  ...{ requestId: isText, state: isState, atMs: isNumber, tokens: (value) => value !== undefined },
  ...Object.fromEntries(CLOSING_NAMES.map((name) => [name, IS[CALL_COLUMNS[name].kind]])),
}

const NULLABLE = CLOSING_NAMES.filter((name) => CALL_COLUMNS[name].kind.endsWith('?'))

const TOKENS: Shape = Object.fromEntries(Object.keys(TOKEN_COLUMNS).map((name) => [name, isNumber]))

function fits(value: unknown, shape: Shape): value is object {
  if (typeof value !== 'object' || value === null) return false
  const members = value as Readonly<Record<string, unknown>>
  return Object.entries(shape).every(([name, is]) => is(members[name]))
}
