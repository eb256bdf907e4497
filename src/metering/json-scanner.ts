import { Capture } from './capture.ts'
import {
  AFTER,
  AFTER_OBJECT,
  BEFORE_OBJECT,
  CLOSE,
  END_OBJECT,
  END_TOP_LITERAL,
  END_TOP_NAME,
  END_TOP_NUMBER,
  END_TOP_VALUE,
  IN_STRING,
  OPEN_ARRAY,
  OPEN_OBJECT,
  OPEN_STRING,
  OPEN_TOP_NAME,
  OPEN_TOP_OBJECT,
  START_TOP_VALUE,
  TOP_AFTER_VALUE,
  TOP_COLON,
  TOP_FIRST_NAME,
  TOP_VALUE,
} from './json-grammar.ts'
import {
  JSON_SCAN_LIMITS,
  type JsonMember,
  type JsonScan,
  type JsonScanLimits,
  type JsonSpan,
  type UnreadableJson,
} from './json-scan.ts'
import { JsonString } from './json-string.ts'
import { type Cursor, END_OF_CHUNK, walk } from './json-walk.ts'
import { Utf8Check } from './utf8-check.ts'
import { WatchedNames } from './watched-names.ts'

/**
 * Finds members of the top-level object of a JSON text that arrives in pieces, without building it.
 *
 * It accepts what RFC 8259 and JSON.parse accept, encoded in UTF-8, nested or not, with one exception: control
 * characters inside the strings of members that are not watched are not looked for (json-string.ts says why that is
 * safe). What it refuses beyond the grammar is what parsers are known to disagree on: see UnreadableJson. The answer
 * does not depend on how the text was cut, and no chunk is referred to after `write` returns.
 */
export class JsonScanner<Name extends string = string> {
  readonly #names: WatchedNames<Name>
  readonly #limits: JsonScanLimits
  readonly #utf8 = new Utf8Check()
  readonly #string = new JsonString()
  readonly #capture: Capture
  readonly #members = new Map<Name, JsonMember>()
  readonly #duplicates = new Set<Name>()
  /** For each open container the state behind it. */
  readonly #stack: Uint8Array
  readonly #cursor: Cursor = { i: 0, state: BEFORE_OBJECT, depth: 0 }
  #failure: Extract<JsonScan, { kind: 'unreadable' }> | null = null
  #ended = false
  /** The document's offset of the first byte of the chunk at hand. */
  #offset = 0
  #afterString = 0
  #nameStart = 0
  #valueStart = 0
  #valueByte = 0
  /** The watched member whose value is being read. */
  #member: Name | null = null
  /** From where on the chunk at hand belongs to what is captured. */
  #captureFrom = 0
  #capturing = false
  #memberCount = 0
  #objectEnd = 0

  constructor(names: Iterable<Name>, limits: Partial<JsonScanLimits> = {}) {
    this.#names = new WatchedNames(names)
    this.#limits = { ...JSON_SCAN_LIMITS, ...limits }
    this.#stack = new Uint8Array(this.#limits.depthMax)
    this.#capture = new Capture(Math.max(this.#limits.captureBytesMax, this.#limits.nameBytesMax))
  }

  write(chunk: Uint8Array): void {
    if (this.#ended) throw new Error('JsonScanner: write after end')
    if (this.#failure !== null) return
    const room = this.#limits.documentBytesMax - this.#offset
    const whole = Buffer.from(chunk.buffer, chunk.byteOffset, Math.min(chunk.length, room))
    const valid = this.#utf8.validPrefix(whole)
    this.#scan(valid === whole.length ? whole : whole.subarray(0, valid))
    if (valid < whole.length) this.#fail('not_utf8', valid)
    else if (chunk.length > room) this.#fail('too_large', room)
    this.#offset += whole.length
  }

  end(): JsonScan<Name> {
    this.#ended = true
    if (this.#cursor.state === BEFORE_OBJECT) this.#fail('empty', 0)
    if (this.#cursor.state !== AFTER_OBJECT) this.#fail('truncated', 0)
    if (this.#failure !== null) return this.#failure
    return {
      kind: 'object',
      members: this.#members,
      duplicates: [...this.#duplicates],
      objectEnd: this.#objectEnd,
      empty: this.#memberCount === 0,
    }
  }

  #scan(chunk: Buffer): void {
    const words = new DataView(chunk.buffer, chunk.byteOffset, chunk.length)
    const cursor = this.#cursor
    cursor.i = 0
    this.#string.enterChunk()
    while (cursor.i < chunk.length && this.#failure === null) {
      if (cursor.state === IN_STRING) this.#crossString(chunk, words)
      else this.#act(walk(chunk, words, this.#stack, cursor), chunk)
    }
    if (this.#capturing) this.#capture.append(chunk, this.#captureFrom, chunk.length)
    this.#captureFrom = 0
  }

  #crossString(chunk: Buffer, words: DataView): void {
    const cursor = this.#cursor
    const quote = this.#string.cross(chunk, words, cursor.i)
    if (quote < 0) return this.#fail('not_json', -1 - quote)
    cursor.i = quote
    if (quote === chunk.length) return
    this.#leave(this.#afterString, chunk)
  }

  /** Does what the byte at the cursor asks for. */
  #act(action: number, chunk: Buffer): void {
    const cursor = this.#cursor
    switch (action) {
      case END_OF_CHUNK:
        return
      case OPEN_TOP_NAME:
      case OPEN_STRING:
        if (action === OPEN_TOP_NAME) this.#startTopName()
        this.#string.open(action === OPEN_TOP_NAME || this.#member !== null)
        this.#afterString = AFTER[cursor.state] as number
        cursor.state = IN_STRING
        cursor.i++
        return
      case OPEN_TOP_OBJECT:
        this.#stack[0] = AFTER[cursor.state] as number
        cursor.depth = 1
        cursor.state = TOP_FIRST_NAME
        cursor.i++
        return
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        return this.#fail('too_deep', cursor.i)
      case CLOSE:
        cursor.depth--
        return this.#leave(this.#stack[cursor.depth] as number, chunk)
      case START_TOP_VALUE:
        this.#startTopValue(chunk)
        cursor.state = TOP_VALUE
        return
      case END_TOP_LITERAL:
        cursor.i++
        return this.#endTopValue(chunk)
      case END_TOP_NUMBER:
        return this.#endTopValue(chunk)
      default:
        return this.#refuse(chunk)
    }
  }

  /** The byte at the cursor closes a string, a container or the document. */
  #leave(after: number, chunk: Buffer): void {
    const cursor = this.#cursor
    const at = cursor.i
    cursor.i++
    cursor.state = after
    if (after === END_TOP_NAME) this.#endTopName(chunk, at)
    else if (after === END_TOP_VALUE) this.#endTopValue(chunk)
    else if (after === END_OBJECT) {
      this.#objectEnd = this.#offset + at
      cursor.state = AFTER_OBJECT
    }
  }

  #startTopName(): void {
    this.#memberCount++
    if (this.#memberCount > this.#limits.membersMax) return this.#fail('too_many_members', this.#cursor.i)
    this.#nameStart = this.#offset + this.#cursor.i
    this.#capturing = true
    this.#captureFrom = this.#cursor.i + 1
  }

  #endTopName(chunk: Buffer, quote: number): void {
    const length = this.#offset + quote - this.#nameStart - 1
    const text = this.#takeCaptured(chunk, quote, length, this.#limits.nameBytesMax)
    if (text === null) return this.#fail('name_too_long', quote)
    const name = text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text
    if (this.#names.isAmbiguous(name)) return this.#fail('ambiguous_name', quote)
    const watched = this.#names.find(name)
    if (watched !== undefined && this.#members.has(watched)) this.#duplicates.add(watched)
    else this.#member = watched ?? null
    this.#cursor.state = TOP_COLON
  }

  #startTopValue(chunk: Buffer): void {
    if (this.#member === null) return
    const { i } = this.#cursor
    this.#valueStart = this.#offset + i
    this.#valueByte = chunk[i] as number
    this.#capturing = true
    this.#captureFrom = i
  }

  /** The cursor is right behind the value. */
  #endTopValue(chunk: Buffer): void {
    const { i } = this.#cursor
    this.#cursor.state = TOP_AFTER_VALUE
    if (this.#member === null) return
    const span = { nameStart: this.#nameStart, start: this.#valueStart, end: this.#offset + i }
    const text = this.#takeCaptured(chunk, i, span.end - span.start, this.#limits.captureBytesMax)
    this.#members.set(this.#member, memberOf(span, this.#valueByte, text))
    this.#member = null
  }

  /** The captured text of `length` bytes that ends here, or null if that is more than the limit. */
  #takeCaptured(chunk: Buffer, end: number, length: number, bytesMax: number): string | null {
    this.#capturing = false
    if (length > bytesMax) {
      this.#capture.clear()
      return null
    }
    const from = this.#captureFrom
    if (end - from === length) return chunk.toString('utf8', from, end)
    this.#capture.append(chunk, from, end)
    return this.#capture.take(length)?.toString('utf8') ?? null
  }

  #refuse(chunk: Buffer): void {
    const { i, state } = this.#cursor
    const byte = chunk[i] as number
    if (state === AFTER_OBJECT) return this.#fail('trailing_bytes', i)
    if (state !== BEFORE_OBJECT) return this.#fail('not_json', i)
    if (byte === 0xef && this.#offset + i === 0) return this.#fail('byte_order_mark', i)
    this.#fail('"-[0123456789ftn'.includes(String.fromCharCode(byte)) ? 'not_an_object' : 'not_json', i)
  }

  /** The first fault counts. `i` is where in the chunk at hand it is. */
  #fail(reason: UnreadableJson, i: number): void {
    this.#failure ??= { kind: 'unreadable', reason, at: this.#offset + i }
    this.#capturing = false
    this.#capture.clear()
    this.#members.clear()
  }
}

/** The answer for a whole text at hand. */
export function scanJson<Name extends string>(
  bytes: Uint8Array,
  names: Iterable<Name>,
  limits: Partial<JsonScanLimits> = {},
): JsonScan<Name> {
  const scanner = new JsonScanner(names, limits)
  scanner.write(bytes)
  return scanner.end()
}

/** The grammar was verified, so JSON.parse cannot throw here; the text is at most `captureBytesMax` long. */
function memberOf(span: JsonSpan, firstByte: number, text: string | null): JsonMember {
  switch (firstByte) {
    case 0x22: // "
      if (text === null) return { kind: 'too_long', type: 'string', ...span }
      return { kind: 'string', value: JSON.parse(text) as string, ...span }
    case 0x7b: // {
      return text === null
        ? { kind: 'too_long', type: 'object', ...span }
        : { kind: 'object', json: text, ...span }
    case 0x5b: // [
      return text === null
        ? { kind: 'too_long', type: 'array', ...span }
        : { kind: 'array', json: text, ...span }
    case 0x74: // t
      return { kind: 'boolean', value: true, ...span }
    case 0x66: // f
      return { kind: 'boolean', value: false, ...span }
    case 0x6e: // n
      return { kind: 'null', ...span }
    default:
      if (text === null) return { kind: 'too_long', type: 'number', ...span }
      return { kind: 'number', value: Number(text), raw: text, ...span }
  }
}
