import { type Borrowed, viewOf } from '../kernel/read-buffer.ts'
import { BoundedCopy } from './bounded-copy.ts'
import { MARK_ENDS, MarkWatch, markOf } from './content-marks.ts'
import {
  AFTER,
  AFTER_ROOT,
  BEFORE_ROOT,
  CLOSE,
  type Cursor,
  END_OF_CHUNK,
  END_SEEN_CONTAINER,
  END_SEEN_LITERAL,
  END_SEEN_NAME,
  END_SEEN_NUMBER,
  END_SEEN_VALUE,
  IN_STRING,
  OPEN_ARRAY,
  OPEN_OBJECT,
  OPEN_SEEN_NAME,
  OPEN_STRING,
  SEEN_AFTER_ELEMENT,
  SEEN_AFTER_MEMBER,
  SEEN_COLON,
  SEEN_FIRST_ELEMENT,
  SEEN_FIRST_NAME,
  SEEN_VALUE,
  START_SEEN_VALUE,
  walk,
} from './json-grammar.ts'
import { AMBIGUOUS, capturing, type Picked, type Place, UNREAD } from './json-place.ts'
import {
  JSON_SCAN_LIMITS,
  type JsonMember,
  type JsonScan,
  type JsonScanLimits,
  memberOf,
  PickedTree,
  type UnreadableJson,
} from './json-scan.ts'
import { JsonString, NEAR_BYTES, nextStop, QUOTE } from './json-string.ts'
import { Utf8Check } from './utf8-check.ts'

/** Up to here the stack is an array that V8 keeps on its heap: one that it does not takes 3.5 µs to make and to give back. */
const SHALLOW_DEPTH = 64
const [OPEN_BRACE, OPEN_BRACKET, LETTER_N] = [0x7b, 0x5b, 0x6e]
const NOWHERE = -1

/** What is wrong with the byte at the cursor. */
type Fault = UnreadableJson | null

export interface WalkOptions {
  readonly limits?: Partial<JsonScanLimits>
  /** A captured member whose strings mark nothing, whatever they say. */
  readonly unmarked?: string
  /** Takes the elements of arrays that are streamed, as they end. */
  readonly onElement?: (element: Picked) => void
}

/**
 * Reads what stands at the selected places of a JSON text that arrives in pieces, however deep they are, and skips all
 * else without building it. Members of an object are captured as they are written, with their spans, or looked into.
 *
 * It accepts what RFC 8259 and JSON.parse accept, encoded in UTF-8, whose outermost value is a container that is looked
 * into, with one exception: control characters inside of strings that are not read are not looked for (json-string.ts
 * says why that is safe). What it refuses beyond the grammar is what parsers are known to disagree on: see
 * UnreadableJson. The answer does not depend on how the text was cut, and no chunk is referred to after `write` returns.
 */
export class JsonWalker {
  readonly #limits: JsonScanLimits
  readonly #unmarked: string | null
  readonly #tree: PickedTree
  readonly #utf8 = new Utf8Check()
  readonly #string = new JsonString()
  readonly #mark = new MarkWatch()
  /** For each open container the state behind it. */
  #stack: Uint8Array
  readonly #cursor: Cursor = { i: 0, state: BEFORE_ROOT, depth: 0, marks: 0 }
  /** The document's offset of the first byte of the chunk at hand. */
  #offset = 0
  /** The state behind the string at hand, and whether it is a text that is read. */
  #afterString = 0
  #readsText = false

  #members = new Map<string, JsonMember>()
  #duplicates: string[] = []
  /** The captured member at hand. */
  #captured: string | null = null
  #nameStart = 0
  #valueStart = 0
  #firstByte = 0
  #marksBefore = 0
  /** Where in the document the name, text or captured value at hand begins. Only what is in two chunks is copied. */
  #spanStart = NOWHERE
  #capture: BoundedCopy | null = null

  #memberCount = 0
  #rootEnd = 0
  #failure: Extract<JsonScan, { kind: 'unreadable' }> | null = null
  #ended = false

  constructor(root: Place, { limits, unmarked, onElement }: WalkOptions = {}) {
    this.#limits = limits === undefined ? JSON_SCAN_LIMITS : { ...JSON_SCAN_LIMITS, ...limits }
    this.#unmarked = unmarked ?? null
    this.#tree = new PickedTree(root, onElement ?? null, this.#limits.valuesMax)
    this.#stack = new Uint8Array(Math.min(SHALLOW_DEPTH, this.#limits.depthMax))
  }

  /** True once nothing that follows can change the answer. */
  get failed(): boolean {
    return this.#failure !== null
  }

  /** The next bytes. Behind an end they begin another text. */
  write(chunk: Borrowed): void {
    if (this.#ended) this.#restart()
    if (this.#failure !== null || chunk.length === 0) return
    const room = this.#limits.documentBytesMax - this.#offset
    const whole = asBuffer(viewOf(chunk), room)
    const valid = this.#utf8.validPrefix(whole)
    this.#scan(valid === whole.length ? whole : whole.subarray(0, valid))
    if (valid < whole.length) this.#fail('not_utf8', valid)
    if (whole.length < chunk.length) this.#fail('too_large', room)
    this.#offset += whole.length
  }

  end(): JsonScan {
    this.#ended = true
    const { state, marks } = this.#cursor
    if (state === BEFORE_ROOT) this.#fail('empty', 0)
    if (state !== AFTER_ROOT) this.#fail('truncated', 0)
    if (this.#failure !== null) return this.#failure
    return {
      kind: 'object',
      members: this.#members,
      duplicates: this.#duplicates,
      objectEnd: this.#rootEnd,
      empty: this.#memberCount === 0,
      marks,
      picked: this.#tree.picked,
    }
  }

  #restart(): void {
    this.#ended = false
    this.#failure = null
    this.#cursor.state = BEFORE_ROOT
    this.#cursor.depth = 0
    this.#cursor.marks = 0
    this.#offset = 0
    this.#members = new Map()
    this.#duplicates = []
    this.#captured = null
    this.#memberCount = 0
    this.#dropSpan()
    this.#tree.clear()
    this.#utf8.restart()
  }

  #scan(bytes: Buffer): void {
    const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    const cursor = this.#cursor
    cursor.i = 0
    this.#string.enterChunk()
    while (cursor.i < bytes.length && this.#failure === null) {
      const fault =
        cursor.state === IN_STRING
          ? this.#crossString(bytes)
          : this.#act(walk(bytes, words, this.#stack, cursor), bytes, words)
      if (fault !== null) this.#fail(fault, cursor.i)
    }
    if (cursor.state === IN_STRING) this.#mark.endChunk(bytes)
    if (this.#spanStart !== NOWHERE) this.#copySpan(bytes)
  }

  /** Does what the grammar asks for at the byte at the cursor, and leaves the cursor at the next byte to look at. */
  #act(action: number, bytes: Buffer, words: DataView): Fault {
    const cursor = this.#cursor
    switch (action) {
      case END_OF_CHUNK:
        return null
      case START_SEEN_VALUE:
        return this.#startValue(bytes, words)
      case OPEN_SEEN_NAME:
        return this.#startName(bytes, words)
      case OPEN_STRING:
        this.#openString(this.#captured !== null, AFTER[cursor.state] as number)
        return null
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        return this.#deepen() ? null : 'too_deep'
      case CLOSE:
        cursor.depth--
        cursor.i++
        if (this.#stack[cursor.depth] === END_SEEN_VALUE) return this.#endValue(bytes, UNREAD)
        this.#closeContainer()
        return null
      case END_SEEN_LITERAL:
        cursor.i++
        return this.#endValue(bytes, this.#firstByte === LETTER_N ? null : UNREAD)
      case END_SEEN_NUMBER:
        return this.#endValue(bytes, UNREAD)
      default:
        return this.#unexpected(bytes)
    }
  }

  #startName(bytes: Buffer, words: DataView): Fault {
    const cursor = this.#cursor
    const start = cursor.i
    if (cursor.depth === 1) {
      this.#memberCount++
      if (this.#memberCount > this.#limits.membersMax) return 'too_many_members'
    }
    this.#nameStart = this.#offset + start
    const quote = this.#crossShort(bytes, words)
    if (quote !== NOWHERE) {
      cursor.i = quote
      return this.#endName(bytes, start + 1)
    }
    this.#spanStart = this.#nameStart + 1
    this.#openString(true, END_SEEN_NAME)
    return null
  }

  /** The cursor is at the closing quote. The name begins at `from`, or in an earlier chunk if that is negative. */
  #endName(bytes: Buffer, from: number): Fault {
    const cursor = this.#cursor
    if (cursor.i - from > this.#limits.nameBytesMax) return 'name_too_long'
    let name = bytes
    let start = from
    if (from < 0) {
      name = Buffer.from(this.#takeSpan(bytes, cursor.i, this.#limits.nameBytesMax) ?? '')
      start = 0
    }
    this.#spanStart = NOWHERE
    const found = this.#tree.name(name, start, from < 0 ? name.length : cursor.i)
    if (found === AMBIGUOUS) return 'ambiguous_name'
    if (found !== null && found.place === null) this.#endCapturedName(found.name)
    cursor.state = SEEN_COLON
    cursor.i++
    return null
  }

  #endCapturedName(name: string): void {
    if (!this.#members.has(name)) this.#captured = name
    else if (!this.#duplicates.includes(name)) this.#duplicates.push(name)
  }

  #startValue(bytes: Buffer, words: DataView): Fault {
    const cursor = this.#cursor
    const first = bytes[cursor.i] as number
    this.#firstByte = first
    if (this.#captured !== null) {
      this.#valueStart = this.#offset + cursor.i
      this.#spanStart = this.#valueStart
      this.#marksBefore = cursor.marks
    }
    if (first === QUOTE) return this.#startString(bytes, words)
    if (first === OPEN_BRACE || first === OPEN_BRACKET) {
      const place = this.#tree.place
      const isObject = first === OPEN_BRACE
      if (place !== null && (isObject ? place.members : place.elements) !== null)
        return this.#openContainer(place, isObject)
      if (cursor.depth === 0) return 'not_an_object'
    }
    cursor.state = SEEN_VALUE
    return null
  }

  #startString(bytes: Buffer, words: DataView): Fault {
    const cursor = this.#cursor
    const start = cursor.i
    const readsText = this.#tree.place?.text === true
    const quote = this.#crossShort(bytes, words)
    if (quote !== NOWHERE) {
      cursor.i = quote + 1
      return this.#endValue(bytes, readsText ? bytes.toString('utf8', start + 1, quote) : UNREAD)
    }
    this.#readsText = readsText
    if (readsText) this.#spanStart = this.#offset + start + 1
    this.#openString(readsText || this.#captured !== null, END_SEEN_VALUE)
    return null
  }

  /** The closing quote of a string that is short, whole and without escapes, as nearly all names and values are. */
  #crossShort(bytes: Buffer, words: DataView): number {
    const cursor = this.#cursor
    const end = Math.min(cursor.i + NEAR_BYTES, bytes.length)
    const stop = nextStop(bytes, words, cursor.i + 1, end)
    if (stop === end || bytes[stop] !== QUOTE) return NOWHERE
    if (MARK_ENDS[bytes[stop - 1] as number] === 1) cursor.marks |= markOf(bytes, cursor.i + 1, stop)
    return stop
  }

  #openContainer(place: Place, isObject: boolean): Fault {
    const cursor = this.#cursor
    if (cursor.depth === this.#stack.length && !this.#deepen()) return 'too_deep'
    this.#stack[cursor.depth] = END_SEEN_CONTAINER
    cursor.depth++
    cursor.state = isObject ? SEEN_FIRST_NAME : SEEN_FIRST_ELEMENT
    cursor.i++
    return this.#tree.open(place, isObject) ? null : 'too_much'
  }

  /** The closing bracket is behind the cursor. */
  #closeContainer(): void {
    const cursor = this.#cursor
    if (this.#tree.close()) {
      this.#rootEnd = this.#offset + cursor.i - 1
      cursor.state = AFTER_ROOT
    } else cursor.state = this.#tree.inObject ? SEEN_AFTER_MEMBER : SEEN_AFTER_ELEMENT
  }

  /** The value ends before the cursor. */
  #endValue(bytes: Buffer, value: Picked): Fault {
    const cursor = this.#cursor
    cursor.state = this.#tree.inObject ? SEEN_AFTER_MEMBER : SEEN_AFTER_ELEMENT
    const captured = this.#captured
    if (captured === null) return this.#tree.add(value) ? null : 'too_much'
    this.#captured = null
    if (captured === this.#unmarked) cursor.marks = this.#marksBefore
    const text = this.#takeSpan(bytes, cursor.i, this.#limits.captureBytesMax)
    const span = { nameStart: this.#nameStart, start: this.#valueStart, end: this.#offset + cursor.i }
    this.#members.set(captured, memberOf(span, this.#firstByte, text))
    return null
  }

  #openString(strict: boolean, after: number): void {
    const cursor = this.#cursor
    cursor.i++
    cursor.state = IN_STRING
    this.#afterString = after
    this.#string.open(strict)
    this.#mark.open(cursor.i)
  }

  #crossString(bytes: Buffer): Fault {
    const cursor = this.#cursor
    const quote = this.#string.cross(bytes, cursor.i)
    cursor.i = quote < 0 ? -1 - quote : quote
    if (quote < 0) return 'not_json'
    if (quote === bytes.length) return null
    cursor.marks |= this.#string.hasNeedlessEscape
      ? this.#mark.closeEscaped(bytes, quote)
      : this.#mark.close(bytes, quote)
    if (this.#afterString === END_SEEN_NAME) return this.#endName(bytes, this.#spanStart - this.#offset)
    if (this.#afterString === END_SEEN_VALUE) return this.#endString(bytes, quote)
    cursor.state = this.#afterString
    cursor.i++
    return null
  }

  #endString(bytes: Buffer, quote: number): Fault {
    const text = this.#readsText ? this.#takeSpan(bytes, quote, this.#limits.stringBytesMax) : null
    this.#readsText = false
    this.#cursor.i = quote + 1
    if (text === null) return this.#endValue(bytes, UNREAD)
    return this.#endValue(bytes, text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text)
  }

  /** False if no more containers may be open. Else the byte at the cursor is to be looked at again. */
  #deepen(): boolean {
    const { depthMax } = this.#limits
    if (this.#stack.length >= depthMax) return false
    const deeper = new Uint8Array(depthMax)
    deeper.set(this.#stack)
    this.#stack = deeper
    return true
  }

  #unexpected(bytes: Buffer): Fault {
    const { i, state } = this.#cursor
    if (state === AFTER_ROOT) return 'trailing_bytes'
    if (state !== BEFORE_ROOT) return 'not_json'
    if (this.#offset + i === 0 && bytes[i] === 0xef) return 'byte_order_mark'
    return '"-0123456789ftn'.includes(bytes.toString('latin1', i, i + 1)) ? 'not_an_object' : 'not_json'
  }

  #copySpan(bytes: Buffer): void {
    const { captureBytesMax, nameBytesMax, stringBytesMax } = this.#limits
    this.#capture ??= new BoundedCopy(Math.max(captureBytesMax, nameBytesMax, stringBytesMax))
    this.#capture.append(bytes, Math.max(0, this.#spanStart - this.#offset), bytes.length)
  }

  /** The text of the span, which ends before `end`; null if it is longer than it may be. */
  #takeSpan(bytes: Buffer, end: number, bytesMax: number): string | null {
    const from = this.#spanStart - this.#offset
    this.#spanStart = NOWHERE
    if (end - from > bytesMax) {
      this.#capture?.clear()
      return null
    }
    if (from >= 0) return bytes.toString('utf8', from, end)
    this.#capture?.append(bytes, 0, end)
    return this.#capture?.take(end - from)?.toString('utf8') ?? null
  }

  #dropSpan(): void {
    this.#spanStart = NOWHERE
    this.#capture?.clear()
  }

  /** The first fault counts. `i` is where in the chunk at hand it is. Lets go of everything that was found. */
  #fail(reason: UnreadableJson, i: number): void {
    this.#failure ??= { kind: 'unreadable', reason, at: this.#offset + i }
    this.#members.clear()
    this.#dropSpan()
    this.#tree.clear()
  }
}

/** The answer for a whole text at hand. */
export function scanJson<Name extends string>(
  bytes: Uint8Array,
  names: Iterable<Name> | Place,
  limits?: Partial<JsonScanLimits>,
): JsonScan<Name> {
  const root = 'members' in names ? names : capturing(names)
  const walker = new JsonWalker(root, limits === undefined ? {} : { limits })
  walker.write(bytes)
  return walker.end() as JsonScan<Name>
}

/** As much of it as there is room for. Another view of the same bytes is made only where it must be. */
function asBuffer(bytes: Uint8Array, lengthMax: number): Buffer {
  if (bytes.length <= lengthMax && Buffer.isBuffer(bytes)) return bytes
  return Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, lengthMax))
}
