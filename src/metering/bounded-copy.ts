const NOTHING = Buffer.alloc(0)

interface Size {
  readonly bytes: number
  readonly sparesMax: number
  readonly spares: Buffer[]
}

/**
 * Buffers that nobody uses at present, by their size: for an event, for a reply, for a reply with a long text. Memory
 * outside of V8's heap takes 5 µs to get and to give back, and much of it has V8 walk its heap; a copy is needed for a
 * few microseconds at a time, so 10,000 streams that wait for their next event need none.
 */
const SIZES: readonly Size[] = [
  { bytes: 4 * 1024, sparesMax: 64, spares: [] },
  { bytes: 32 * 1024, sparesMax: 32, spares: [] },
  { bytes: 192 * 1024, sparesMax: 16, spares: [] },
]

/** A copy of bytes that can be taken back to an earlier length. Whoever appends keeps the bound. */
export class BoundedCopy {
  #bytes: Buffer = NOTHING
  #length = 0

  get length(): number {
    return this.#length
  }

  /** A view, to be used before anything else is done with the copy. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  append(chunk: Buffer, from: number, to: number): void {
    const length = this.#length + to - from
    if (length > this.#bytes.length) this.#grow(length)
    const bytes = this.#bytes
    const shift = this.#length - from
    // Of most members little is copied, and for so little a native copy costs more for its call alone.
    if (to - from <= 32) for (let i = from; i < to; i++) bytes[i + shift] = chunk[i] as number
    else chunk.copy(bytes, this.#length, from, to)
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
    this.#release()
  }

  #grow(bytes: number): void {
    const size = SIZES.find((candidate) => bytes <= candidate.bytes)
    const grown =
      size === undefined
        ? Buffer.allocUnsafeSlow(Math.max(bytes, this.#bytes.length * 2))
        : (size.spares.pop() ?? Buffer.allocUnsafeSlow(size.bytes))
    this.#bytes.copy(grown, 0, 0, this.#length)
    this.#release()
    this.#bytes = grown
  }

  #release(): void {
    const { length } = this.#bytes
    const size = SIZES.find((candidate) => candidate.bytes === length)
    if (size !== undefined && size.spares.length < size.sparesMax) size.spares.push(this.#bytes)
    this.#bytes = NOTHING
  }
}
