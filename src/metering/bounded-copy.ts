const NOTHING = Buffer.alloc(0)

interface Size {
  readonly bytes: number
  readonly sparesMax: number
  readonly spares: Buffer[]
}

/**
 * Buffers that are not in use at present, by their size: for an event, for a reply,
 * for a reply with a long text. Memory outside of V8's heap takes 5 µs to get and to give back, and much of it has V8
 * walk its heap; a copy is needed for a few microseconds at a time, so 10,000 streams that wait for their next event need
 * none.
 */
const SIZES: readonly Size[] = [
  { bytes: 4 * 1024, sparesMax: 64, spares: [] },
  { bytes: 32 * 1024, sparesMax: 32, spares: [] },
  { bytes: 192 * 1024, sparesMax: 16, spares: [] },
]

/**
 * A copy of the first bytes of something that arrives in pieces, never more than its limit, so that the pieces
 * themselves may be overwritten.
 */
export class BoundedCopy {
  readonly #bytesMax: number
  #bytes: Buffer = NOTHING
  #length = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  append(chunk: Buffer, from: number, to: number): void {
    const taken = Math.min(to - from, this.#bytesMax - this.#length)
    const length = this.#length + taken
    if (length > this.#bytes.length) this.#grow(length)
    const bytes = this.#bytes
    const shift = this.#length - from
    // Most copies are of a few bytes, for which the call of the native copy alone costs more than this loop.
    if (taken <= 32) for (let i = from; i < from + taken; i++) bytes[i + shift] = chunk[i] as number
    else chunk.copy(bytes, this.#length, from, from + taken)
    this.#length = length
  }

  /** A view of the first `length` bytes, to be used at once; null when not all of them were kept. Empties the copy. */
  take(length: number): Buffer | null {
    const bytes = length <= this.#length ? this.#bytes.subarray(0, length) : null
    this.clear()
    return bytes
  }

  clear(): void {
    this.#length = 0
    this.#release()
  }

  #grow(bytes: number): void {
    const size = SIZES.find((candidate) => bytes <= candidate.bytes)
    const grown =
      size === undefined
        ? Buffer.allocUnsafeSlow(Math.min(this.#bytesMax, Math.max(bytes, this.#bytes.length * 2)))
        : (size.spares.pop() ?? Buffer.allocUnsafeSlow(size.bytes))
    this.#bytes.copy(grown, 0, 0, this.#length)
    this.#release()
    this.#bytes = grown
  }

  #release(): void {
    const { length } = this.#bytes
    if (length === 0) return
    const size = SIZES.find((candidate) => candidate.bytes === length)
    if (size !== undefined && size.spares.length < size.sparesMax) size.spares.push(this.#bytes)
    this.#bytes = NOTHING
  }
}
