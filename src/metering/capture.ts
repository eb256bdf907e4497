const SMALL_BYTES = 256
const NOTHING = Buffer.alloc(0)

/**
 * Keeps a copy of the first bytes of something that arrives in pieces, never more than its limit, so that the
 * pieces themselves may be reused by whoever owns them.
 */
export class Capture {
  readonly #bytesMax: number
  #bytes: Buffer = NOTHING
  #length = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  append(chunk: Buffer, from: number, to: number): void {
    const taken = Math.min(to - from, this.#bytesMax - this.#length)
    if (taken <= 0) return
    this.#reserve(this.#length + taken)
    chunk.copy(this.#bytes, this.#length, from, from + taken)
    this.#length += taken
  }

  /**
   * The first `length` bytes, or null when those were more than the limit; then starts anew. The bytes are the
   * caller's until the next `append`.
   */
  take(length: number): Buffer | null {
    const bytes = length <= this.#length ? this.#bytes.subarray(0, length) : null
    this.clear()
    return bytes
  }

  clear(): void {
    this.#length = 0
    // A buffer that grew for one long value is given back; the small one is used again and again.
    if (this.#bytes.length > SMALL_BYTES) this.#bytes = NOTHING
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#bytes.length) return
    const size = Math.min(Math.max(SMALL_BYTES, bytes, this.#bytes.length * 2), this.#bytesMax)
    const grown = Buffer.allocUnsafeSlow(size)
    this.#bytes.copy(grown, 0, 0, this.#length)
    this.#bytes = grown
  }
}
