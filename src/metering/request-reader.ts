import { limits } from '../kernel/limits.ts'
import type { Bound } from '../kernel/money.ts'
import { codingOf, decodeCopy } from './decode-copy.ts'
import type { JsonObject, Shape, Skimmed, SkimmedElement, Span } from './json-shape.ts'
import { JsonSkim } from './json-skim.ts'
import { boundaryOf, FOREIGN_CHARSET, type MultipartScan, MultipartScanner } from './multipart-scanner.ts'

/** What was read of a request, the same for JSON bodies, forms, socket messages and batch lines. */
export interface RequestFacts {
  /** `not_read`: no body, or the endpoint does not need it. `unreadable`: `ambiguity` says why. */
  readonly kind: 'not_read' | 'json' | 'form' | 'unreadable'
  /** The parsed members. UNREAD: present but not read. */
  readonly body: JsonObject
  /** All tools of the body, including those in namespaces; null if they cannot be read. */
  readonly tools: readonly JsonObject[] | null
  readonly others: OtherModels
  /** Positions of the members and of the closing brace, for injecting `include_usage`. */
  readonly spans: ReadonlyMap<string, Span>
  readonly objectEnd: number
  readonly marks: number
  readonly bytes: number
  readonly items: ItemFacts
  readonly ambiguity: Ambiguity | null
}

export interface OtherModels {
  readonly names: readonly string[]
  /** Why there may be more models than the names, or null. */
  readonly unknown: string | null
}

/** Facts about the items of a body: a conversation's items, a batch's requests. There may be many. */
export interface ItemFacts {
  readonly models: readonly string[]
  /** Why the items may use further models, as a sentence; null if not. */
  readonly unknown: string | null
  readonly bringsTools: boolean
  readonly refersElsewhere: boolean
  /** Some items request compaction of the conversation before them. */
  readonly compacts: boolean
  /** Upper bound of all requests of a batch; null if the items are not a batch. */
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
  /** `always`: parsers differ on the meaning of a metered body. `limited`: it could not be read here. */
  readonly refuse: 'always' | 'limited'
}

const NO_SPANS: ReadonlyMap<string, Span> = new Map()

export const NOT_READ: RequestFacts = {
  kind: 'not_read',
  body: {},
  tools: [],
  others: { names: [], unknown: null },
  spans: NO_SPANS,
  objectEnd: 0,
  marks: 0,
  bytes: 0,
  items: NO_ITEMS,
  ambiguity: null,
}

/** No model name is longer, so longer texts are not stored. */
export const MODEL_NAME_CHARS_MAX = 256

/** A body, read by its format. `doubt`: why upstream may read something else. */
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

/** Reads a body as it passes. Cannot change or stop it. */
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

/** Chooses the reader by content type and coding: forms as forms, everything else as JSON. */
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

/** Field separators of a form. Some parsers still accept the semicolon. */
const [AMPERSAND, SEMICOLON] = [0x26, 0x3b]

/** curl sends `urlencoded` with every -d. A JSON body without `&` or `;` would be a single form field, so reading it as JSON is safe. */
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

/** Reads one piece per turn of the event loop, however much a compressed chunk decodes to. */
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

/** How much text is read at a time before other work gets its turn. */
export const PIECE_BYTES = 64 * 1024

export async function writeInPieces(text: Buffer, write: (piece: Buffer) => unknown): Promise<void> {
  for (let from = 0; from < text.length; from += PIECE_BYTES) {
    if (from > 0) await new Promise((resolve) => setImmediate(resolve))
    await write(text.subarray(from, from + PIECE_BYTES))
  }
}
