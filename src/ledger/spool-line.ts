import { crc32 } from 'node:zlib'
import type { CallClosing, TokenCounts } from './call.ts'

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

/** Null where it is not what this version writes. */
function readClosing(value: unknown): CallClosing | null {
  if (!fits(value, CLOSING)) return null
  const written = value as Written & Record<string, unknown>
  if (!fits(written.tokens, TOKENS)) return null
  return { ...written, costNanos: BigInt(written.costNanos), listNanos: BigInt(written.listNanos) }
}

type Shape = Readonly<Record<string, (value: unknown) => boolean>>

const isText = (value: unknown) => typeof value === 'string'
const isFlag = (value: unknown) => typeof value === 'boolean'
const isNumber = (value: unknown) => typeof value === 'number'
const isAmount = (value: unknown) => typeof value === 'string' && /^-?\d+$/.test(value)
const isState = (value: unknown) => value === 'settled' || value === 'released' || value === 'interrupted'
const isAny = (value: unknown) => value !== undefined
const orNull = (is: (value: unknown) => boolean) => (value: unknown) => value === null || is(value)

const CLOSING = {
  requestId: isText,
  state: isState,
  atMs: isNumber,
  status: orNull(isNumber),
  modelServed: orNull(isText),
  stopReason: orNull(isText),
  streamed: isFlag,
  estimated: isFlag,
  unpriced: isFlag,
  pricedAsRequested: isFlag,
  usage: orNull(isText),
  tokens: isAny,
  costNanos: isAmount,
  listNanos: isAmount,
  upstreamMs: orNull(isNumber),
  overheadMs: isNumber,
  upstreamRequestId: orNull(isText),
  bytesIn: isNumber,
  bytesOut: isNumber,
} satisfies Record<keyof CallClosing, unknown>

const TOKENS = {
  input: isNumber,
  output: isNumber,
  cacheRead: isNumber,
  cacheWrite: isNumber,
} satisfies Record<keyof TokenCounts, unknown>

function fits(value: unknown, shape: Shape): value is object {
  if (typeof value !== 'object' || value === null) return false
  const members = value as Readonly<Record<string, unknown>>
  return Object.entries(shape).every(([name, is]) => is(members[name]))
}
