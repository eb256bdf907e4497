import { MARK_ENDS, MarkWatch, markOf } from './content-marks.ts'
import {
  AFTER,
  AFTER_ROOT,
  BEFORE_MARK,
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
  SEEN_MEMBER_AHEAD,
  SEEN_VALUE,
  SKIPPING,
  START_SEEN_VALUE,
  skip,
  walk,
} from './json-grammar.ts'
import { AMBIGUOUS, capturing, type Picked, type Place, UNREAD } from './json-place.ts'
import {
  CapturedMembers,
  JSON_SCAN_LIMITS,
  type JsonScan,
  type JsonScanLimits,
  PickedTree,
  REPLY_LIMITS,
  type UnreadableJson,
} from './json-scan.ts'
import { ESCAPES, JsonString, NEAR_BYTES, nextStop, QUOTE, Utf8Check } from './json-string.ts'
import { HandOver, JsonValue } from './json-value.ts'

/** V8 keeps a stack of up to this depth on its heap: an array outside of the heap takes 3.5 µs to make and to give back. */
const SHALLOW_DEPTH = 64
const [OPEN_BRACE, OPEN_BRACKET] = [0x7b, 0x5b]
const [BACKSLASH, COLON] = [0x5c, 0x3a]
const STARTS_VALUE = new Uint8Array(256)
for (const byte of Buffer.from('"{[-0123456789tfn')) STARTS_VALUE[byte] = 1
const NOWHERE = -1
const UNREAD_STRINGS: ReadonlySet<Place['reads']> = new Set(['nothing', 'written', 'bytes'])

/** The fault at the byte at the cursor; null where there is none. */
type Fault = UnreadableJson | null

export interface WalkOptions {
  readonly limits?: Partial<JsonScanLimits>
  /** A captured member whose strings mark nothing, whatever they say. */
  readonly unmarked?: string
  /** Takes the elements of arrays that are streamed, as they end. */
  readonly onElement?: (element: Picked) => void
  /** Takes the bytes of values that are handed over, as they pass. A value's end is that of the element it stands in. */
  readonly onBytes?: (bytes: Buffer) => void
  /**
   * For replies, which no server reads after us: accepts what clients accept. That is a byte order mark, bytes that
   * are no UTF-8, names that only look like a name that is read, and the last of members given twice. The grammar of
   * values that are not read is not judged, and an array that is too long keeps its beginning.
   */
  readonly tolerant?: boolean
}

/**
 * Reads the values at the selected places of a JSON text that arrives in pieces, however deep they are, and skips all other
 * values without building them. Members of an object are captured as they are written, with their spans, or looked into.
 *
 * It accepts what RFC 8259 and JSON.parse accept, encoded in UTF-8, whose outermost value is a container that is
 * looked into, with one exception: control characters inside of strings that are not read are not looked for
 * (json-string.ts says why that is safe). Beyond the grammar it refuses texts that parsers are known to disagree on:
 * see UnreadableJson. A tolerant walker refuses less. The answer does not depend on how the text was cut, and no
 * chunk is referred to after `write` returns.
 */
export class JsonWalker {
  readonly #limits: JsonScanLimits
  readonly #tree: PickedTree
  readonly #tolerant: boolean
  readonly #utf8: Utf8Check | null
  readonly #string = new JsonString()
  readonly #mark: MarkWatch | null
  /** The state behind each open container. */
  #stack: Uint8Array
  readonly #cursor: Cursor
  /** The offset in the document of the first byte of the chunk at hand. */
  #offset = 0
  /** The state behind the string at hand. */
  #afterString = 0
  /** Whether the short string at hand has no escapes. */
  #isPlain = true

  readonly #captured: CapturedMembers
  #nameStart = 0
  #firstByte = 0
  /** The name, text, number or captured value at hand. */
  readonly #value: JsonValue
  readonly #handOver: HandOver

  #memberCount = 0
  #rootEnd = 0
  #failure: Extract<JsonScan, { kind: 'unreadable' }> | null = null
  #ended = false

  constructor(root: Place, { limits, unmarked, onElement, onBytes, tolerant = false }: WalkOptions = {}) {
    const usual = tolerant ? REPLY_LIMITS : JSON_SCAN_LIMITS
    this.#limits = limits === undefined ? usual : { ...usual, ...limits }
    this.#captured = new CapturedMembers(unmarked ?? null)
    this.#tolerant = tolerant
    this.#utf8 = tolerant ? null : new Utf8Check()
    this.#mark = tolerant ? null : new MarkWatch()
    this.#tree = new PickedTree(root, onElement ?? null, this.#limits.valuesMax, tolerant)
    this.#stack = new Uint8Array(Math.min(SHALLOW_DEPTH, this.#limits.depthMax))
    this.#cursor = { i: 0, state: tolerant ? BEFORE_MARK : BEFORE_ROOT, depth: 0, marks: 0, skipped: 0 }
    this.#value = new JsonValue(this.#limits)
    this.#handOver = new HandOver(onBytes ?? null)
  }

  /** True once the text was refused: no bytes that follow can change the answer. */
  get failed(): boolean {
    return this.#failure !== null
  }

  /** Takes the next bytes of the text. The first bytes after `end` begin another text. */
  write(chunk: Buffer): void {
    if (this.#ended) this.#restart()
    if (this.#failure !== null || chunk.length === 0) return
    const room = this.#limits.documentBytesMax - this.#offset
    const whole = chunk.length <= room ? chunk : chunk.subarray(0, room)
    const valid = this.#utf8 === null ? whole.length : this.#utf8.validPrefix(whole)
    this.#scan(valid === whole.length ? whole : whole.subarray(0, valid))
    if (valid < whole.length) this.#fail('not_utf8', valid)
    if (whole.length < chunk.length) this.#fail('too_large', room)
    this.#offset += whole.length
  }

  end(): JsonScan {
    this.#ended = true
    const { state, marks } = this.#cursor
    if (state === BEFORE_ROOT || state === BEFORE_MARK) this.#fail('empty', 0)
    if (state !== AFTER_ROOT) this.#fail('truncated', 0)
    if (this.#failure !== null) return this.#failure
    return {
      kind: 'object',
      members: this.#captured.members,
      duplicates: this.#captured.duplicates,
      objectEnd: this.#rootEnd,
      empty: this.#memberCount === 0,
      marks,
      picked: this.#tree.picked,
    }
  }

  #restart(): void {
    this.#ended = false
    this.#failure = null
    this.#cursor.state = this.#tolerant ? BEFORE_MARK : BEFORE_ROOT
    this.#cursor.depth = 0
    this.#cursor.marks = 0
    this.#cursor.skipped = 0
    this.#offset = 0
    this.#memberCount = 0
    this.#letGo()
    this.#value.restart()
    this.#utf8?.restart()
  }

  #scan(bytes: Buffer): void {
    const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    const cursor = this.#cursor
    cursor.i = 0
    this.#string.enterChunk()
    while (cursor.i < bytes.length && this.#failure === null) {
      let fault: Fault
      if (cursor.state === IN_STRING) fault = this.#crossString(bytes, words)
      else if (cursor.state === SKIPPING) fault = this.#skip(bytes, words)
      else fault = this.#act(walk(bytes, words, this.#stack, cursor), bytes, words)
      if (fault !== null) this.#fail(fault, cursor.i)
    }
    if (cursor.state === IN_STRING) this.#mark?.endChunk(bytes)
    this.#handOver.endChunk(bytes)
    this.#value.endChunk(bytes, this.#offset)
  }

  /** Does the grammar's action for the byte at the cursor, and leaves the cursor at the next byte to look at. */
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
        this.#openString(this.#captured.isOpen, AFTER[cursor.state] as number)
        return null
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        return this.#deepen() ? null : 'too_deep'
      case CLOSE:
        cursor.depth--
        cursor.i++
        if (this.#stack[cursor.depth] === END_SEEN_VALUE) return this.#endValue(bytes, UNREAD)
        this.#closeContainer(bytes)
        return null
      case END_SEEN_LITERAL:
        cursor.i++
        return this.#endValue(bytes, this.#value.literal(this.#firstByte))
      case END_SEEN_NUMBER:
        return this.#endValue(bytes, this.#value.number(bytes, this.#offset, cursor.i))
      default:
        return this.#unexpected(bytes, words)
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
      if (!this.#isPlain) this.#value.open(this.#nameStart + 1)
      return this.#endName(bytes, words, start + 1, this.#isPlain)
    }
    this.#value.open(this.#nameStart + 1)
    this.#openString(true, END_SEEN_NAME)
    return null
  }

  /** The cursor is at the closing quote. The name begins at `from`, or in an earlier chunk if that is negative. */
  #endName(bytes: Buffer, words: DataView, from: number, isPlain: boolean): Fault {
    const cursor = this.#cursor
    if (cursor.i - from > this.#limits.nameBytesMax && !this.#tolerant) return 'name_too_long'
    const found = isPlain
      ? this.#tree.find(bytes, from, cursor.i)
      : this.#tree.findWritten(this.#value.take(bytes, this.#offset, cursor.i, this.#limits.nameBytesMax))
    if (found === AMBIGUOUS) return 'ambiguous_name'
    if (found !== null && found.place === null) this.#captured.name(found.name, this.#nameStart)
    cursor.i++
    // Nearly no text has blanks at the colon, and without a walk over one byte names are read in four fifths of the time.
    if (bytes[cursor.i] === COLON && STARTS_VALUE[bytes[cursor.i + 1] as number] === 1) {
      cursor.i++
      return this.#startValue(bytes, words)
    }
    cursor.state = SEEN_COLON
    return null
  }

  #startValue(bytes: Buffer, words: DataView): Fault {
    const cursor = this.#cursor
    const first = bytes[cursor.i] as number
    this.#firstByte = first
    if (this.#captured.isOpen) {
      this.#captured.start(this.#offset + cursor.i, first, cursor.marks)
      this.#value.open(this.#offset + cursor.i)
    }
    const { place } = this.#tree
    if (place?.reads === 'bytes') this.#handOver.start(cursor.i, cursor.depth)
    if (first === OPEN_BRACE || first === OPEN_BRACKET) {
      const isObject = first === OPEN_BRACE
      if (place !== null && (isObject ? place.members : place.elements) !== null)
        return this.#openContainer(place, isObject)
      if (cursor.depth === 0) return 'not_an_object'
      if (this.#tolerant)
        return this.#startSkip(bytes, words, isObject && place?.reads === 'written' ? place : null)
    } else if (place === null && this.#tolerant) return this.#startSkip(bytes, words, null)
    else if (first === QUOTE) return this.#startString(bytes, words, place)
    else if (place?.reads === 'scalar') this.#value.open(this.#offset + cursor.i, place)
    cursor.state = SEEN_VALUE
    return null
  }

  #startString(bytes: Buffer, words: DataView, place: Place | null): Fault {
    const cursor = this.#cursor
    const start = cursor.i + 1
    const read = place === null || UNREAD_STRINGS.has(place.reads) ? null : place
    const quote = this.#crossShort(bytes, words)
    if (quote !== NOWHERE) {
      cursor.i = quote + 1
      const isPlain = this.#isPlain
      return this.#endValue(
        bytes,
        read === null ? UNREAD : this.#value.shortString(read, bytes, start, quote, isPlain),
      )
    }
    if (read !== null) this.#value.open(this.#offset + start, read)
    this.#openString((read !== null && read.reads !== 'output') || this.#captured.isOpen, END_SEEN_VALUE)
    return null
  }

  /** Passes over the value at the cursor. If it is to be read, it is kept as it is written. */
  #startSkip(bytes: Buffer, words: DataView, read: Place | null): Fault {
    if (read !== null) this.#value.open(this.#offset + this.#cursor.i, read)
    this.#cursor.skipped = 0
    this.#cursor.state = SKIPPING
    return this.#skip(bytes, words)
  }

  #skip(bytes: Buffer, words: DataView): Fault {
    const action = skip(bytes, words, this.#cursor)
    if (action === OPEN_STRING) this.#openString(false, SKIPPING)
    if (action !== END_SEEN_VALUE) return null
    return this.#endValue(bytes, this.#value.object(bytes, this.#offset, this.#cursor.i))
  }

  /**
   * The closing quote of a string that is short, whole and without escapes but those of one character, as nearly all names
   * and values are.
   */
  #crossShort(bytes: Buffer, words: DataView): number {
    const cursor = this.#cursor
    const end = Math.min(cursor.i + NEAR_BYTES, bytes.length)
    let stop = nextStop(bytes, words, cursor.i + 1, end)
    this.#isPlain = true
    while (stop + 1 < end && bytes[stop] === BACKSLASH && ESCAPES[bytes[stop + 1] as number] === 1) {
      this.#isPlain = false
      stop = nextStop(bytes, words, stop + 2, end)
    }
    if (stop >= end || bytes[stop] !== QUOTE) return NOWHERE
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
  #closeContainer(bytes: Buffer): void {
    const cursor = this.#cursor
    this.#handOver.endValue(bytes, cursor.i, cursor.depth)
    if (this.#tree.close()) {
      this.#rootEnd = this.#offset + cursor.i - 1
      cursor.state = AFTER_ROOT
    } else cursor.state = this.#tree.inObject ? SEEN_AFTER_MEMBER : SEEN_AFTER_ELEMENT
  }

  /** The value ends before the cursor. */
  #endValue(bytes: Buffer, value: Picked): Fault {
    const cursor = this.#cursor
    this.#handOver.endValue(bytes, cursor.i, cursor.depth)
    cursor.state = this.#tree.inObject ? SEEN_AFTER_MEMBER : SEEN_AFTER_ELEMENT
    if (!this.#captured.isOpen) return this.#tree.add(value) ? null : 'too_much'
    const text = this.#value.take(bytes, this.#offset, cursor.i, this.#limits.captureBytesMax)
    cursor.marks = this.#captured.end(text, this.#offset + cursor.i, cursor.marks)
    return null
  }

  #openString(strict: boolean, after: number): void {
    const cursor = this.#cursor
    cursor.i++
    cursor.state = IN_STRING
    this.#afterString = after
    this.#string.open(strict)
    this.#mark?.open(cursor.i)
  }

  #crossString(bytes: Buffer, words: DataView): Fault {
    const cursor = this.#cursor
    const quote = this.#string.cross(bytes, cursor.i)
    cursor.i = quote < 0 ? -1 - quote : quote
    if (quote < 0) return this.#afterString === SKIPPING ? this.#passEscape(bytes) : 'not_json'
    if (quote === bytes.length) return null
    if (this.#mark !== null) cursor.marks |= this.#mark.close(bytes, quote, this.#string.hasNeedlessEscape)
    if (this.#afterString === END_SEEN_NAME)
      return this.#endName(bytes, words, this.#value.start - this.#offset, false)
    cursor.i++
    if (this.#afterString === END_SEEN_VALUE)
      return this.#endValue(bytes, this.#value.string(bytes, this.#offset, quote))
    cursor.state = this.#afterString
    return null
  }

  /** The byte at the cursor makes no escape, which is no reason to stop in a string that is passed over. */
  #passEscape(bytes: Buffer): Fault {
    if (bytes[this.#cursor.i] !== QUOTE) this.#cursor.i++
    this.#string.open(false)
    return null
  }

  /** Gives the stack its full depth. False if it has that already; else the byte at the cursor is to be looked at again. */
  #deepen(): boolean {
    const { depthMax } = this.#limits
    if (this.#stack.length >= depthMax) return false
    const deeper = new Uint8Array(depthMax)
    deeper.set(this.#stack)
    this.#stack = deeper
    return true
  }

  #unexpected(bytes: Buffer, words: DataView): Fault {
    const { i, state } = this.#cursor
    if (this.#tolerant && state === SEEN_MEMBER_AHEAD && this.#tree.place === null)
      return this.#startSkip(bytes, words, null)
    if (state === AFTER_ROOT) return 'trailing_bytes'
    if (state !== BEFORE_ROOT) return 'not_json'
    if (this.#offset + i === 0 && bytes[i] === 0xef) return 'byte_order_mark'
    return '"-0123456789ftn'.includes(bytes.toString('latin1', i, i + 1)) ? 'not_an_object' : 'not_json'
  }

  /** The first fault counts. `i` is the fault's offset in the chunk at hand. Lets go of everything that was found. */
  #fail(reason: UnreadableJson, i: number): void {
    this.#failure ??= { kind: 'unreadable', reason, at: this.#offset + i }
    this.#letGo()
  }

  #letGo(): void {
    this.#captured.clear()
    this.#value.drop()
    this.#tree.clear()
    this.#handOver.drop()
  }
}

/** The answer for a whole text at hand. */
export function scanJson<Name extends string>(
  bytes: Buffer,
  names: Iterable<Name> | Place,
  limits?: Partial<JsonScanLimits>,
): JsonScan<Name> {
  const root = 'members' in names ? names : capturing(names)
  const walker = new JsonWalker(root, limits === undefined ? {} : { limits })
  walker.write(bytes)
  return walker.end() as JsonScan<Name>
}
