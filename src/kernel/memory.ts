const KiB = 1024
const MiB = 1024 * KiB

const SLAB_BYTES = 64 * KiB
const SPARE_SLABS_MAX = (16 * MiB) / SLAB_BYTES

const spareSlabs: Buffer[] = []

/**
 * Memory for bodies that wait until they are whole. Large slabs are used again and again: as buffers of their own, the
 * pieces of large bodies outlive the young generation, and V8 walks its whole heap to find out that they can go: that was
 * a third of what a body of 1 MB cost.
 *
 * A slab may be returned only when no socket still has to send it.
 */
function borrowSlab(bytes: number): Buffer {
  if (bytes * SLAB_GROWTH <= SLAB_BYTES) return Buffer.allocUnsafe(bytes)
  return spareSlabs.pop() ?? Buffer.allocUnsafeSlow(SLAB_BYTES)
}

function giveSlabBack(slab: Buffer): void {
  if (slab.length === SLAB_BYTES && spareSlabs.length < SPARE_SLABS_MAX) spareSlabs.push(slab)
}

/** A body that arrives in small pieces gets little memory at first: 20,000 connections could send two bytes each. */
const SLAB_GROWTH = 2

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
      const slab = this.#roomySlab(chunk.length - taken)
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

  /** All bytes in one buffer, joined once. */
  joined(): Buffer {
    if (this.#whole !== null) return this.#whole
    this.#seal()
    const [piece, ...others] = this.#pieces
    const isOwn = piece !== undefined && others.length === 0 && this.#slabs[0]?.length !== SLAB_BYTES
    this.#whole = isOwn ? piece : Buffer.concat(this.#pieces)
    // Keep the slabs: a socket may still have to send them.
    this.#pieces = [this.#whole]
    return this.#whole
  }

  /** Frees the memory. No socket may still have to send any of it. */
  clear(): void {
    for (const slab of this.#slabs) giveSlabBack(slab)
    this.#slabs = []
    this.#pieces = []
    this.#whole = null
    this.#at = 0
    this.#from = 0
  }

  #roomySlab(comingBytes: number): Buffer {
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
