import { limits } from '../kernel/limits.ts'
import type { Bound } from '../kernel/money.ts'
import { codingOf, decodeCopy } from './decode-copy.ts'
import type { JsonObject, Shape, Skimmed, SkimmedElement, Span } from './json-shape.ts'
import { JsonSkim } from './json-skim.ts'
import { boundaryOf, FOREIGN_CHARSET, type MultipartScan, MultipartScanner } from './multipart-scanner.ts'

/** A request as far as it was read: a plain object, the same for JSON, forms, messages of sockets and lines of batches. */
export interface RequestFacts {
  /** `not_read`: there was no body, or this endpoint does not need it. `unreadable`: `ambiguity` says why. */
  readonly kind: 'not_read' | 'json' | 'form' | 'unreadable'
  /** The members that somebody reads, parsed. UNREAD stands for a value that is there and was not read. */
  readonly body: JsonObject
  /** All tools of the body, those inside of namespaces among them; null where they cannot be read. */
  readonly tools: readonly JsonObject[] | null
  readonly others: OtherModels
  /** Where the members of a JSON body stand, and its closing brace, for the one change that a body may need. */
  readonly spans: ReadonlyMap<string, Span>
  readonly objectEnd: number
  readonly marks: number
  readonly bytes: number
  readonly items: ItemFacts
  readonly ambiguity: Ambiguity | null
}

export interface OtherModels {
  readonly names: readonly string[]
  readonly unreadable: string | null
  readonly open: string | null
}

/** The facts in the items of a body: the items of a conversation, the requests of a batch. There may be many of them. */
export interface ItemFacts {
  readonly models: readonly string[]
  /** Why the items may lead to other models too, as a sentence, or null. */
  readonly unknown: string | null
  readonly bringsTools: boolean
  readonly refersElsewhere: boolean
  /** Some items ask for the conversation before them to be summed up. */
  readonly compacts: boolean
  /** The most that the requests of a batch may cost together; null where the items are no batch. */
  readonly bound: Bound | null
  readonly ambiguity: Ambiguity | null
}

export const NO_ITEMS: ItemFacts = {
  models: [],
  unknown: null,
  bringsTools: false,
  refersElsewhere: false,
  compacts: false,
  bound: null,
  ambiguity: null,
}

export interface Ambiguity {
  readonly detail: string
  /** `always`: parsers differ on what a metered body says. `limited`: it could not be read here. */
  readonly refuse: 'always' | 'limited'
}

const NO_SPANS: ReadonlyMap<string, Span> = new Map()

export const NOT_READ: RequestFacts = {
  kind: 'not_read',
  body: {},
  tools: [],
  others: { names: [], unreadable: null, open: null },
  spans: NO_SPANS,
  objectEnd: 0,
  marks: 0,
  bytes: 0,
  items: NO_ITEMS,
  ambiguity: null,
}

/** No model's name is longer. A longer text names no model, and is not worth storing in every record. */
export const MODEL_NAME_CHARS_MAX = 256

/** A body as its format has it. `doubt` says why upstream may find something else in it. */
export type ReadBytes =
  | {
      readonly kind: 'json'
      readonly skimmed: Extract<Skimmed, { kind: 'object' }>
      readonly doubt: Doubt | null
    }
  | {
      readonly kind: 'form'
      readonly form: Extract<MultipartScan, { kind: 'form' }>
      readonly doubt: Doubt | null
    }
  | { readonly kind: 'unreadable'; readonly reason: string }

/**
 * - `may_be_form`: the body's type says that it is a form, and its content could be one: `{"model":"a","x":"&model=b&"}`.
 * - `deflate`: some servers take that for the zlib format and some for bare deflate, and bytes can be made that are both.
 * - `foreign_charset`: the body's type says that its text is not UTF-8; where upstream believes that, quotes may stand elsewhere.
 */
export type Doubt = 'may_be_form' | 'deflate' | 'foreign_charset'

/** Reads a body from its chunks as they pass. A reader can neither change nor stop a body. */
export interface BytesReader {
  readonly write: (chunk: Buffer) => Promise<void> | null
  end(): ReadBytes | Promise<ReadBytes>
}

export interface Reads {
  readonly shape: Shape
  readonly onElement: ((element: SkimmedElement) => void) | null
  readonly fields: readonly string[]
}

interface SyncReader {
  write(chunk: Buffer): null
  end(): ReadBytes
}

/** Chooses the reader by the request's content type and coding: a form is read as a form, all else as JSON. */
export function readerFor(
  contentType: string | undefined,
  contentEncoding: string | undefined,
  reads: Reads,
): BytesReader {
  const coding = codingOf(contentEncoding)
  if (coding === 'unknown') return unreadable('unknown_content_encoding')
  const isDeflated = coding !== 'identity' && coding.coding === 'deflate'
  const doubt = isDeflated ? 'deflate' : FOREIGN_CHARSET.test(contentType ?? '') ? 'foreign_charset' : null
  const reader = plainReader(contentType ?? '', reads, doubt)
  return coding === 'identity' ? reader : decoded(reader, coding.coding)
}

export function unreadable(reason: string): SyncReader {
  return { write: () => null, end: () => ({ kind: 'unreadable', reason }) }
}

function plainReader(contentType: string, reads: Reads, doubt: Doubt | null): SyncReader {
  if (/^\s*multipart\/form-data\b/i.test(contentType)) return formReader(contentType, reads, doubt)
  if (/multipart/i.test(contentType)) return unreadable('ambiguous_content_type')
  return jsonReader(reads, doubt, /urlencoded/i.test(contentType))
}

/** The separators of the fields of a form; some parsers still know the semicolon. */
const [AMPERSAND, SEMICOLON] = [0x26, 0x3b]

/** curl says `urlencoded` of every body that is given with -d. JSON without a separator of fields is one field of no name. */
function jsonReader({ shape, onElement }: Reads, doubt: Doubt | null, isUrlencoded: boolean): SyncReader {
  const skim = new JsonSkim(shape, onElement)
  let mayBeForm = false
  return {
    write(chunk) {
      if (isUrlencoded) mayBeForm ||= chunk.includes(AMPERSAND) || chunk.includes(SEMICOLON)
      skim.write(chunk)
      return null
    },
    end() {
      const skimmed = skim.end()
      if (skimmed.kind === 'unreadable') return { kind: 'unreadable', reason: skimmed.reason }
      return { kind: 'json', skimmed, doubt: mayBeForm ? 'may_be_form' : doubt }
    },
  }
}

function formReader(contentType: string, { fields }: Reads, doubt: Doubt | null): SyncReader {
  const boundary = boundaryOf(contentType)
  if (boundary === null) return unreadable('no_boundary')
  const scanner = new MultipartScanner(boundary, fields)
  return {
    write(chunk) {
      scanner.write(chunk)
      return null
    },
    end() {
      const form = scanner.end()
      if (form.kind === 'unreadable') return { kind: 'unreadable', reason: form.reason }
      return { kind: 'form', form, doubt }
    },
  }
}

/** Reads in turns of the event loop, a piece at a time, however much one piece of compressed bytes decodes to. */
function decoded(reader: SyncReader, coding: string): BytesReader {
  const { decodedBodyBytesMax, decodedRatioMax: ratioMax } = limits
  const decoder = decodeCopy(coding, decodedBodyBytesMax, (bytes) => reader.write(bytes), { ratioMax })
  return {
    write: (chunk) => decoder.write(chunk),
    async end() {
      const state = await decoder.end()
      if (state === 'whole') return reader.end()
      return { kind: 'unreadable', reason: state === 'corrupt' ? 'corrupt_content_encoding' : state }
    },
  }
}

/** How much of a text is read at a time: other work of the event loop comes in between. */
export const PIECE_BYTES = 64 * 1024

export async function writeInPieces(text: Buffer, write: (piece: Buffer) => unknown): Promise<void> {
  for (let from = 0; from < text.length; from += PIECE_BYTES) {
    if (from > 0) await new Promise((resolve) => setImmediate(resolve))
    await write(text.subarray(from, from + PIECE_BYTES))
  }
}
