import { Capture } from './capture.ts'
import type { JsonMember, JsonScanLimits, JsonSpan, UnreadableJson } from './json-scan.ts'
import { AMBIGUOUS, type WatchedNames } from './watched-names.ts'

/** A piece of the document, and where in it the piece begins. */
export interface Piece {
  readonly bytes: Buffer
  readonly offset: number
}

/** Reads the members of the top-level object as the scanner comes across their names and values. */
export class JsonMembers<Name extends string> {
  readonly found = new Map<Name, JsonMember>()
  readonly duplicates: Name[] = []
  readonly #names: WatchedNames<Name>
  readonly #limits: JsonScanLimits
  /** Only what is in two pieces is ever copied. */
  #capture: Capture | null = null
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
  }

  get none(): boolean {
    return this.#count === 0
  }

  /** Whether a value that is due or being read is a watched member's, so that its text must be JSON to the letter. */
  get watching(): boolean {
    return this.#member !== null
  }

  /** The watched member whose value is due or being read. */
  get current(): Name | null {
    return this.#member
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
    const from = (this.#captureStart ?? 0) - piece.offset
    if (i - from > this.#limits.nameBytesMax) return 'name_too_long'
    const text = from < 0 ? this.#takeText(piece, i) : null
    this.#captureStart = null
    const name = text === null ? this.#names.read(piece.bytes, from, i) : this.#names.readText(text)
    if (name === AMBIGUOUS) return 'ambiguous_name'
    if (name === null) return null
    if (!this.found.has(name)) this.#member = name
    else if (!this.duplicates.includes(name)) this.duplicates.push(name)
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
    const end = piece.offset + i
    const span = { nameStart: this.#nameStart, start: this.#valueStart, end }
    const isTooLong = end - span.start > this.#limits.captureBytesMax
    const text = isTooLong ? null : this.#takeText(piece, i)
    if (isTooLong) this.#dropText()
    this.found.set(this.#member, memberOf(span, this.#firstByte, text))
    this.#member = null
  }

  /** Copies what is being captured out of a piece that ends before it does. */
  endPiece({ bytes, offset }: Piece): void {
    if (this.#captureStart === null) return
    const { captureBytesMax, nameBytesMax } = this.#limits
    this.#capture ??= new Capture(Math.max(captureBytesMax, nameBytesMax))
    this.#capture.append(bytes, Math.max(0, this.#captureStart - offset), bytes.length)
  }

  /** Lets go of everything that was found. */
  clear(): void {
    this.found.clear()
    this.#dropText()
  }

  #dropText(): void {
    this.#captureStart = null
    this.#capture?.clear()
  }

  /** The text that is being captured and ends before `end`. Whoever asks knows that it is no longer than it may be. */
  #takeText({ bytes, offset }: Piece, end: number): string {
    const from = (this.#captureStart ?? 0) - offset
    this.#captureStart = null
    if (from >= 0) return bytes.toString('utf8', from, end)
    this.#capture?.append(bytes, 0, end)
    return this.#capture?.take(end - from)?.toString('utf8') ?? ''
  }
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

/** Hardly any has an escape; what has none stands there as it is. */
function stringOf(json: string): string {
  return json.includes('\\') ? (JSON.parse(json) as string) : json.slice(1, -1)
}
