import { isObject, objectShape, type ReplyDocument, SCALAR, type Span } from '../metering/json-shape.ts'
import { skimWhole } from '../metering/json-skim.ts'
import { BLANKS } from '../metering/json-tokens.ts'
import type { EventCut } from '../metering/sse-events.ts'
import type { RequestFacts } from './request-facts.ts'

export interface Splice {
  readonly at: number
  readonly deleteBytes: number
  readonly insert: Buffer
}

const INCLUDE_USAGE = '"include_usage":true'

/**
 * How to change a request to /chat/completions or /completions so that its stream reports usage, by offsets in the
 * decoded body. Null: the reply has usage anyway. A request whose `stream_options` cannot take `include_usage` was
 * refused as ambiguous before.
 */
export function requestUsage({
  body,
  spans,
  objectEnd,
}: Pick<RequestFacts, 'body' | 'spans' | 'objectEnd'>): Splice | null {
  const { stream, stream_options: options } = body
  if (stream !== true) return null
  const span = spans.get('stream_options')
  // The comma is always needed, because the object has the member `stream`.
  if (span === undefined) return splice(objectEnd, 0, `,"stream_options":{${INCLUDE_USAGE}}`)
  if (!isObject(options)) return splice(span.start, span.end - span.start, `{${INCLUDE_USAGE}}`)
  if (options['include_usage'] === true) return null
  if (options['include_usage'] !== undefined)
    return splice(span.start, span.end - span.start, JSON.stringify({ ...options, include_usage: true }))
  return splice(span.start + 1, 0, Object.keys(options).length === 0 ? INCLUDE_USAGE : `${INCLUDE_USAGE},`)
}

function splice(at: number, deleteBytes: number, insert: string): Splice {
  return { at, deleteBytes, insert: Buffer.from(insert) }
}

export function applySplice(pieces: readonly Buffer[], { at, deleteBytes, insert }: Splice): Buffer[] {
  const out: Buffer[] = []
  let offset = 0
  let isInserted = false
  for (const piece of pieces) {
    const end = offset + piece.length
    if (offset < at) out.push(piece.subarray(0, at - offset))
    if (!isInserted && end >= at) {
      isInserted = true
      out.push(insert)
    }
    if (end > at + deleteBytes) out.push(piece.subarray(Math.max(0, at + deleteBytes - offset)))
    offset = end
  }
  return out
}

/** Removes a chunk that reports only usage, and the `usage` member of any other. All other bytes stay. */
export function cutUsage(document: ReplyDocument | null, data: Buffer, isLast: boolean): EventCut {
  if (document === null || !document.isWhole) return isLast ? cutUnfinished(data) : 'pass'
  const chunk = document.value
  if (!isObject(chunk) || !Object.hasOwn(chunk, 'usage')) return 'pass'
  const { choices, usage } = chunk
  if (Array.isArray(choices) && choices.length === 0 && usage !== null) return 'remove'
  const span = (usage === null ? singleNullUsage(data) : null) ?? usageIn(data)
  return span === null ? 'pass' : memberCut(data, span)
}

/** Fast path for nearly every chunk: `usage` is null and the word occurs only once. Null for other chunks. */
function singleNullUsage(data: Buffer): Span | null {
  const word = data.indexOf('usage')
  if (word < 0 || data.includes('usage', word + 5) || data.includes('\\u00')) return null
  const start = data.indexOf('null', word)
  return { start, end: start + 'null'.length }
}

const CHUNK = objectShape({ usage: SCALAR })

/** A chunk with two `usage` members, which no server sends, stays unchanged. */
function usageIn(data: Buffer): Span | null {
  const skimmed = skimWhole(data, CHUNK)
  if (skimmed.kind === 'unreadable' || skimmed.duplicates.length > 0) return null
  return skimmed.spans.get('usage') ?? null
}

const [COMMA, QUOTE, COLON] = [0x2c, 0x22, 0x3a]

/** The member with its comma and whitespace, so that the chunk looks as if written without usage. */
function memberCut(data: Buffer, { start, end }: Span): EventCut {
  const colon = data.lastIndexOf(COLON, start)
  const nameStart = data.lastIndexOf(QUOTE, data.lastIndexOf(QUOTE, colon) - 1)
  const before = skipBlanksBack(data, nameStart)
  if (data[before - 1] === COMMA) return [skipBlanksBack(data, before - 1), end]
  const after = skipBlanks(data, end)
  return [nameStart, data[after] === COMMA ? skipBlanks(data, after + 1) : end]
}

function skipBlanks(data: Buffer, from: number): number {
  let i = from
  while (BLANKS[data[i] ?? 0] === 1) i++
  return i
}

function skipBlanksBack(data: Buffer, to: number): number {
  let i = to
  while (BLANKS[data[i - 1] ?? 0] === 1) i--
  return i
}

/** Matches chunks with a choice or an error. They are not the chunk that reports usage. */
const ORDINARY = /"choices"\s*:\s*\[\s*[^\s\]]|"error"\s*:/

/** The start of a `usage` member, escaped or not, or of an incomplete name. */
const USAGE_BEGINS = /(?:\s*,|(?<=\{))\s*"(?:usage"|[^"]*\\u00)|\s*(?:,\s*(?:"[^"]*"?\s*)?)?$/

/** The cut of a chunk in which the stream broke: the client gets everything before the part that may be usage. */
function cutUnfinished(data: Buffer): EventCut {
  const text = data.toString('latin1')
  if (!/^\s*(?:\{|$)/.test(text)) return 'pass'
  if (!ORDINARY.test(text)) return 'remove'
  return [text.search(USAGE_BEGINS), text.length]
}
