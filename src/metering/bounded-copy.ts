const SMALL_BYTES = 4096
const NOTHING = Buffer.alloc(0)

/** A copy of bytes that can be taken back to an earlier length. Whoever appends keeps the bound. */
export class BoundedCopy {
  #bytes: Buffer = NOTHING
  #length = 0

  get length(): number {
    return this.#length
  }

  append(chunk: Buffer, from: number, to: number): void {
    const length = this.#length + to - from
    if (length > this.#bytes.length) this.#grow(length)
    chunk.copy(this.#bytes, this.#length, from, to)
    this.#length = length
  }

  truncate(length: number): void {
    this.#length = length
  }

  text(): string {
    return this.#bytes.toString('utf8', 0, this.#length)
  }

  clear(): void {
    this.#length = 0
    // What grew for one long text is given back; the small one is used again and again.
    if (this.#bytes.length > SMALL_BYTES) this.#bytes = NOTHING
  }

  #grow(bytes: number): void {
    const grown = Buffer.allocUnsafeSlow(Math.max(SMALL_BYTES, bytes, this.#bytes.length * 2))
    this.#bytes.copy(grown, 0, 0, this.#length)
    this.#bytes = grown
  }
}
