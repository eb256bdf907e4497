import type { RequestFacts } from '../../metering/request-facts.ts'
import { isGiven, isObject } from '../request-members.ts'

/** One change of a text of bytes: at `at`, `deleteBytes` are taken out and `insert` is put in. */
export interface Splice {
  readonly at: number
  readonly deleteBytes: number
  readonly insert: Buffer
}

export type UsageAsk =
  /** `stream` is not true: the reply is JSON and has its usage in any case, or the request is refused. */
  | { readonly kind: 'not_streaming' }
  /** The client asked for usage itself, so its stream stays as it is. */
  | { readonly kind: 'asked' }
  | { readonly kind: 'edit'; readonly splice: Splice }

const ASKING = '"include_usage":true'

/**
 * How a request to /chat/completions or /completions is to be changed so that its stream reports usage. One splice at
 * most; offsets are those of the decoded body. A request whose `stream_options` cannot take `include_usage` is refused as
 * ambiguous before it gets here.
 */
export function askForUsage({
  body,
  spans,
  objectEnd,
}: Pick<RequestFacts, 'body' | 'spans' | 'objectEnd'>): UsageAsk {
  const { stream, stream_options: options } = body
  if (stream !== true) return { kind: 'not_streaming' }
  const span = spans.get('stream_options')
  // A comma is always due, because the object has `stream`.
  if (span === undefined) return edit(objectEnd, 0, `,"stream_options":{${ASKING}}`)
  if (!isObject(options)) return edit(span.start, span.end - span.start, `{${ASKING}}`)
  if (options['include_usage'] === true) return { kind: 'asked' }
  if (isGiven(options['include_usage']) || options['include_usage'] === null)
    return edit(span.start, span.end - span.start, JSON.stringify({ ...options, include_usage: true }))
  return edit(span.start + 1, 0, Object.keys(options).length === 0 ? ASKING : `${ASKING},`)
}

function edit(at: number, deleteBytes: number, insert: string): UsageAsk {
  return { kind: 'edit', splice: { at, deleteBytes, insert: Buffer.from(insert) } }
}

/** The pieces of a text with the change made. Bytes that stay are not copied. */
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
