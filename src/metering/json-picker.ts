import { Capture } from './capture.ts'
import {
  ACTION,
  AFTER,
  CLOSE,
  END_TOP_LITERAL,
  END_TOP_NUMBER,
  END_TOP_VALUE,
  FIRST_ELEMENT,
  FIRST_NAME,
  OPEN_ARRAY,
  OPEN_OBJECT,
  OPEN_STRING,
  STEP,
  TOP_VALUE,
} from './json-grammar.ts'
import { type Picked, type Place, TEXT, UNREAD } from './json-place.ts'
import { JsonString, NEAR_BYTES, nextStop, QUOTE } from './json-string.ts'
import { type Cursor, END_OF_CHUNK, walk } from './json-walk.ts'
import { PickedTree } from './picked-tree.ts'
import { Utf8Check } from './utf8-check.ts'

export type UnreadablePick =
  | 'not_json'
  | 'not_utf8'
  | 'truncated'
  | 'too_deep'
  | 'name_too_long'
  /** A name that nobody looks at, but that some parsers read as one that is looked at. */
  | 'ambiguous_name'
  /** More was picked than is kept at a time. */
  | 'too_much'

export type Pick =
  /** `duplicates` are the places of members given more than once; the first counts here, parsers differ. */
  | { readonly kind: 'picked'; readonly value: Picked; readonly duplicates: readonly string[] }
  | { readonly kind: 'unreadable'; readonly reason: UnreadablePick }

export interface PickLimits {
  readonly depthMax: number
  readonly nameBytesMax: number
  /** A string that is longer as it is written is not read. */
  readonly stringBytesMax: number
  /** Values that are kept at a time. */
  readonly valuesMax: number
}

const PICK_LIMITS: PickLimits = { depthMax: 512, nameBytesMax: 1024, stringBytesMax: 2048, valuesMax: 20_000 }

/** What is due in an object or array that is looked into, or around the whole value. */
const ROOT = 0
const FIRST_MEMBER = 1
const MEMBER = 2
const COLON = 3
const VALUE = 4
const FIRST_VALUE = 5
const NEXT = 6
const DONE = 7

/** The compiler treats a constant of this module as known, an imported one not. */
const step = STEP

/** What the bytes at hand are part of. */
const STRUCTURE = 0
const NAME = 1
const TEXT_VALUE = 2
const SCALAR = 3
const UNSEEN = 4
const UNSEEN_STRING = 5

const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d]
const [COMMA_BYTE, COLON_BYTE] = [0x2c, 0x3a]
const WHITESPACE = new Uint8Array(256)
for (const byte of Buffer.from(' \t\n\r')) WHITESPACE[byte] = 1

/**
 * Picks what stands at certain places, however deep, out of a JSON text that arrives in pieces, and skips the rest at
 * the speed at which JsonScanner reads. It accepts and refuses what JsonScanner does; the answer does not depend on
 * how the text was cut, and no chunk is referred to after `write` returns.
 */
export class JsonPicker {
  readonly #limits: PickLimits
  readonly #tree: PickedTree
  readonly #utf8 = new Utf8Check()
  readonly #string = new JsonString()
  readonly #capture: Capture
  /** Of what nobody looks into: for each open container the state behind it. */
  readonly #stack: Uint8Array
  readonly #cursor: Cursor = { i: 0, state: 0, depth: 0, marks: 0 }
  #mode = STRUCTURE
  #due = ROOT
  #afterString = 0
  #scalarState = TOP_VALUE
  #scalarIsNull = false
  /** How many bytes of the name or text at hand were in former chunks, and where in this one it goes on. */
  #carried = 0
  #from = 0
  #failure: UnreadablePick | null = null

  constructor(root: Place, onElement: (element: Picked) => void, limits: Partial<PickLimits> = {}) {
    this.#limits = { ...PICK_LIMITS, ...limits }
    this.#tree = new PickedTree(root, onElement, this.#limits.valuesMax)
    this.#capture = new Capture(Math.max(this.#limits.stringBytesMax, this.#limits.nameBytesMax))
    this.#stack = new Uint8Array(this.#limits.depthMax)
  }

  /** True once nothing that follows can change the answer. */
  get failed(): boolean {
    return this.#failure !== null
  }

  write(chunk: Uint8Array): void {
    if (this.#failure !== null || chunk.length === 0) return
    const whole = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    const valid = this.#utf8.validPrefix(whole)
    this.#scan(whole.subarray(0, valid))
    if (valid < whole.length) this.#fail('not_utf8')
  }

  /** The answer for what was written since the last time. */
  end(): Pick {
    if (this.#due !== DONE) this.#fail('truncated')
    if (this.#failure !== null) return { kind: 'unreadable', reason: this.#failure }
    this.#due = ROOT
    return { kind: 'picked', ...this.#tree.take() }
  }

  #scan(bytes: Buffer): void {
    const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    this.#string.enterChunk()
    this.#from = 0
    let i = 0
    while (i < bytes.length && this.#failure === null) {
      switch (this.#mode) {
        case STRUCTURE:
          i = this.#step(bytes, words, i)
          break
        case SCALAR:
          i = this.#crossScalar(bytes, i)
          break
        case UNSEEN:
          i = this.#skip(bytes, words, i)
          break
        default:
          i = this.#crossString(bytes, i)
      }
    }
    if (this.#failure === null && (this.#mode === NAME || this.#mode === TEXT_VALUE)) {
      this.#capture.append(bytes, this.#from, bytes.length)
      this.#carried += bytes.length - this.#from
    }
  }

  /** Looks at one byte of the structure, and answers where to go on. */
  #step(bytes: Buffer, words: DataView, i: number): number {
    const byte = bytes[i] as number
    if (WHITESPACE[byte] === 1) return i + 1
    switch (this.#due) {
      case FIRST_MEMBER:
        if (byte === CLOSE_BRACE) return this.#close(i)
        return this.#openName(bytes, words, i)
      case MEMBER:
        return this.#openName(bytes, words, i)
      case COLON:
        if (byte !== COLON_BYTE) return this.#refuse(i)
        this.#due = VALUE
        return i + 1
      case FIRST_VALUE:
        if (byte === CLOSE_BRACKET) return this.#close(i)
        return this.#openValue(bytes, words, i)
      case VALUE:
      case ROOT:
        return this.#openValue(bytes, words, i)
      case NEXT: {
        const { inObject } = this.#tree
        if (byte === (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) return this.#close(i)
        if (byte !== COMMA_BYTE) return this.#refuse(i)
        this.#due = inObject ? MEMBER : VALUE
        return i + 1
      }
      default:
        return this.#refuse(i)
    }
  }

  #openName(bytes: Buffer, words: DataView, i: number): number {
    if (bytes[i] !== QUOTE) return this.#refuse(i)
    const stop = this.#shortString(bytes, words, i)
    if (stop !== null) return this.#endName(bytes, i + 1, stop)
    this.#openString(NAME, i)
    return i + 1
  }

  #openValue(bytes: Buffer, words: DataView, i: number): number {
    const byte = bytes[i] as number
    const place = this.#tree.place
    if (byte === QUOTE) {
      const stop = this.#shortString(bytes, words, i)
      if (stop !== null) {
        this.#endValue(place?.text === true ? bytes.toString('utf8', i + 1, stop) : UNREAD)
        return stop + 1
      }
      this.#openString(place?.text === true ? TEXT_VALUE : UNSEEN_STRING, i)
      this.#afterString = END_TOP_VALUE
      return i + 1
    }
    if (byte !== OPEN_BRACE && byte !== OPEN_BRACKET) {
      this.#mode = SCALAR
      this.#scalarState = TOP_VALUE
      this.#scalarIsNull = byte === 0x6e
      return i
    }
    const isObject = byte === OPEN_BRACE
    if ((isObject ? place?.members : place?.elements) != null) {
      this.#due = isObject ? FIRST_MEMBER : FIRST_VALUE
      if (!this.#tree.open(place ?? TEXT, isObject)) this.#fail('too_much')
      return i + 1
    }
    this.#mode = UNSEEN
    this.#stack[0] = END_TOP_VALUE
    this.#cursor.depth = 1
    this.#cursor.state = isObject ? FIRST_NAME : FIRST_ELEMENT
    return i + 1
  }

  /** Where a string ends that is short, whole and without escapes, as nearly all are; else null. */
  #shortString(bytes: Buffer, words: DataView, i: number): number | null {
    const end = Math.min(i + NEAR_BYTES, bytes.length)
    const stop = nextStop(bytes, words, i + 1, end)
    return stop < end && bytes[stop] === QUOTE ? stop : null
  }

  #openString(mode: number, i: number): void {
    this.#mode = mode
    this.#string.open(mode !== UNSEEN_STRING)
    this.#carried = 0
    this.#from = i + 1
  }

  #crossString(bytes: Buffer, from: number): number {
    const quote = this.#string.cross(bytes, from)
    if (quote < 0) return this.#refuse(-1 - quote)
    if (quote === bytes.length) return quote
    const mode = this.#mode
    this.#mode = STRUCTURE
    if (mode === NAME) {
      if (this.#carried === 0) return this.#endName(bytes, this.#from, quote)
      const name = this.#takeCarried(bytes, quote, this.#limits.nameBytesMax)
      if (name === null) this.#fail('name_too_long')
      else this.#endName(name, 0, name.length)
    } else if (mode === TEXT_VALUE) this.#endValue(this.#text(bytes, quote))
    else if (this.#afterString === END_TOP_VALUE) this.#endValue(UNREAD)
    else {
      this.#mode = UNSEEN
      this.#cursor.state = this.#afterString
    }
    return quote + 1
  }

  #text(bytes: Buffer, quote: number): Picked {
    const text = this.#takeCarried(bytes, quote, this.#limits.stringBytesMax)?.toString('utf8')
    if (text === undefined) return UNREAD
    return text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text
  }

  #takeCarried(bytes: Buffer, end: number, bytesMax: number): Buffer | null {
    const length = this.#carried + end - this.#from
    if (length > bytesMax) {
      this.#capture.clear()
      return null
    }
    if (this.#carried === 0) return bytes.subarray(this.#from, end)
    this.#capture.append(bytes, this.#from, end)
    return this.#capture.take(length)
  }

  /** Answers the offset behind the name's closing quote, which is at `to`. */
  #endName(bytes: Buffer, from: number, to: number): number {
    this.#due = COLON
    if (to - from > this.#limits.nameBytesMax) this.#fail('name_too_long')
    else if (!this.#tree.name(bytes, from, to)) this.#fail('ambiguous_name')
    return to + 1
  }

  /** A number ends before the byte behind it, a literal with its last one. */
  #crossScalar(bytes: Buffer, from: number): number {
    const { length } = bytes
    let state = this.#scalarState
    let next = state
    let i = from
    for (; i < length; i++) {
      const byte = bytes[i] as number
      // The table is that of an object's members, of which no number is followed by a bracket.
      next = step[(state << 8) | (byte === CLOSE_BRACKET ? COMMA_BYTE : byte)] as number
      if (next >= ACTION) break
      state = next
    }
    this.#scalarState = state
    if (i === length) return i
    if (next !== END_TOP_NUMBER && next !== END_TOP_LITERAL) return this.#refuse(i)
    this.#mode = STRUCTURE
    this.#endValue(this.#scalarIsNull ? null : UNREAD)
    return next === END_TOP_NUMBER ? i : i + 1
  }

  /** Goes on through a container that nobody looks into. */
  #skip(bytes: Buffer, words: DataView, from: number): number {
    const cursor = this.#cursor
    cursor.i = from
    switch (walk(bytes, words, this.#stack, cursor)) {
      case END_OF_CHUNK:
        return bytes.length
      case OPEN_STRING:
        this.#openString(UNSEEN_STRING, cursor.i)
        this.#afterString = AFTER[cursor.state] as number
        return cursor.i + 1
      case CLOSE:
        this.#mode = STRUCTURE
        this.#endValue(UNREAD)
        return cursor.i + 1
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        this.#fail('too_deep')
        return cursor.i
      default:
        return this.#refuse(cursor.i)
    }
  }

  #close(i: number): number {
    this.#due = this.#tree.close() ? DONE : NEXT
    return i + 1
  }

  #endValue(value: Picked): void {
    if (this.#due === ROOT) {
      // Whoever asks for places inside a value has no use for one that has no inside.
      this.#fail('not_json')
      return
    }
    this.#due = NEXT
    if (!this.#tree.add(value)) this.#fail('too_much')
  }

  #refuse(i: number): number {
    this.#fail('not_json')
    return i
  }

  #fail(reason: UnreadablePick): void {
    this.#failure ??= reason
    this.#capture.clear()
    this.#tree.clear()
  }
}
