/** Smaller pieces are copied together: as a Buffer of its own, a byte costs some 200 bytes of heap. */
const SMALL_BYTES = 4 * 1024
const SLAB_BYTES = 64 * 1024

/** Bytes that are kept until they are whole. What it costs follows the bytes, however small the pieces come. */
export class ChunkList {
  #chunks: Buffer[] = []
  #slab: Buffer | null = null
  #slabBytes = 0

  append(chunk: Buffer): void {
    // The one chunk of a small body is kept as it is.
    const first = this.#chunks.length === 0 && this.#slab === null
    if (first || chunk.length >= SMALL_BYTES) {
      this.#seal()
      this.#chunks.push(chunk)
      return
    }
    if (this.#slab === null || this.#slabBytes + chunk.length > this.#slab.length) {
      this.#seal()
      this.#slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
    }
    this.#slabBytes += chunk.copy(this.#slab, this.#slabBytes)
  }

  /** All of it, in order. */
  all(): readonly Buffer[] {
    this.#seal()
    return this.#chunks
  }

  /** All of it in one piece. It is joined once; whoever asks again gets the same bytes. */
  joined(): Buffer {
    this.#seal()
    const [only] = this.#chunks
    if (this.#chunks.length === 1 && only !== undefined) return only
    const whole = Buffer.concat(this.#chunks)
    this.#chunks = [whole]
    return whole
  }

  clear(): void {
    this.#chunks = []
    this.#slab = null
    this.#slabBytes = 0
  }

  #seal(): void {
    if (this.#slab !== null) {
      // A slab that is mostly empty would cost what it was made for.
      const used = this.#slab.subarray(0, this.#slabBytes)
      this.#chunks.push(this.#slabBytes * 2 < SLAB_BYTES ? Buffer.from(used) : used)
    }
    this.#slab = null
    this.#slabBytes = 0
  }
}
