import {
  AMBIGUOUS,
  type Frame,
  type JsonObject,
  openFrame,
  type Shape,
  Sized,
  SKIM_LIMITS,
  type Skimmed,
  type SkimmedElement,
  type Span,
  UNREAD,
  type UnreadableJson,
} from './json-shape.ts'
import { endOfShort, JsonString, QUOTE, Utf8Check } from './json-string.ts'
import {
  BLANKS,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  EVERY_MARK,
  endOfScalar,
  KeptPart,
  LETTER_N,
  MARK_ENDS,
  MARK_START,
  MarkWatch,
  markOf,
  OPEN_BRACE,
  OPEN_BRACKET,
  SCALAR_ENDS,
  SCALARS,
} from './json-tokens.ts'
import { parseSlice, parseString } from './parse-slice.ts'

/** The token that may come next. */
const [BEFORE_VALUE, BEFORE_ELEMENT, BEFORE_FIRST_NAME, BEFORE_NAME, BEFORE_COLON, AFTER_VALUE] = [
  0, 1, 2, 3, 4, 5,
]
const [AFTER_ROOT, IN_NAME, IN_STRING, IN_SCALAR] = [6, 7, 8, 9]

/**
 * Reads a JSON text that arrives in pieces, in one pass and constant memory. A `Shape` says which members to read; the
 * grammar of everything else is checked, and its content skipped.
 *
 *   const skim = new JsonSkim(objectShape({ model: VALUE, input: eachShape(objectShape({ type: GLANCE })) }), onItem)
 *   skim.write(chunk) …
 *   const skimmed = skim.end()     // { value: { model: 'm', input: UNREAD }, spans, duplicates, marks, … }
 *
 * - `VALUE`: copied and parsed with JSON.parse. All values of a text together may have `keptBytesMax` bytes; further
 *   ones are UNREAD.
 * - `GLANCE`: a short string, a number, a boolean or null; every other value is UNREAD, and costs nothing.
 * - `SIZE`: like GLANCE, but every other value is a `Sized` with its length.
 * - `objectShape`: the members of an object. A value of another type is read like GLANCE.
 * - `eachShape`: an array whose elements are passed to `onElement` one by one and not stored. The array itself is UNREAD.
 * - `listShape`: an array whose elements are stored, at most `listedMax` per text.
 *
 * Accepts what RFC 8259 and JSON.parse accept, in UTF-8, if the outermost value is a container of the shape. Texts on
 * which parsers disagree are refused: see UnreadableJson. One exception: control characters in skipped strings are not
 * detected (json-string.ts says why that is safe). The result does not depend on how the text was split. Work per byte
 * is bounded by a constant (`work` counts it).
 */
export class JsonSkim {
  readonly #root: Shape
  readonly #onElement: ((element: SkimmedElement) => void) | null
  readonly #utf8 = new Utf8Check()
  readonly #string = new JsonString()
  #stack = new Uint8Array(64)
  #depth = 0
  #state = BEFORE_VALUE
  #offset = 0
  #frame: Frame | null = null
  /** Number of open frames, and the depth of the innermost one's values. */
  #level = 0

  #shape: Shape | null = null
  #valueStart = 0
  #firstByte = 0
  #marksBefore = 0
  /** The current name or value if it is read, and the total size of read values. */
  readonly #kept = new KeptPart()
  #keptBytes = 0

  #scalar = 0
  readonly #mark = new MarkWatch()

  #marks = 0
  #value: JsonObject = {}
  readonly #spans = new Map<string, Span>()
  readonly #duplicates = new Set<string>()
  readonly #twiceInside = new Set<string>()
  #listed = 0
  #rootEnd = 0
  #failure: Extract<Skimmed, { kind: 'unreadable' }> | null = null
  #turns = 0

  constructor(shape: Shape, onElement: ((element: SkimmedElement) => void) | null = null) {
    this.#root = shape
    this.#onElement = onElement
  }

  get failed(): boolean {
    return this.#failure !== null
  }

  /** Steps taken and bytes copied or searched, for tests: at most a constant times the input. */
  get work(): number {
    return this.#turns + this.#string.work
  }

  write(chunk: Buffer): void {
    if (this.#failure !== null || chunk.length === 0) return
    const valid = this.#utf8.validPrefix(chunk)
    const bytes = valid === chunk.length ? chunk : chunk.subarray(0, valid)
    this.#string.enterChunk()
    this.#scan(bytes)
    if (valid < chunk.length) this.#fail('not_utf8', valid)
    if (this.#failure === null) this.#endChunk(bytes)
    this.#offset += chunk.length
  }

  end(): Skimmed {
    if (this.#state === BEFORE_VALUE && this.#depth === 0) this.#fail('empty', 0)
    if (this.#state !== AFTER_ROOT) this.#fail('truncated', 0)
    if (this.#failure !== null) return this.#failure
    return {
      kind: 'object',
      value: this.#value,
      spans: this.#spans,
      duplicates: [...this.#duplicates],
      twiceInside: [...this.#twiceInside],
      marks: this.#marks,
      bytes: this.#offset,
      overflow: this.#listed > SKIM_LIMITS.listedMax,
      objectEnd: this.#rootEnd,
    }
  }

  #scan(bytes: Buffer): void {
    const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    let i = 0
    while (i < bytes.length && this.#failure === null) {
      this.#turns++
      if (this.#state < IN_NAME && this.#depth > this.#level) i = this.#pass(bytes, words, i)
      if (i === bytes.length) return
      if (this.#state === IN_SCALAR) i = this.#crossScalar(bytes, i)
      else if (this.#state >= IN_NAME) i = this.#crossString(bytes, i)
      else if (BLANKS[bytes[i] as number] === 1) i++
      else i = this.#token(bytes, words, i)
    }
  }

  /** Skips the inside of a value that is not read, up to a token that `#token` must handle. */
  #pass(bytes: Buffer, words: DataView, from: number): number {
    const stack = this.#stack
    const level = this.#level
    let i = from
    let state = this.#state
    let depth = this.#depth
    let turns = 0
    for (; i < bytes.length; turns++) {
      const byte = bytes[i] as number
      if (byte === QUOTE && state <= BEFORE_NAME) {
        const quote = endOfShort(bytes, words, i)
        if (quote < 0) break
        if (MARK_ENDS[bytes[quote - 1] as number] === 1) this.#marks |= markOf(bytes, i + 1, quote)
        state = state >= BEFORE_FIRST_NAME ? BEFORE_COLON : AFTER_VALUE
        i = quote + 1
      } else if (byte === COMMA && state === AFTER_VALUE) {
        state = stack[depth - 1] === 1 ? BEFORE_NAME : BEFORE_VALUE
        i++
      } else if (byte === COLON && state === BEFORE_COLON) {
        state = BEFORE_VALUE
        i++
      } else if ((byte === OPEN_BRACE || byte === OPEN_BRACKET) && state <= BEFORE_ELEMENT) {
        if (depth === stack.length) break
        stack[depth] = byte === OPEN_BRACE ? 1 : 0
        state = byte === OPEN_BRACE ? BEFORE_FIRST_NAME : BEFORE_ELEMENT
        depth++
        i++
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        const [inside, empty] = byte === CLOSE_BRACE ? [1, BEFORE_FIRST_NAME] : [0, BEFORE_ELEMENT]
        const mayEnd = stack[depth - 1] === inside && (state === AFTER_VALUE || state === empty)
        if (!mayEnd || depth - 1 === level) break
        depth--
        state = AFTER_VALUE
        i++
      } else if (BLANKS[byte] === 1) i++
      else {
        const end = state <= BEFORE_ELEMENT ? endOfScalar(bytes, i) : -1
        if (end < 0) break
        turns += end - i
        state = AFTER_VALUE
        i = end
      }
    }
    this.#turns += turns
    this.#state = state
    this.#depth = depth
    return i
  }

  /** Like the others, returns the offset of the next byte to read. */
  #token(bytes: Buffer, words: DataView, i: number): number {
    const byte = bytes[i] as number
    switch (this.#state) {
      case BEFORE_ELEMENT:
        return byte === CLOSE_BRACKET ? this.#close(bytes, i) : this.#startValue(bytes, words, i, byte)
      case BEFORE_VALUE:
        return this.#startValue(bytes, words, i, byte)
      case BEFORE_FIRST_NAME:
        if (byte === CLOSE_BRACE) return this.#close(bytes, i)
        return byte === QUOTE ? this.#startString(bytes, words, i, true) : this.#fail('not_json', i)
      case BEFORE_NAME:
        return byte === QUOTE ? this.#startString(bytes, words, i, true) : this.#fail('not_json', i)
      case BEFORE_COLON:
        if (byte !== COLON) return this.#fail('not_json', i)
        this.#state = BEFORE_VALUE
        return i + 1
      case AFTER_VALUE: {
        const inObject = this.#stack[this.#depth - 1] === 1
        if (byte === (inObject ? CLOSE_BRACE : CLOSE_BRACKET)) return this.#close(bytes, i)
        if (byte !== COMMA) return this.#fail('not_json', i)
        this.#state = inObject ? BEFORE_NAME : BEFORE_VALUE
        return i + 1
      }
      default:
        return this.#fail('trailing_bytes', i)
    }
  }

  #startValue(bytes: Buffer, words: DataView, i: number, byte: number): number {
    const isSeen = this.#depth === this.#level
    if (isSeen) this.#openValue(i, byte)
    switch (byte) {
      case QUOTE:
        if (this.#depth > 0) return this.#startString(bytes, words, i, false)
        break
      case OPEN_BRACE:
      case OPEN_BRACKET:
        return this.#open(i, byte === OPEN_BRACE, isSeen)
      default:
        this.#scalar = SCALARS[byte] as number
        if (this.#scalar === 0) {
          const isMark = byte === MARK_START && this.#offset + i === 0
          return this.#fail(isMark ? 'byte_order_mark' : 'not_json', i)
        }
        this.#state = IN_SCALAR
    }
    return this.#depth === 0 ? this.#fail('not_an_object', i) : i + 1
  }

  #openValue(i: number, byte: number): void {
    const frame = this.#frame
    this.#firstByte = byte
    this.#valueStart = this.#offset + i
    if (frame === null) this.#shape = this.#root
    else if (frame.object === null) {
      this.#shape = frame.shape.each
      frame.elementStart = this.#valueStart
      frame.marksBefore = this.#marks
      frame.keptBefore = this.#keptBytes
      this.#marks = 0
    } else this.#shape = frame.member === null ? null : frame.member.shape
    const shape = this.#shape
    if (shape === null) return
    if (shape.unmarked) this.#marksBefore = this.#marks
    if (shape.kind === 'value') this.#kept.open(this.#valueStart, SKIM_LIMITS.keptBytesMax - this.#keptBytes)
    else if (byte !== OPEN_BRACE && byte !== OPEN_BRACKET)
      this.#kept.open(this.#valueStart, SKIM_LIMITS.glanceBytesMax)
  }

  #open(i: number, isObject: boolean, isSeen: boolean): number {
    if (this.#depth === SKIM_LIMITS.depthMax) return this.#fail('too_deep', i)
    if (this.#depth === this.#stack.length) this.#deepen()
    const shape = isSeen ? this.#shape : null
    const kind = isObject ? 'object' : 'array'
    if (this.#depth === 0 && shape?.kind !== kind) return this.#fail('not_an_object', i)
    this.#stack[this.#depth] = isObject ? 1 : 0
    this.#depth++
    this.#state = isObject ? BEFORE_FIRST_NAME : BEFORE_ELEMENT
    if (shape?.kind !== kind) return i + 1
    this.#level++
    this.#frame = openFrame(this.#frame, shape, this.#valueStart)
    return i + 1
  }

  #deepen(): void {
    const deeper = new Uint8Array(SKIM_LIMITS.depthMax)
    deeper.set(this.#stack)
    this.#stack = deeper
  }

  #close(bytes: Buffer, i: number): number {
    const closed = this.#depth === this.#level ? this.#frame : null
    this.#depth--
    if (closed === null) {
      this.#endValue(bytes, i + 1)
      return i + 1
    }
    this.#level--
    this.#frame = closed.outer
    this.#state = this.#depth === 0 ? AFTER_ROOT : AFTER_VALUE
    if (closed.outer === null) {
      this.#value = closed.object ?? {}
      this.#rootEnd = this.#offset + i
    } else this.#put(closed.outer, closed.object ?? closed.list ?? UNREAD, closed.start, this.#offset + i + 1)
    return i + 1
  }

  #endValue(bytes: Buffer, i: number): void {
    this.#state = AFTER_VALUE
    const frame = this.#frame
    if (this.#depth !== this.#level || frame === null) return
    const shape = this.#shape
    if (shape === null) return
    if (shape.unmarked) this.#marks = this.#marksBefore
    this.#put(frame, this.#readValue(bytes, i), this.#valueStart, this.#offset + i)
  }

  #readValue(chunk: Buffer, i: number): unknown {
    const text = this.#kept.take(chunk, this.#offset, i)?.toString() ?? null
    if (this.#firstByte === LETTER_N) return null
    const bytes = this.#offset + i - this.#valueStart
    const isText = this.#firstByte === QUOTE
    const unread = this.#shape?.kind === 'size' ? new Sized(isText ? bytes - 2 : bytes, isText) : UNREAD
    if (text === null) return unread
    if (this.#shape?.kind === 'value') this.#keptBytes += bytes
    if (isText) return parseString(text) ?? unread
    const { value, twice, work } = parseSlice(text)
    this.#turns += work
    for (const name of twice) this.#twiceInside.add(name)
    return value
  }

  #put(frame: Frame, value: unknown, start: number, end: number): void {
    if (frame.list !== null) {
      this.#listed++
      this.#marks |= frame.marksBefore
      if (this.#listed <= SKIM_LIMITS.listedMax) frame.list.push(value)
    } else if (frame.object === null) {
      this.#onElement?.({ value, bytes: end - frame.elementStart, marks: this.#marks })
      this.#marks |= frame.marksBefore
      this.#keptBytes = frame.keptBefore
    } else if (frame.member !== null) {
      frame.object[frame.member.name] = value
      if (frame.outer === null) this.#spans.set(frame.member.name, { start, end })
    }
  }

  /** The opening quote is at `i`. Nearly all strings are short and whole in the chunk, with simple escapes or none. */
  #startString(bytes: Buffer, words: DataView, i: number, isName: boolean): number {
    const isRead = isName && this.#depth === this.#level
    const stop = endOfShort(bytes, words, i)
    if (stop >= 0) {
      if (MARK_ENDS[bytes[stop - 1] as number] === 1) this.#marks |= markOf(bytes, i + 1, stop)
      if (!isName) this.#endValue(bytes, stop + 1)
      else if (isRead) this.#endName(bytes, i + 1, stop, stop)
      else this.#state = BEFORE_COLON
      return stop + 1
    }
    this.#mark.open(i + 1)
    if (isRead) this.#kept.open(this.#offset + i + 1, SKIM_LIMITS.nameBytesMax)
    this.#string.open(isRead || (this.#kept.isOpen && this.#shape?.kind === 'value'))
    this.#state = isName ? IN_NAME : IN_STRING
    return i + 1
  }

  #crossString(bytes: Buffer, i: number): number {
    const at = this.#string.cross(bytes, i)
    if (at < 0) return this.#fail('not_json', -1 - at)
    if (at === bytes.length) return at
    // A string with an escaped letter may be any mark. No encoder writes such strings, so all marks are set.
    const mark = this.#string.hasNeedlessEscape ? EVERY_MARK : this.#mark.close(bytes, at)
    const isSeen = this.#depth === this.#level
    if (this.#state === IN_STRING) {
      if (!isSeen || this.#shape?.kind !== 'value') this.#marks |= mark
      this.#endValue(bytes, at + 1)
      return at + 1
    }
    this.#state = BEFORE_COLON
    const written = isSeen ? this.#kept.take(bytes, this.#offset, at) : null
    if (isSeen && written === null) return this.#fail('name_too_long', at)
    if (written !== null) this.#endName(written, 0, written.length, at)
    if (!isSeen || this.#frame?.member === null) this.#marks |= mark
    return at + 1
  }

  /** The name of a member of the innermost frame is between `from` and `to`; its closing quote is at `quote` of the current chunk. */
  #endName(bytes: Buffer, from: number, to: number, quote: number): void {
    const frame = this.#frame as Frame
    this.#state = BEFORE_COLON
    this.#turns += to - from
    frame.members++
    frame.member = null
    if (frame.members > SKIM_LIMITS.membersMax) this.#fail('too_many_members', quote)
    const found = frame.shape.names?.find(bytes, from, to) ?? null
    if (found === AMBIGUOUS) this.#fail('ambiguous_name', quote)
    else if (found !== null && frame.object !== null && Object.hasOwn(frame.object, found.name))
      this.#duplicates.add(found.name)
    else frame.member = found
  }

  #crossScalar(bytes: Buffer, from: number): number {
    for (let i = from; i < bytes.length; i++) {
      const next = SCALARS[(this.#scalar << 8) | (bytes[i] as number)] as number
      if (next === 0) return this.#fail('not_json', i)
      if (next === SCALAR_ENDS) {
        this.#endValue(bytes, i)
        return i
      }
      this.#scalar = next
      this.#turns++
    }
    return bytes.length
  }

  /** Copies what must survive the chunk: the start of a name or value, and of a string that may be a mark. */
  #endChunk(bytes: Buffer): void {
    if (this.#state === IN_STRING || this.#state === IN_NAME) this.#mark.endChunk(bytes)
    this.#kept.endChunk(bytes, this.#offset)
  }

  #fail(reason: UnreadableJson, i: number): number {
    this.#failure ??= { kind: 'unreadable', reason, at: this.#offset + i }
    this.#frame = null
    this.#kept.drop()
    return i
  }
}

export function skimWhole(text: Buffer, shape: Shape): Skimmed {
  const skim = new JsonSkim(shape)
  skim.write(text)
  return skim.end()
}
