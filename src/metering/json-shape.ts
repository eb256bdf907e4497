import { NameTable } from './name-table.ts'

/** The part of a JSON text that a skim reads: see json-skim.ts. */
export interface Shape {
  readonly kind: 'value' | 'glance' | 'size' | 'object' | 'array'
  readonly names: NameTable<NamedShape> | null
  readonly each: Shape | null
  /** The elements of an array are kept, and not handed over one by one. */
  readonly listed: boolean
  /** Strings in the value mark nothing. Schemas of tools have properties called `url` or `id`. */
  readonly unmarked: boolean
}

export interface NamedShape {
  readonly name: string
  readonly shape: Shape
}

const LEAF = { names: null, each: null, listed: false, unmarked: false }
export const VALUE: Shape = { ...LEAF, kind: 'value' }
export const GLANCE: Shape = { ...LEAF, kind: 'glance' }
export const SIZE: Shape = { ...LEAF, kind: 'size' }
export const UNMARKED_VALUE: Shape = { ...VALUE, unmarked: true }

export function objectShape(members: Readonly<Record<string, Shape>>): Shape {
  const named = Object.entries(members).map(([name, shape]) => [name, { name, shape }] as const)
  return { ...LEAF, kind: 'object', names: new NameTable(named) }
}

/** Members that are glanced at, by their names with blanks between them. */
export function glances(names: string): Record<string, Shape> {
  return Object.fromEntries(names.split(' ').map((name) => [name, GLANCE]))
}

export function eachShape(each: Shape): Shape {
  return { ...LEAF, kind: 'array', each }
}

export function listShape(each: Shape): Shape {
  return { ...LEAF, kind: 'array', each, listed: true }
}

/** A string that is too long to be glanced at, or an object or array, of which only the size as written is known. */
export class Sized {
  readonly bytes: number
  readonly isText: boolean

  constructor(bytes: number, isText: boolean) {
    this.bytes = bytes
    this.isText = isText
  }
}

/** A value is there and was not read: it is too long, of another type, or an array whose elements were handed over. */
export const UNREAD: unique symbol = Symbol('unread')

export type JsonObject = Readonly<Record<string, unknown>>

/** Where the value of a member stands in the text, in bytes; `end` is exclusive. */
export interface Span {
  readonly start: number
  readonly end: number
}

export type UnreadableJson =
  | 'empty'
  /** The first byte is 0xEF, which opens a UTF-8 byte order mark: some parsers skip one, some refuse it. */
  | 'byte_order_mark'
  | 'not_utf8'
  | 'not_json'
  | 'not_an_object'
  | 'truncated'
  | 'trailing_bytes'
  | 'too_deep'
  /** A name of an object that is read, longer than `nameBytesMax`. */
  | 'name_too_long'
  /** An object that is read has more members than `membersMax`. */
  | 'too_many_members'
  /** A name that is not read, but that some parsers take for one that is. */
  | 'ambiguous_name'

export type Skimmed =
  | {
      readonly kind: 'object'
      readonly value: JsonObject
      /** The members of the outermost object that are read. */
      readonly spans: ReadonlyMap<string, Span>
      /** Names given more than once, where they are read. `value` has the first; parsers differ on which counts. */
      readonly duplicates: readonly string[]
      /** Names given more than once inside a VALUE. */
      readonly twiceInside: readonly string[]
      /** The marks of all strings, at any depth and however they are spelled: bits of content-marks.ts. */
      readonly marks: number
      readonly bytes: number
      /** A list had more elements than are kept, and ends early in `value`. */
      readonly overflow: boolean
      /** The offset of the closing brace, before which a member can be inserted. */
      readonly objectEnd: number
    }
  | { readonly kind: 'unreadable'; readonly reason: UnreadableJson; readonly at: number }

export interface SkimmedElement {
  readonly value: unknown
  readonly bytes: number
  readonly marks: number
}

export const SKIM_LIMITS = {
  /** Parsers in use stop between 64 (.NET) and 10,000 (Go). */
  depthMax: 512,
  keptBytesMax: 256 * 1024,
  glanceBytesMax: 256,
  nameBytesMax: 1024,
  membersMax: 4096,
  /** The elements of all lists of a text together. */
  listedMax: 20_000,
} as const

/** A container of the shape that is open. `object` is null for an array, `list` for all but an array that is kept. */
export interface Frame {
  readonly outer: Frame | null
  readonly shape: Shape
  readonly object: Record<string, unknown> | null
  readonly list: unknown[] | null
  /** Where the container begins, and what was found before the current element. */
  readonly start: number
  members: number
  member: NamedShape | null
  elementStart: number
  marksBefore: number
  keptBefore: number
}

export function openFrame(outer: Frame | null, shape: Shape, start: number): Frame {
  const object = shape.kind === 'object' ? {} : null
  const list = shape.listed ? [] : null
  const before = { elementStart: 0, marksBefore: 0, keptBefore: 0 }
  return { outer, shape, object, list, start, members: 0, member: null, ...before }
}
