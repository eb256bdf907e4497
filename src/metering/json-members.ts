import { Capture } from './capture.ts'
import type { JsonMember, JsonScanLimits, JsonSpan, UnreadableJson } from './json-scan.ts'
import type { WatchedNames } from './watched-names.ts'

/** A piece of the document, and where in it the piece begins. */
export interface Piece {
  readonly bytes: Buffer
  readonly offset: number
}

/** Reads the members of the top-level object as the scanner comes across their names and values. */
export class JsonMembers<Name extends string> {
  readonly found = new Map<Name, JsonMember>()
  readonly duplicates = new Set<Name>()
  readonly #names: WatchedNames<Name>
  readonly #limits: JsonScanLimits
  readonly #capture: Capture
  #count = 0
  #nameStart = 0
  #valueStart = 0
  #firstByte = 0
  /** The watched member whose value is due or being read. */
  #member: Name | null = null
  /** Where in the document that began which is being copied, if anything is. */
  #captureStart: number | null = null

  constructor(names: WatchedNames<Name>, limits: JsonScanLimits) {
    this.#names = names
    this.#limits = limits
    this.#capture = new Capture(Math.max(limits.captureBytesMax, limits.nameBytesMax))
  }

  get none(): boolean {
    return this.#count === 0
  }

  /** Whether a value that is due or being read is a watched member's, so that its text must be JSON to the letter. */
  get watching(): boolean {
    return this.#member !== null
  }

  /** A name's opening quote is at `i`. */
  startName(piece: Piece, i: number): UnreadableJson | null {
    this.#count++
    if (this.#count > this.#limits.membersMax) return 'too_many_members'
    this.#nameStart = piece.offset + i
    this.#captureStart = this.#nameStart + 1
    return null
  }

  /** Its closing quote is at `i`. */
  endName(piece: Piece, i: number): UnreadableJson | null {
    const text = this.#takeText(piece, i, this.#limits.nameBytesMax)
    if (text === null) return 'name_too_long'
    const name = text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text
    if (this.#names.isAmbiguous(name)) return 'ambiguous_name'
    const watched = this.#names.find(name)
    if (watched === undefined) return null
    if (this.found.has(watched)) this.duplicates.add(watched)
    else this.#member = watched
    return null
  }

  startValue(piece: Piece, i: number): void {
    if (this.#member === null) return
    this.#valueStart = piece.offset + i
    this.#firstByte = piece.bytes[i] as number
    this.#captureStart = this.#valueStart
  }

  /** The value's last byte is the one before `i`. */
  endValue(piece: Piece, i: number): void {
    if (this.#member === null) return
    const span = { nameStart: this.#nameStart, start: this.#valueStart, end: piece.offset + i }
    const text = this.#takeText(piece, i, this.#limits.captureBytesMax)
    this.found.set(this.#member, memberOf(span, this.#firstByte, text))
    this.#member = null
  }

  /** Copies what is being captured out of a piece that ends before it does. */
  endPiece({ bytes, offset }: Piece): void {
    if (this.#captureStart === null) return
    this.#capture.append(bytes, Math.max(0, this.#captureStart - offset), bytes.length)
  }

  /** Lets go of everything that was found. */
  clear(): void {
    this.found.clear()
    this.#captureStart = null
    this.#capture.clear()
  }

  /** The text that is being captured and ends before `end`, or null if it is longer than it may be. */
  #takeText({ bytes, offset }: Piece, end: number, bytesMax: number): string | null {
    const from = (this.#captureStart ?? 0) - offset
    this.#captureStart = null
    if (end - from > bytesMax) {
      this.#capture.clear()
      return null
    }
    if (from >= 0) return bytes.toString('utf8', from, end)
    this.#capture.append(bytes, 0, end)
    return this.#capture.take(end - from)?.toString('utf8') ?? null
  }
}

/** The grammar was verified, so JSON.parse cannot throw here; the text is at most `captureBytesMax` long. */
function memberOf(span: JsonSpan, firstByte: number, text: string | null): JsonMember {
  switch (String.fromCharCode(firstByte)) {
    case '"':
      if (text === null) return { kind: 'too_long', type: 'string', ...span }
      return { kind: 'string', value: JSON.parse(text) as string, ...span }
    case '{':
      if (text === null) return { kind: 'too_long', type: 'object', ...span }
      return { kind: 'object', json: text, ...span }
    case '[':
      if (text === null) return { kind: 'too_long', type: 'array', ...span }
      return { kind: 'array', json: text, ...span }
    case 't':
      return { kind: 'boolean', value: true, ...span }
    case 'f':
      return { kind: 'boolean', value: false, ...span }
    case 'n':
      return { kind: 'null', ...span }
    default:
      if (text === null) return { kind: 'too_long', type: 'number', ...span }
      return { kind: 'number', value: Number(text), raw: text, ...span }
  }
}
