import type { MarkTable } from './mark-table.ts'

/** Marks a name that the gateway does not read, but that some servers may treat as a name that it reads. */
export const AMBIGUOUS: unique symbol = Symbol('ambiguous')

/** A name with escapes, or with characters outside ASCII. Decoding it takes 3 µs. */
export const UNDECODED: unique symbol = Symbol('undecoded')

/** Names without these characters are plain ASCII without escapes. */
const ODD = /[\\\0\x80-\xff]/

/**
 * Names that are read, and other spellings that some servers treat like them. Go's encoding/json and .NET's web
 * defaults ignore case (Go even equates U+017F with `s` and U+212A with `k`), C parsers end a name at U+0000, and
 * parsers differ on lone surrogates.
 */
export class NameTable<Entry> {
  readonly #exact = new Map<string, Entry>()
  readonly #folded = new Set<string>()

  constructor(entries: Iterable<readonly [name: string, entry: Entry]>) {
    for (const [name, entry] of entries) {
      this.#exact.set(name, entry)
      this.#folded.add(fold(name))
    }
  }

  /** The entry for the raw name between two quotes. UNDECODED: the caller decodes the name, and limits how many. */
  find(bytes: Buffer, from: number, to: number): Entry | null | typeof AMBIGUOUS | typeof UNDECODED {
    const written = bytes.toString('latin1', from, to)
    const entry = this.#exact.get(written)
    if (entry !== undefined) return entry
    if (ODD.test(written)) return UNDECODED
    return this.#folded.has(written.toLowerCase()) ? AMBIGUOUS : null
  }

  findText(name: string): Entry | null | typeof AMBIGUOUS {
    const entry = this.#exact.get(name)
    if (entry !== undefined) return entry
    const isOdd = name.includes('\0') || !name.isWellFormed() || this.#folded.has(fold(name))
    return isOdd ? AMBIGUOUS : null
  }
}

/** Converts to upper case first, to fold letters that `toLowerCase` does not change, such as U+017F. */
function fold(name: string): string {
  return name.toUpperCase().toLowerCase()
}

/** Which parts of a JSON text a skim reads: see json-skim.ts. */
export interface Shape {
  readonly kind: 'value' | 'scalar' | 'size' | 'object' | 'array'
  readonly names: NameTable<NamedShape> | null
  readonly each: Shape | null
  /** Whether array elements are stored. If not, they are passed to a callback one by one. */
  readonly listed: boolean
  /** Whether the name of this member and strings in it set no marks: tool schemas have properties called `url` or `id`. */
  readonly unmarked: boolean
}

interface NamedShape {
  readonly name: string
  readonly shape: Shape
}

const LEAF = { names: null, each: null, listed: false, unmarked: false }
export const VALUE: Shape = { ...LEAF, kind: 'value' }
export const SCALAR: Shape = { ...LEAF, kind: 'scalar' }
export const SIZE: Shape = { ...LEAF, kind: 'size' }
export const UNMARKED_VALUE: Shape = { ...VALUE, unmarked: true }

export function objectShape(members: Readonly<Record<string, Shape>>): Shape {
  const named = Object.entries(members).map(([name, shape]) => [name, { name, shape }] as const)
  return { ...LEAF, kind: 'object', names: new NameTable(named) }
}

export function scalars(names: string): Record<string, Shape> {
  return Object.fromEntries(names.split(' ').map((name) => [name, SCALAR]))
}

/** An array whose elements are passed to a callback one by one. */
export function eachShape(each: Shape): Shape {
  return { ...LEAF, kind: 'array', each }
}

/** An array whose elements are stored. */
export function listShape(each: Shape): Shape {
  return { ...LEAF, kind: 'array', each, listed: true }
}

/** Stands for a long string, an object or an array that was not read. Only its raw size is known. */
export class Sized {
  readonly bytes: number
  readonly isText: boolean

  constructor(bytes: number, isText: boolean) {
    this.bytes = bytes
    this.isText = isText
  }
}

/** Stands for a value that was present but not read, for example because it was too long. */
export const UNREAD: unique symbol = Symbol('unread')

export type JsonObject = Readonly<Record<string, unknown>>

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export interface Span {
  readonly start: number
  readonly end: number
}

export type UnreadableJson =
  | 'empty'
  /** The text may begin with a byte order mark, which some parsers skip and some refuse. */
  | 'byte_order_mark'
  | 'not_utf8'
  | 'not_json'
  | 'not_an_object'
  | 'truncated'
  | 'trailing_bytes'
  | 'too_deep'
  | 'name_too_long'
  | 'ambiguous_name'

export type Skimmed =
  | {
      readonly kind: 'object'
      readonly value: JsonObject
      readonly spans: ReadonlyMap<string, Span>
      /** Names that are read and given more than once. `value` has the first; parsers differ on which counts. */
      readonly duplicates: readonly string[]
      readonly nestedDuplicates: readonly string[]
      /** The marks of all strings at any depth, escaped or not: bits of the `MarkTable`. */
      readonly marks: number
      readonly bytes: number
      readonly overflow: boolean
      /** The offset of the closing brace, before which a member can be inserted. */
      readonly objectEnd: number
    }
  | { readonly kind: 'unreadable'; readonly reason: UnreadableJson }

export interface SkimmedElement {
  readonly value: unknown
  readonly bytes: number
  readonly marks: number
}

export interface SkimOptions {
  /** Receives the elements of an `eachShape`. */
  readonly onElement?: (element: SkimmedElement) => void
  readonly depthMax?: number | undefined
  readonly marks?: MarkTable
}

export const SKIM_LIMITS = {
  /** For requests: common parsers stop between 64 (.NET) and 10,000 (Go). */
  depthMax: 512,
  /** For replies, whose usage must be found whatever tool input or schema they contain. */
  replyDepthMax: 2 ** 20,
  copiedBytesMax: 256 * 1024,
  scalarBytesMax: 256,
  nameBytesMax: 1024,
  /** No API has a name with an escape. A million of them, compressed, would take seconds. */
  undecodedNamesMax: 1_000,
  listedMax: 20_000,
} as const

/** An open container of the shape. `object` is null for an array; `list` is set only for a stored array. */
export interface Frame {
  readonly outer: Frame | null
  readonly shape: Shape
  readonly object: Record<string, unknown> | null
  readonly list: unknown[] | null
  readonly start: number
  member: NamedShape | null
  elementStart: number
  marksBefore: number
  copiedBytesBefore: number
}

export function openFrame(outer: Frame | null, shape: Shape, start: number): Frame {
  const object = shape.kind === 'object' ? {} : null
  const list = shape.listed ? [] : null
  const before = { elementStart: 0, marksBefore: 0, copiedBytesBefore: 0 }
  return { outer, shape, object, list, start, member: null, ...before }
}

/** A parsed body or event. `value` has either the whole document or only the members of the shape. */
export interface ReplyDocument {
  readonly value: unknown
  readonly repeatsNames: () => boolean
  readonly isWhole: boolean
  readonly overflow: boolean
}
