import { nextStop, QUOTE, startOfOpenSequence } from './json-string.ts'

/** Members whose strings are prompt text on either surface. Other strings (image data, ids, URLs) are not counted. */
const TEXT_MEMBERS: ReadonlySet<string> = new Set([
  'text',
  'content',
  'input',
  'prompt',
  'instructions',
  'system',
  'description',
  'arguments',
  'output',
])

/** Deeper than any request nests its text. Text that is nested deeper is passed over. */
const DEPTH_MAX = 64
/** More bytes than any name of TEXT_MEMBERS has with every letter escaped. */
const NAME_BYTES_MAX = 96

const [BACKSLASH, LETTER_U] = [0x5c, 0x75]
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET, COMMA, COLON] = [
  0x7b, 0x7d, 0x5b, 0x5d, 0x2c, 0x3a,
]
const [DIGIT_0, DIGIT_9] = [0x30, 0x39]
const NOTHING = Buffer.alloc(0)

/** The kinds of open containers: an object, an array, or an array whose strings are prompt text. */
const OBJECT = 0
const ARRAY = 1
const TEXT_ARRAY = 2

/** The kinds of the string at hand. */
const NO_STRING = 0
const NAME = 1
const TEXT = 2
const OTHER = 3

export interface PromptTextSink {
  /** More of the text at hand. */
  add(piece: string): void
  endText(): void
  /** A number among prompts is a token that the client has counted itself. */
  token(): void
}

/**
 * Finds the prompt text in a JSON request body that comes in pieces. It keeps a few bytes from one piece to the next,
 * whatever the body is; it judges no grammar, because upstream has, and only must not fail where the body is no JSON.
 */
export class PromptTexts {
  readonly #sink: PromptTextSink
  readonly #containers = new Uint8Array(DEPTH_MAX + 1)
  #depth = 0
  #string = NO_STRING
  #nameIsDue = false
  /** Whether a string that comes next is prompt text. */
  #valueIsText = false
  #sawNumber = false
  /** The last bytes of the piece before, where a character, an escape or a name was cut off. */
  #carried: Buffer = NOTHING
  #began = false
  #broken = false

  constructor(sink: PromptTextSink) {
    this.#sink = sink
  }

  write(piece: Buffer): void {
    const bytes = this.#carried.length === 0 ? piece : Buffer.concat([this.#carried, piece])
    this.#carried = NOTHING
    const words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    let i = 0
    while (i < bytes.length) {
      i = this.#string === NO_STRING ? this.#walk(bytes, i) : this.#crossString(bytes, words, i)
    }
  }

  /** Whether the body was one object and nothing else, as far as the grammar was looked at. */
  end(): boolean {
    return this.#began && !this.#broken && this.#depth === 0 && this.#string === NO_STRING
  }

  /** Goes on to the next string. */
  #walk(bytes: Buffer, from: number): number {
    for (let i = from; i < bytes.length; i++) {
      const byte = bytes[i] as number
      if (byte <= 0x20) continue
      if (this.#depth === 0 && (byte !== OPEN_BRACE || this.#began)) this.#broken = true
      switch (byte) {
        case QUOTE:
          this.#string = this.#nameIsDue ? NAME : this.#valueIsText ? TEXT : OTHER
          return i + 1
        case OPEN_BRACE:
          this.#open(OBJECT)
          break
        case OPEN_BRACKET:
          this.#open(this.#valueIsText ? TEXT_ARRAY : ARRAY)
          break
        case CLOSE_BRACE:
        case CLOSE_BRACKET:
          this.#endValue()
          this.#close()
          break
        case COMMA:
          this.#endValue()
          this.#expect()
          break
        case COLON:
          this.#nameIsDue = false
          break
        default:
          if (byte >= DIGIT_0 && byte <= DIGIT_9) this.#sawNumber = true
      }
    }
    return bytes.length
  }

  #open(container: number): void {
    this.#began = true
    this.#depth++
    if (this.#depth <= DEPTH_MAX) this.#containers[this.#depth] = container
    this.#expect()
  }

  #close(): void {
    if (this.#depth === 0) return
    this.#depth--
    this.#expect()
    // Behind a value of an object a comma comes first, and then the name.
    this.#nameIsDue = false
  }

  /** Sets whether a name or prompt text may come next in the innermost container. */
  #expect(): void {
    const container = this.#depth <= DEPTH_MAX ? this.#containers[this.#depth] : ARRAY
    this.#nameIsDue = container === OBJECT && this.#depth > 0
    this.#valueIsText = container === TEXT_ARRAY
  }

  #endValue(): void {
    if (this.#sawNumber && this.#valueIsText) this.#sink.token()
    this.#sawNumber = false
  }

  /** Goes on behind the string's end, or keeps the bytes that have to be looked at together with the next piece. */
  #crossString(bytes: Buffer, words: DataView, from: number): number {
    const { length } = bytes
    let escaped = false
    let stop = nextStop(bytes, words, from, length)
    while (bytes[stop] !== QUOTE) {
      if (stop === length) return this.#cut(bytes, from, startOfOpenSequence(bytes, from), escaped)
      let next = stop + 1
      if (bytes[stop] === BACKSLASH) {
        next = stop + (bytes[stop + 1] === LETTER_U ? 6 : 2)
        if (next > length) return this.#cut(bytes, from, stop, escaped)
        escaped = true
      }
      stop = nextStop(bytes, words, next, length)
    }
    const kind = this.#string
    this.#string = NO_STRING
    if (kind === NAME) this.#valueIsText = isTextMember(bytes, from, stop, escaped)
    if (kind === TEXT) {
      this.#sink.add(decode(bytes, from, stop, escaped))
      this.#sink.endText()
    }
    return stop + 1
  }

  /** The string goes on in the next piece. Up to `end` it can be read now. */
  #cut(bytes: Buffer, from: number, end: number, escaped: boolean): number {
    let kept = end
    if (this.#string === TEXT && end > from) this.#sink.add(decode(bytes, from, end, escaped))
    if (this.#string === NAME) {
      if (bytes.length - from <= NAME_BYTES_MAX) kept = from
      else {
        // No name of TEXT_MEMBERS is so long.
        this.#string = OTHER
        this.#valueIsText = false
      }
    }
    // A copy of a few bytes: a view would keep the piece in memory, which may be large.
    this.#carried = Buffer.from(bytes.subarray(kept))
    return bytes.length
  }
}

function isTextMember(bytes: Buffer, from: number, to: number, escaped: boolean): boolean {
  return to - from <= NAME_BYTES_MAX && TEXT_MEMBERS.has(decode(bytes, from, to, escaped))
}

function decode(bytes: Buffer, from: number, to: number, escaped: boolean): string {
  const written = bytes.toString('utf8', from, to)
  if (!escaped) return written
  try {
    return JSON.parse(`"${written}"`) as string
  } catch {
    // Text that is no JSON is counted as it is written.
    return written
  }
}
