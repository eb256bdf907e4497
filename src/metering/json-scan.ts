import { AMBIGUOUS, type FoundMember, type Picked, type Place } from './json-place.ts'

/** Where a member stands in the document, in bytes. `nameStart` is the name's opening quote; `end` is exclusive. */
export interface JsonSpan {
  readonly nameStart: number
  readonly start: number
  readonly end: number
}

export type JsonMember = JsonSpan &
  (
    | { readonly kind: 'null' }
    | { readonly kind: 'boolean'; readonly value: boolean }
    /** `raw` is the number as written: `value` cannot tell 9007199254740993 from 9007199254740992, nor 1 from 1.0. */
    | { readonly kind: 'number'; readonly value: number; readonly raw: string }
    /** As JSON.parse gives it: an escaped lone surrogate stays one, so it equals no well-formed string. */
    | { readonly kind: 'string'; readonly value: string }
    /** `json` is the value's text, and JSON.parse accepts it. */
    | { readonly kind: 'object' | 'array'; readonly json: string }
    /** Longer than `captureBytesMax`: only its type and its span are known. */
    | { readonly kind: 'too_long'; readonly type: 'string' | 'number' | 'object' | 'array' }
  )

export type UnreadableJson =
  /** Nothing but whitespace, or nothing at all. */
  | 'empty'
  /** The first byte is 0xEF, which opens a UTF-8 byte order mark: some parsers skip one, some refuse it. */
  | 'byte_order_mark'
  | 'not_utf8'
  | 'not_json'
  | 'not_an_object'
  | 'truncated'
  | 'trailing_bytes'
  | 'too_deep'
  | 'too_large'
  /** A name of an object that is looked into, longer than `nameBytesMax`. */
  | 'name_too_long'
  /** More top-level members than `membersMax`. */
  | 'too_many_members'
  /** A name that is not looked at, but that some parsers read as a name that is looked at. */
  | 'ambiguous_name'
  /** More was found at the places that are looked into than is kept at a time. */
  | 'too_much'

export type JsonScan<Name extends string = string> =
  | {
      readonly kind: 'object'
      /** The captured members. */
      readonly members: ReadonlyMap<Name, JsonMember>
      /** Captured names given more than once; `members` has the first of each, parsers differ on which counts. */
      readonly duplicates: readonly Name[]
      /** The offset of the closing brace, before which a member can be inserted. */
      readonly objectEnd: number
      /** True when there is no member at all, so that an inserted one needs no comma. */
      readonly empty: boolean
      /** The marks among the strings, at any depth and however they are spelled: bits of content-marks.ts. */
      readonly marks: number
      /** The values found at the places that were looked into. */
      readonly picked: Selection
    }
  | { readonly kind: 'unreadable'; readonly reason: UnreadableJson; readonly at: number }

export interface JsonScanLimits {
  /** The top-level object is depth 1. Parsers in use stop between 64 (.NET) and 10,000 (Go). */
  readonly depthMax: number
  readonly documentBytesMax: number
  /** Each captured value's length as written in the document; memory is at most this times the captured names. */
  readonly captureBytesMax: number
  /** The longest string or number, as written, that is read where the walker looks into the document. */
  readonly stringBytesMax: number
  readonly nameBytesMax: number
  /** Members of the top-level object: each costs a look-up, 0.6 µs, where other bytes cost a few nanoseconds. */
  readonly membersMax: number
  /** How many values of the containers that are looked into are kept at a time. */
  readonly valuesMax: number
  /** How many bytes are kept of all that a model wrote, together. */
  readonly outputBytesMax: number
}

export const JSON_SCAN_LIMITS: JsonScanLimits = {
  depthMax: 512,
  documentBytesMax: 512 * 1024 * 1024,
  captureBytesMax: 256 * 1024,
  stringBytesMax: 2048,
  nameBytesMax: 1024,
  membersMax: 4096,
  valuesMax: 20_000,
  outputBytesMax: 0,
}

/** A reply may be of any length: only the bytes and values that are kept of it are limited. */
export const REPLY_LIMITS: JsonScanLimits = {
  depthMax: 64,
  documentBytesMax: Number.MAX_SAFE_INTEGER,
  captureBytesMax: 0,
  stringBytesMax: 2048,
  nameBytesMax: 1024,
  membersMax: Number.MAX_SAFE_INTEGER,
  valuesMax: 100_000,
  outputBytesMax: 128 * 1024,
}

const [QUOTE, OPEN_BRACE, OPEN_BRACKET] = [0x22, 0x7b, 0x5b]
const [LETTER_T, LETTER_F, LETTER_N] = [0x74, 0x66, 0x6e]

/** The grammar was verified, so JSON.parse cannot throw here; the text is at most `captureBytesMax` long. */
function memberOf({ nameStart, start, end }: JsonSpan, firstByte: number, text: string | null): JsonMember {
  switch (firstByte) {
    case QUOTE:
      if (text === null) return { kind: 'too_long', type: 'string', nameStart, start, end }
      return { kind: 'string', value: stringOf(text), nameStart, start, end }
    case OPEN_BRACE:
      if (text === null) return { kind: 'too_long', type: 'object', nameStart, start, end }
      return { kind: 'object', json: text, nameStart, start, end }
    case OPEN_BRACKET:
      if (text === null) return { kind: 'too_long', type: 'array', nameStart, start, end }
      return { kind: 'array', json: text, nameStart, start, end }
    case LETTER_T:
      return { kind: 'boolean', value: true, nameStart, start, end }
    case LETTER_F:
      return { kind: 'boolean', value: false, nameStart, start, end }
    case LETTER_N:
      return { kind: 'null', nameStart, start, end }
    default:
      if (text === null) return { kind: 'too_long', type: 'number', nameStart, start, end }
      return { kind: 'number', value: Number(text), raw: text, nameStart, start, end }
  }
}

/** Hardly any string has an escape; a string without escapes needs no parser. */
function stringOf(json: string): string {
  return json.includes('\\') ? (JSON.parse(json) as string) : json.slice(1, -1)
}

/** Collects the members of the outermost object that are captured as they are written. */
export class CapturedMembers {
  /** A captured member whose strings mark nothing. */
  readonly #unmarked: string | null
  #members = new Map<string, JsonMember>()
  #duplicates: string[] = []
  #name: string | null = null
  #nameStart = 0
  #start = 0
  #firstByte = 0
  #marksBefore = 0

  constructor(unmarked: string | null) {
    this.#unmarked = unmarked
  }

  get members(): ReadonlyMap<string, JsonMember> {
    return this.#members
  }

  get duplicates(): readonly string[] {
    return this.#duplicates
  }

  /** Whether the value at hand is captured. */
  get isOpen(): boolean {
    return this.#name !== null
  }

  name(name: string, nameStart: number): void {
    this.#nameStart = nameStart
    if (!this.#members.has(name)) this.#name = name
    else if (!this.#duplicates.includes(name)) this.#duplicates.push(name)
  }

  start(start: number, firstByte: number, marks: number): void {
    this.#start = start
    this.#firstByte = firstByte
    this.#marksBefore = marks
  }

  /** Answers the marks found so far, without those of the unmarked member. */
  end(text: string | null, end: number, marks: number): number {
    const name = this.#name ?? ''
    const span = { nameStart: this.#nameStart, start: this.#start, end }
    this.#members.set(name, memberOf(span, this.#firstByte, text))
    this.#name = null
    return name === this.#unmarked ? this.#marksBefore : marks
  }

  clear(): void {
    this.#members = new Map()
    this.#duplicates = []
    this.#name = null
  }
}

/** A container that is open and looked into. Exactly one of `object` and `array` is there. */
interface Frame {
  readonly outer: Frame | null
  readonly place: Place
  readonly object: Record<string, Picked> | null
  readonly array: Picked[] | null
  /** How many values were kept when the container was opened. */
  readonly valuesBefore: number
  /** The member whose value is due, if it is to be kept. */
  member: FoundMember | null
}

/** The values found at the places that are looked into. */
export interface Selection {
  readonly value: Picked
  /** The places of members given more than once. Parsers differ on which value counts. */
  readonly duplicates: readonly string[]
  /** Some array had more elements than are kept, and ends early in `value`. */
  readonly overflow: boolean
}

const NONE: readonly string[] = []

/**
 * Builds the values that a walker finds where it looks into a text, up to `valuesMax`. The first of members given more than
 * once counts; a `tolerant` tree takes the last, as JSON.parse does, and keeps the beginning of an array that is too long.
 */
export class PickedTree {
  readonly #root: Place
  readonly #onElement: ((element: Picked) => void) | null
  readonly #valuesMax: number
  readonly #tolerant: boolean
  #frame: Frame | null = null
  #duplicates: Set<string> | null = null
  #overflow = false
  #values = 0
  #value: Picked = null

  constructor(
    root: Place,
    onElement: ((element: Picked) => void) | null,
    valuesMax: number,
    tolerant: boolean,
  ) {
    this.#root = root
    this.#onElement = onElement
    this.#valuesMax = valuesMax
    this.#tolerant = tolerant
  }

  get inObject(): boolean {
    return this.#frame !== null && this.#frame.object !== null
  }

  /** The place of the value that is due; null if the value is not looked at, or is captured. */
  get place(): Place | null {
    const frame = this.#frame
    if (frame === null) return this.#root
    if (frame.object === null) return frame.place.elements
    return frame.member === null ? null : frame.member.place
  }

  get picked(): Selection {
    const duplicates = this.#duplicates === null ? NONE : [...this.#duplicates]
    return { value: this.#value, duplicates, overflow: this.#overflow }
  }

  /** The member whose name stands between `from` and `to`, without escapes, and whose value is due now. */
  find(bytes: Buffer, from: number, to: number): FoundMember | typeof AMBIGUOUS | null {
    const members = this.#frame?.place.members
    if (members == null) return null
    return this.#due(this.#tolerant ? members.findPlain(bytes, from, to) : members.find(bytes, from, to))
  }

  /** Does what `find` does, for a name at hand as text with its escapes; null is a name too long to be looked for. */
  findWritten(name: string | null): FoundMember | typeof AMBIGUOUS | null {
    const members = this.#frame?.place.members
    return this.#due(name === null || members == null ? null : members.findWritten(name, this.#tolerant))
  }

  #due<Found extends FoundMember | typeof AMBIGUOUS | null>(found: Found): Found {
    const frame = this.#frame
    if (frame === null || found === AMBIGUOUS) return found
    frame.member = found === null || found.place === null ? null : found
    if (found === null || frame.object === null || !Object.hasOwn(frame.object, found.name)) return found
    this.#duplicates ??= new Set()
    this.#duplicates.add(pathOf(frame))
    if (!this.#tolerant) frame.member = null
    return found
  }

  /** Opens a container. False if there are more values now than may be kept. */
  open(place: Place, isObject: boolean): boolean {
    this.#frame = {
      outer: this.#frame,
      place,
      object: isObject ? {} : null,
      array: isObject ? null : [],
      valuesBefore: this.#values,
      member: null,
    }
    return this.#count()
  }

  /** Takes the value that was due. False if there are more values now than may be kept. */
  add(value: Picked): boolean {
    const frame = this.#frame
    if (frame === null || (frame.object !== null && frame.member === null)) return true
    return this.#put(frame, value) ? this.#count() : true
  }

  /** Ends the container at hand. True if that is the outermost container. */
  close(): boolean {
    const closed = this.#frame
    if (closed === null) return true
    const value = closed.object ?? closed.array
    this.#frame = closed.outer
    if (closed.outer === null) {
      this.#value = value
      return true
    }
    if (!this.#put(closed.outer, value)) this.#values = closed.valuesBefore
    return false
  }

  clear(): void {
    this.#frame = null
    this.#duplicates = null
    this.#overflow = false
    this.#values = 0
    this.#value = null
  }

  /** Whether the value was kept. */
  #put(frame: Frame, value: Picked): boolean {
    if (frame.array === null) {
      if (frame.member !== null && frame.object !== null) frame.object[frame.member.name] = value
      return frame.member !== null
    }
    if (frame.place.streams) {
      this.#onElement?.(value)
      return false
    }
    if (frame.place.sparse && !hasMembers(value)) return false
    // An array may take half of the room that is left, so that a long array leaves room for the values behind it.
    const { valuesBefore } = frame
    if (this.#tolerant && this.#values - valuesBefore > (this.#valuesMax - valuesBefore) / 2) {
      this.#overflow = true
      return false
    }
    frame.array.push(value)
    return true
  }

  #count(): boolean {
    this.#values++
    return this.#values <= this.#valuesMax || this.#tolerant
  }
}

function hasMembers(value: Picked): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0
}

/** The way from the outermost container to the member at hand. */
function pathOf(frame: Frame): string {
  const outer = frame.outer === null ? '' : pathOf(frame.outer)
  if (frame.array !== null) return `${outer}[]`
  return `${outer}${outer === '' ? '' : '.'}${frame.member?.name ?? ''}`
}
