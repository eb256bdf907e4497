import { MarkWatch } from './content-marks.ts'
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
import { JsonMembers, type Piece } from './json-members.ts'
import { JSON_SCAN_LIMITS, type JsonScan, type JsonScanLimits, type UnreadableJson } from './json-scan.ts'
import { JsonString } from './json-string.ts'
import { type Cursor, END_OF_CHUNK, walk } from './json-walk.ts'
import { Utf8Check } from './utf8-check.ts'
import { WatchedNames } from './watched-names.ts'

/** Up to here the stack is an array that V8 keeps on its heap: one that it does not takes 3.5 µs to make and to give back. */
const SHALLOW_DEPTH = 64

/** What is wrong with the byte at the cursor. */
type Fault = UnreadableJson | null

/**
 * Finds members of the top-level object of a JSON text that arrives in pieces, without building it.
 *
 * It accepts what RFC 8259 and JSON.parse accept, encoded in UTF-8, at any depth, with one exception: control
 * characters inside the strings of members that are not watched are not looked for (json-string.ts says why that is
 * safe). What it refuses beyond the grammar is what parsers are known to disagree on: see UnreadableJson. The answer
 * does not depend on how the text was cut, and no chunk is referred to after `write` returns.
 */
export class JsonScanner<Name extends string = string> {
  readonly #limits: JsonScanLimits
  readonly #members: JsonMembers<Name>
  readonly #utf8 = new Utf8Check()
  readonly #string = new JsonString()
  readonly #mark = new MarkWatch()
  /** For each open container the state behind it. */
  #stack = new Uint8Array(SHALLOW_DEPTH)
  readonly #cursor: Cursor = { i: 0, state: BEFORE_OBJECT, depth: 0, marks: 0 }
  /** The state behind the string at hand. */
  #afterString = 0
  /** The document's offset of the first byte of the chunk at hand. */
  #offset = 0
  #objectEnd = 0
  #failure: Extract<JsonScan, { kind: 'unreadable' }> | null = null
  #ended = false
  readonly #unmarked: Name | null
  #marksBefore = 0

  /** `unmarked` is a member whose strings mark nothing, whatever they say. */
  constructor(
    names: Iterable<Name> | WatchedNames<Name>,
    limits: Partial<JsonScanLimits> | null = null,
    unmarked: Name | null = null,
  ) {
    this.#unmarked = unmarked
    this.#limits = limits === null ? JSON_SCAN_LIMITS : { ...JSON_SCAN_LIMITS, ...limits }
    const watched = names instanceof WatchedNames ? names : new WatchedNames(names)
    this.#members = new JsonMembers(watched, this.#limits)
    if (this.#limits.depthMax < SHALLOW_DEPTH) this.#stack = new Uint8Array(this.#limits.depthMax)
  }

  write(chunk: Uint8Array): void {
    if (this.#ended) throw new Error('JsonScanner: write after end')
    if (this.#failure !== null) return
    const room = this.#limits.documentBytesMax - this.#offset
    const whole = asBuffer(chunk, room)
    const valid = this.#utf8.validPrefix(whole)
    this.#scan(valid === whole.length ? whole : whole.subarray(0, valid))
    if (valid < whole.length) this.#fail('not_utf8', valid)
    if (whole.length < chunk.length) this.#fail('too_large', room)
    this.#offset += whole.length
  }

  end(): JsonScan<Name> {
    this.#ended = true
    if (this.#cursor.state === BEFORE_OBJECT) this.#fail('empty', 0)
    if (this.#cursor.state !== AFTER_OBJECT) this.#fail('truncated', 0)
    if (this.#failure !== null) return this.#failure
    const { found, duplicates, none } = this.#members
    return {
      kind: 'object',
      members: found,
      duplicates,
      objectEnd: this.#objectEnd,
      empty: none,
      marks: this.#cursor.marks,
    }
  }

  #scan(bytes: Buffer): void {
    const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    const piece = { bytes, offset: this.#offset }
    const cursor = this.#cursor
    cursor.i = 0
    this.#string.enterChunk()
    while (cursor.i < bytes.length && this.#failure === null) {
      const fault =
        cursor.state === IN_STRING
          ? this.#crossString(piece)
          : this.#act(walk(bytes, words, this.#stack, cursor), piece)
      if (fault !== null) this.#fail(fault, cursor.i)
    }
    if (cursor.state === IN_STRING) this.#mark.endChunk(bytes)
    this.#members.endPiece(piece)
  }

  #crossString(piece: Piece): Fault {
    const cursor = this.#cursor
    const quote = this.#string.cross(piece.bytes, cursor.i)
    cursor.i = quote < 0 ? -1 - quote : quote
    if (quote < 0) return 'not_json'
    if (quote === piece.bytes.length) return null
    cursor.marks |= this.#string.hasNeedlessEscape
      ? this.#mark.closeEscaped(piece.bytes, quote)
      : this.#mark.close(piece.bytes, quote)
    return this.#close(this.#afterString, piece)
  }

  /** Does what the grammar asks for at the byte at the cursor, and leaves the cursor at the next byte to look at. */
  #act(action: number, piece: Piece): Fault {
    const cursor = this.#cursor
    switch (action) {
      case END_OF_CHUNK:
        return null
      case OPEN_STRING:
        return this.#openString(this.#members.watching)
      case OPEN_TOP_NAME:
        return this.#members.startName(piece, cursor.i) ?? this.#openString(true)
      case OPEN_TOP_OBJECT:
        this.#stack[0] = AFTER[cursor.state] as number
        cursor.depth = 1
        cursor.state = TOP_FIRST_NAME
        cursor.i++
        return null
      case OPEN_OBJECT:
      case OPEN_ARRAY:
        return this.#deepen() ? null : 'too_deep'
      case CLOSE:
        cursor.depth--
        return this.#close(this.#stack[cursor.depth] as number, piece)
      case START_TOP_VALUE:
        this.#members.startValue(piece, cursor.i)
        this.#marksBefore = cursor.marks
        cursor.state = TOP_VALUE
        return null
      case END_TOP_LITERAL:
        return this.#close(END_TOP_VALUE, piece)
      case END_TOP_NUMBER:
        this.#members.endValue(piece, cursor.i)
        cursor.state = TOP_AFTER_VALUE
        return null
      default:
        return this.#unexpected(piece)
    }
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

  #openString(strict: boolean): null {
    const cursor = this.#cursor
    this.#string.open(strict)
    this.#mark.open(cursor.i + 1)
    this.#afterString = AFTER[cursor.state] as number
    cursor.state = IN_STRING
    cursor.i++
    return null
  }

  /** The byte at the cursor is the last one of something, behind which `after` is due. */
  #close(after: number, piece: Piece): Fault {
    const cursor = this.#cursor
    if (after === END_TOP_NAME) {
      const fault = this.#members.endName(piece, cursor.i)
      if (fault !== null) return fault
      cursor.state = TOP_COLON
    } else if (after === END_TOP_VALUE) {
      if (this.#unmarked !== null && this.#members.current === this.#unmarked)
        cursor.marks = this.#marksBefore
      this.#members.endValue(piece, cursor.i + 1)
      cursor.state = TOP_AFTER_VALUE
    } else if (after === END_OBJECT) {
      this.#objectEnd = this.#offset + cursor.i
      cursor.state = AFTER_OBJECT
    } else cursor.state = after
    cursor.i++
    return null
  }

  #unexpected({ bytes, offset }: Piece): Fault {
    const { i, state } = this.#cursor
    if (state === AFTER_OBJECT) return 'trailing_bytes'
    if (state !== BEFORE_OBJECT) return 'not_json'
    if (offset + i === 0 && bytes[i] === 0xef) return 'byte_order_mark'
    return '"-[0123456789ftn'.includes(bytes.toString('latin1', i, i + 1)) ? 'not_an_object' : 'not_json'
  }

  /** The first fault counts. `i` is where in the chunk at hand it is. */
  #fail(reason: UnreadableJson, i: number): void {
    this.#failure ??= { kind: 'unreadable', reason, at: this.#offset + i }
    this.#members.clear()
  }
}

/** The answer for a whole text at hand. */
export function scanJson<Name extends string>(
  bytes: Uint8Array,
  names: Iterable<Name> | WatchedNames<Name>,
  limits: Partial<JsonScanLimits> = {},
): JsonScan<Name> {
  const scanner = new JsonScanner(names, limits)
  scanner.write(bytes)
  return scanner.end()
}

/** As much of it as there is room for. Another view of the same bytes is made only where it must be. */
function asBuffer(bytes: Uint8Array, lengthMax: number): Buffer {
  if (bytes.length <= lengthMax && Buffer.isBuffer(bytes)) return bytes
  return Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.length, lengthMax))
}
