const FIRST_BYTES = 1024

/**
 * The beginning of an event whose end has not arrived: a copy, because a slice would keep the whole buffer of the
 * socket alive, and a sender of single bytes could have us keep thousands of them.
 */
export class HeldEvent {
  #bytes: Buffer
  #length: number

  constructor(bytes: Buffer) {
    this.#bytes = Buffer.allocUnsafe(Math.max(FIRST_BYTES, bytes.length * 2))
    this.#length = bytes.copy(this.#bytes)
  }

  /** All bytes so far. Who gives slices of them away must not append again. */
  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  append(chunk: Buffer): Buffer {
    const length = this.#length + chunk.length
    if (length > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(length, this.#bytes.length * 2))
      this.#bytes.copy(grown, 0, 0, this.#length)
      this.#bytes = grown
    }
    chunk.copy(this.#bytes, this.#length)
    this.#length = length
    return this.bytes()
  }
}
