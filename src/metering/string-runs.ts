import { buildRunCode, RUN_BYTES_AT, RUN_BYTES_MAX } from './string-run-code.ts'

const [QUOTE, BACKSLASH] = [0x22, 0x5c]

/** One by digits. */
const ESCAPE_BYTES_MAX = 6

/** What makes an escape of one character behind a backslash. */
export const ESCAPES = new Uint8Array(256)
for (const byte of Buffer.from('"\\/bfnrt')) ESCAPES[byte] = 1

const { memory, run } = buildRunCode(ESCAPES)
/** Whose bytes are in the memory: all share the one, and nobody leaves anything in it that he needs again. */
let owner: StringRuns | null = null

/** Finds where runs of characters of JSON strings end, in one chunk after the other. No byte is copied or searched twice. */
export class StringRuns {
  /** The part of the chunk that is in the memory. */
  #from = 0
  #to = 0
  /** The next quote and backslash, once searched natively. */
  #quote = -1
  #backslash = -1

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
   * the digits of a character from U+0030 to U+003F or from U+0050 to U+007F, which nobody has to escape.
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
      i = run(i + shift, end + shift, strict ? 0x20 : 0) - shift
      if (i < end) {
        // An escape that the end of the part cuts is whole once the part is another.
        if (i <= end - ESCAPE_BYTES_MAX || end === to || chunk[i] !== BACKSLASH) return i
        this.#to = i
      }
    }
    return to
  }

  /**
   * Brings a part of the chunk into the memory, and answers from where on. Where neither a quote nor a backslash is
   * near, as in an image, native code finds that out in half the time.
   */
  #load(chunk: Buffer, from: number, strict: boolean): number {
    let i = from
    if (!strict) {
      if (this.#quote < i) this.#quote = indexOrLength(chunk, QUOTE, i)
      if (this.#backslash < i) this.#backslash = indexOrLength(chunk, BACKSLASH, i)
      i = Math.min(this.#quote, this.#backslash)
    }
    owner = this
    this.#from = i
    this.#to = Math.min(i + RUN_BYTES_MAX, chunk.length)
    chunk.copy(memory, RUN_BYTES_AT, i, this.#to)
    return i
  }
}

function indexOrLength(chunk: Buffer, byte: number, from: number): number {
  const index = chunk.indexOf(byte, from)
  return index < 0 ? chunk.length : index
}
