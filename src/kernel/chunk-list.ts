const KiB = 1024
const MiB = 1024 * KiB

interface Size {
  readonly bytes: number
  readonly sparesMax: number
  readonly spares: Buffer[]
}

function sizeOf(bytes: number, spareBytesMax: number): Size {
  return { bytes, sparesMax: spareBytesMax / bytes, spares: [] }
}

const LARGEST = sizeOf(64 * KiB, 16 * MiB)

/** Sizes of slabs. A body above 1 KiB in one piece gets less than twice the memory that it needs. */
const SIZES: readonly Size[] = [
  ...[KiB, 2 * KiB, 4 * KiB, 8 * KiB, 16 * KiB, 32 * KiB].map((bytes) => sizeOf(bytes, 4 * MiB)),
  LARGEST,
]

/**
 * Reused memory for bodies that are buffered until complete. Fresh buffers of large bodies outlive the young
 * generation, and V8 walks its whole heap to free them: a third of the cost of a 1 MB body. Small buffers cost 2 µs
 * each to allocate and free.
 *
 * A slab may be returned only when no socket still has to send it.
 */
function borrowSlab(bytes: number): Buffer {
  const size = SIZES.find((candidate) => bytes <= candidate.bytes) ?? LARGEST
  return size.spares.pop() ?? Buffer.allocUnsafeSlow(size.bytes)
}

function returnSlab(slab: Buffer): void {
  const size = SIZES.find((candidate) => candidate.bytes === slab.length)
  if (size !== undefined && size.spares.length < size.sparesMax) size.spares.push(slab)
}

/** The factor by which the slabs of a body grow. The first slab is small: 20,000 clients could send two bytes each. */
const SLAB_GROWTH = 2

/** A slab up to this size is handed to the caller. A larger one is copied, so that it can be reused. */
const HANDED_OVER_BYTES_MAX = 16 * 1024

/** Buffers a body until it is complete. Memory is proportional to the bytes, however small the pieces. */
export class ChunkList {
  #pieces: Buffer[] = []
  #whole: Buffer | null = null
  #slabs: Buffer[] = []
  /** Write offset in the last slab, and the offset up to which its bytes are already in `#pieces`. */
  #at = 0
  #from = 0

  append(chunk: Buffer): void {
    for (let taken = 0; taken < chunk.length; ) {
      const slab = this.#slabWithSpace(chunk.length - taken)
      const bytes = Math.min(chunk.length - taken, slab.length - this.#at)
      slab.set(bytes === chunk.length ? chunk : chunk.subarray(taken, taken + bytes), this.#at)
      this.#at += bytes
      taken += bytes
    }
  }

  all(): readonly Buffer[] {
    this.#seal()
    return this.#pieces
  }

  joined(): Buffer {
    if (this.#whole !== null) return this.#whole
    this.#seal()
    const [only] = this.#pieces
    const [slab] = this.#slabs
    const isOne = only !== undefined && this.#pieces.length === 1 && this.#slabs.length === 1
    if (isOne && slab !== undefined && slab.length <= HANDED_OVER_BYTES_MAX) {
      this.#whole = only
      this.#slabs = []
    }
    // Keep the slabs: a socket may still have to send them.
    else this.#whole = Buffer.concat(this.#pieces)
    this.#pieces = [this.#whole]
    return this.#whole
  }

  /** Frees the memory. No socket may still have to send any of it. */
  clear(): void {
    for (const slab of this.#slabs) returnSlab(slab)
    this.#slabs = []
    this.#pieces = []
    this.#whole = null
    this.#at = 0
    this.#from = 0
  }

  #slabWithSpace(comingBytes: number): Buffer {
    const last = this.#slabs.at(-1)
    if (last !== undefined && this.#at < last.length) return last
    this.#seal()
    const slab = borrowSlab(Math.max(comingBytes, (last?.length ?? 0) * SLAB_GROWTH))
    this.#slabs.push(slab)
    this.#at = 0
    this.#from = 0
    return slab
  }

  #seal(): void {
    const last = this.#slabs.at(-1)
    if (last === undefined || this.#from === this.#at) return
    this.#pieces.push(last.subarray(this.#from, this.#at))
    this.#from = this.#at
  }
}
