import { isUtf8 } from 'node:buffer'
import { buildRunCode, RUN_BYTES_AT, RUN_BYTES_MAX } from './string-run-code.ts'

export const QUOTE = 0x22
const BACKSLASH = 0x5c
const LETTER_U = 0x75

/** The longest escape is a character by its digits. */
const ESCAPE_BYTES_MAX = 6

/** 1 for every byte that makes an escape of one character behind a backslash. */
const ESCAPES = new Uint8Array(256)
for (const byte of Buffer.from('"\\/bfnrt')) ESCAPES[byte] = 1

const { memory, run } = buildRunCode(ESCAPES)
/** The object whose bytes are in the memory: all objects share it, and load their bytes again after another. */
let owner: StringRuns | null = null

/** Finds where runs of characters of JSON strings end, in one chunk after the other. No byte is copied or searched twice. */
export class StringRuns {
  /** The part of the chunk that is in the memory. */
  #from = 0
  #to = 0
  /** The next quote and backslash, once searched natively. */
  #quote = -1
  #backslash = -1
  /** Searches begun, and bytes copied or searched. */
  work = 0

  /** To be called before the first `end` of each chunk. */
  enterChunk(): void {
    this.#from = 0
    this.#to = 0
    this.#quote = -1
    this.#backslash = -1
  }

  /**
   * The offset of the first byte that is a quote, a control character if the string is `strict`, or a backslash; or
   * `to`. A backslash is passed with the escape that it begins, unless that is none, is not whole before `to`, or gives
   * the digits of a character from U+0030 to U+003F or from U+0050 to U+007F, which need not be escaped.
   */
  end(chunk: Buffer, from: number, to: number, strict: boolean): number {
    let i = from
    while (i < to) {
      if (i < this.#from || i >= this.#to || owner !== this) {
        i = this.#load(chunk, i, strict)
        if (i >= to) return to
      }
      const shift = RUN_BYTES_AT - this.#from
      const end = Math.min(to, this.#to)
      this.work++
      i = run(i + shift, end + shift, strict ? 0x20 : 0) - shift
      if (i < end) {
        // An escape that the end of the part cuts off is whole once the part is loaded that begins with it.
        if (i <= end - ESCAPE_BYTES_MAX || end === to || chunk[i] !== BACKSLASH) return i
        this.#to = i
      }
    }
    return to
  }

  /**
   * Copies a part of the chunk into the memory, and answers the offset of that part. Where neither a quote nor a
   * backslash is near, as in an image, native code finds that out in half the time.
   */
  #load(chunk: Buffer, from: number, strict: boolean): number {
    let i = from
    if (!strict) {
      if (this.#quote < i) this.#quote = this.#search(chunk, QUOTE, i)
      if (this.#backslash < i) this.#backslash = this.#search(chunk, BACKSLASH, i)
      i = Math.min(this.#quote, this.#backslash)
    }
    owner = this
    this.#from = i
    this.#to = Math.min(i + RUN_BYTES_MAX, chunk.length)
    chunk.copy(memory, RUN_BYTES_AT, i, this.#to)
    this.work += this.#to - i
    return i
  }

  #search(chunk: Buffer, byte: number, from: number): number {
    const index = chunk.indexOf(byte, from)
    const found = index < 0 ? chunk.length : index
    this.work += found - from
    return found
  }
}

const HEX_DIGITS = new Uint8Array(256)
for (const byte of Buffer.from('0123456789abcdefABCDEF')) HEX_DIGITS[byte] = 1

/** The byte that is due inside a string: of a character, behind a backslash, or one of 1 to 4 hexadecimal digits. */
const CHARACTER = 0
const ESCAPED = 5

/** A string is short if it ends within so many bytes. */
const NEAR_BYTES = 256

/**
 * Crosses the inside of a JSON string, however it is cut. Escapes are always verified: a parser that trusts `\u` jumps
 * four bytes, be the closing quote among them, and would see other members than we do. Control characters are refused
 * only in a `strict` string: they move no quote, so a parser that accepts them and one that refuses them never see
 * different members, and native code looks for two bytes faster than any code looks for all control characters.
 */
export class JsonString {
  #strict = false
  #due = CHARACTER
  /** The digits of an escaped character as they are written, one byte each. */
  #code = 0
  #hasNeedlessEscape = false
  readonly #runs = new StringRuns()

  open(strict: boolean): void {
    this.#strict = strict
    this.#due = CHARACTER
    this.#hasNeedlessEscape = false
  }

  /** Whether the string has a letter, a digit of `base64` or an underscore escaped, so that it may spell a mark unseen. */
  get hasNeedlessEscape(): boolean {
    return this.#hasNeedlessEscape
  }

  get work(): number {
    return this.#runs.work
  }

  /** To be called before the first `cross` of each chunk. */
  enterChunk(): void {
    this.#runs.enterChunk()
  }

  /**
   * The offset of the closing quote, or the chunk's length if the string goes on, or `-1 - offset` of a byte that no
   * JSON string can have there.
   */
  cross(chunk: Buffer, from: number): number {
    const length = chunk.length
    let i = from
    let due = this.#due
    while (i < length) {
      if (due === CHARACTER) {
        i = this.#runs.end(chunk, i, length, this.#strict)
        if (i === length) break
        const byte = chunk[i] as number
        if (byte === QUOTE) return i
        if (byte !== BACKSLASH) return -1 - i
        due = ESCAPED
      } else if (due === ESCAPED) {
        const byte = chunk[i] as number
        if (byte === LETTER_U) {
          due = 4
          this.#code = 0
        } else if (ESCAPES[byte] === 1) due = CHARACTER
        else return -1 - i
      } else {
        if (HEX_DIGITS[chunk[i] as number] === 0) return -1 - i
        this.#code = (this.#code << 8) | (chunk[i] as number)
        due--
        if (due === CHARACTER && isNeedless(this.#code)) this.#hasNeedlessEscape = true
      }
      i++
    }
    this.#due = due
    return length
  }
}

/** The digits of U+0050 to U+007F, U+0034 or U+0036. No encoder escapes these; characters that must be escaped are elsewhere. */
function isNeedless(digits: number): boolean {
  if (digits >>> 16 !== 0x3030) return false
  const high = (digits >>> 8) & 0xff
  const low = digits & 0xff
  return (high >= 0x35 && high <= 0x37) || (high === 0x33 && (low === 0x34 || low === 0x36))
}

const TOP_BITS = -0x7f7f7f80 // 0x80808080 as the signed number that bit operations give

/**
 * Marks, by their top bits, the bytes of a word that are a quote, a backslash or a control character: a byte below n
 * has its top bit set in `(word - n) & ~word`, and a byte equal to c is one below 1 in `word ^ c`. Borrows only ever
 * mark bytes above one that is marked rightly, so the lowest mark is right.
 */
function stops(word: number): number {
  const control = word - 0x20202020
  const quote = (word ^ 0x22222222) - 0x01010101
  const backslash = (word ^ 0x5c5c5c5c) - 0x01010101
  return (control | quote | backslash) & ~word
}

/**
 * The offset of the next quote, backslash or control character, or the length. Four bytes at once are 1.2 GB/s where one by
 * one is 0.5.
 */
function nextStop(chunk: Buffer, words: DataView, from: number, length: number): number {
  let i = from
  let marks = 0
  while (i <= length - 4) {
    marks = stops(words.getInt32(i, true)) & TOP_BITS
    if (marks !== 0) break
    i += 4
  }
  if (marks !== 0) return i + ((31 - Math.clz32(marks & -marks)) >> 3)
  while (i < length) {
    const byte = chunk[i] as number
    if (byte < 0x20 || byte === QUOTE || byte === BACKSLASH) break
    i++
  }
  return i
}

/** The closing quote of a string that is short, whole and without escapes but those of one character; -1 for another one. */
export function endOfShort(bytes: Buffer, words: DataView, start: number): number {
  const end = Math.min(start + NEAR_BYTES, bytes.length)
  let stop = nextStop(bytes, words, start + 1, end)
  while (stop + 1 < end && bytes[stop] === BACKSLASH && ESCAPES[bytes[stop + 1] as number] === 1)
    stop = nextStop(bytes, words, stop + 2, end)
  return stop < end && bytes[stop] === QUOTE ? stop : -1
}

/**
 * Verifies UTF-8 that arrives in pieces. Native code does the bulk (28 GB/s on ASCII); the few bytes around a cut
 * and the search for a wrong byte go through a state of three numbers.
 */
export class Utf8Check {
  /** Continuation bytes that the open sequence still needs, and the range the next of them must be in. */
  #due = 0
  #low = 0x80
  #high = 0xbf

  /**
   * The offset of the first byte with which the text can no longer be UTF-8, or the chunk's length. The offset is
   * the same however the text is cut. A sequence left open at the end is no fault yet: the next chunk may end it.
   */
  validPrefix(chunk: Uint8Array): number {
    let i = 0
    for (; this.#due > 0 && i < chunk.length; i++) {
      if (!this.#accept(chunk[i] as number)) return i
    }
    const tail = startOfOpenSequence(chunk, i)
    if (isUtf8(i === 0 && tail === chunk.length ? chunk : chunk.subarray(i, tail))) i = tail
    for (; i < chunk.length; i++) {
      if (!this.#accept(chunk[i] as number)) return i
    }
    return chunk.length
  }

  /** Table 3-7 of the Unicode standard: no overlong forms, no surrogates, nothing above U+10FFFF. */
  #accept(byte: number): boolean {
    if (this.#due > 0) {
      if (byte < this.#low || byte > this.#high) return false
      this.#due--
      this.#low = 0x80
      this.#high = 0xbf
      return true
    }
    if (byte < 0x80) return true
    if (byte < 0xc2 || byte > 0xf4) return false
    this.#due = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3
    if (byte === 0xe0) this.#low = 0xa0
    else if (byte === 0xed) this.#high = 0x9f
    else if (byte === 0xf0) this.#low = 0x90
    else if (byte === 0xf4) this.#high = 0x8f
    return true
  }
}

/** The offset of a UTF-8 sequence that the end of the chunk cuts off; the chunk's length if there is none. */
function startOfOpenSequence(chunk: Uint8Array, from: number): number {
  for (let back = 1; back <= 3 && chunk.length - back >= from; back++) {
    const byte = chunk[chunk.length - back] as number
    if (byte < 0x80) break
    if (byte < 0xc0) continue
    const needed = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4
    return needed > back ? chunk.length - back : chunk.length
  }
  return chunk.length
}
