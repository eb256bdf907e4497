import { capturing } from '../../metering/json-place.ts'
import type { JsonMember } from '../../metering/json-scan.ts'
import { scanJson } from '../../metering/json-walker.ts'

/** One change of a text of bytes: at `at`, `deleteBytes` are taken out and `insert` is put in. */
export interface Splice {
  readonly at: number
  readonly deleteBytes: number
  readonly insert: Buffer
}

/** The facts of a request that `askForUsage` needs; every scan that watched these two names will do. */
export interface ScannedRequest {
  readonly members: { get(name: 'stream' | 'stream_options'): JsonMember | undefined }
  readonly duplicates: readonly string[]
  readonly objectEnd: number
}

/**
 * Why a stream's usage cannot be asked for without changing what the client said. Such requests are refused to every
 * key before they get here.
 */
export type CannotAsk =
  /** Servers differ on which of two members counts. */
  | 'stream_twice'
  | 'stream_options_twice'
  | 'include_usage_twice'
  /** Upstream refuses such `stream_options`, and the client is to see the refusal. */
  | 'stream_options_no_object'
  | 'stream_options_too_long'
  /** The options have a name that some servers take for `include_usage` and others do not. */
  | 'stream_options_ambiguous'
  /** Some servers refuse `"true"` and 1, some take them for true; setting true would hide either. */
  | 'include_usage_no_boolean'

export type UsageAsk =
  /** `stream` is not true: the reply is JSON and has its usage in any case, or the request is refused. */
  | { readonly kind: 'not_streaming' }
  /** The client asked for usage itself, so its stream stays as it is. */
  | { readonly kind: 'asked' }
  | { readonly kind: 'edit'; readonly splice: Splice }
  | { readonly kind: 'cannot'; readonly reason: CannotAsk }

const ASKING_OBJECT = '{"include_usage":true}'

/**
 * How a request to /chat/completions or /completions is to be changed so that its stream reports usage. One splice at
 * most. Everything the client wrote stays where it is, byte for byte.
 */
export function askForUsage(request: ScannedRequest): UsageAsk {
  const { members, duplicates } = request
  const stream = members.get('stream')
  if (duplicates.includes('stream')) return cannot('stream_twice')
  if (stream?.kind !== 'boolean' || !stream.value) return { kind: 'not_streaming' }
  if (duplicates.includes('stream_options')) return cannot('stream_options_twice')

  const options = members.get('stream_options')
  // A comma is always due, because the object has `stream`.
  if (options === undefined) return edit(request.objectEnd, 0, `,"stream_options":${ASKING_OBJECT}`)
  return askInOptions(options)
}

/** How the `stream_options` of a stream are to be changed so that it reports usage. */
export function askInOptions(options: JsonMember): UsageAsk {
  switch (options.kind) {
    case 'null':
      return edit(options.start, options.end - options.start, ASKING_OBJECT)
    case 'object':
      return askInside(options.start, options.json)
    case 'too_long':
      return cannot(options.type === 'object' ? 'stream_options_too_long' : 'stream_options_no_object')
    default:
      return cannot('stream_options_no_object')
  }
}

const OPTION_NAMES = capturing(['include_usage'])

/** `json` is the text at `start`: it was read as UTF-8 without a fault, so encoding it gives the same bytes. */
function askInside(start: number, json: string): UsageAsk {
  // The texts that nearly every client sends that asks for usage itself.
  if (json === ASKING_OBJECT || json === '{"include_usage": true}') return { kind: 'asked' }
  const scan = scanJson(Buffer.from(json), OPTION_NAMES)
  if (scan.kind === 'unreadable') return cannot('stream_options_ambiguous')
  if (scan.duplicates.length > 0) return cannot('include_usage_twice')
  const asks = scan.members.get('include_usage')
  if (asks === undefined) {
    return edit(start + scan.objectEnd, 0, `${scan.empty ? '' : ','}"include_usage":true`)
  }
  if (asks.kind === 'boolean' && asks.value) return { kind: 'asked' }
  if (asks.kind !== 'boolean' && asks.kind !== 'null') return cannot('include_usage_no_boolean')
  return edit(start + asks.start, asks.end - asks.start, 'true')
}

function edit(at: number, deleteBytes: number, insert: string): UsageAsk {
  return { kind: 'edit', splice: { at, deleteBytes, insert: Buffer.from(insert) } }
}

function cannot(reason: CannotAsk): UsageAsk {
  return { kind: 'cannot', reason }
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
