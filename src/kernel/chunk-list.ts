import { borrowSlab, giveSlabBack } from './slabs.ts'

/** What comes in small pieces gets little memory at first: 20,000 connections could send two bytes each. */
const SLAB_GROWTH = 2

/** Up to this size memory is given away to whoever wants to keep what is in it, rather than copied from. */
const GIVEN_AWAY_BYTES_MAX = 16 * 1024

/** Bytes that are kept until they are whole. What it costs follows the bytes, however small the pieces come. */
export class ChunkList {
  #pieces: Buffer[] = []
  #whole: Buffer | null = null
  #slabs: Buffer[] = []
  /** Where the next bytes go in the last of the slabs, and from where on they are not among the pieces yet. */
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

  /** All of it, in order. The pieces are good until they are cleared. */
  all(): readonly Buffer[] {
    this.#seal()
    return this.#pieces
  }

  /** All of it in one piece. It is joined once; whoever asks again gets the same bytes, and may keep them. */
  joined(): Buffer {
    if (this.#whole !== null) return this.#whole
    this.#seal()
    const [only] = this.#pieces
    const [slab] = this.#slabs
    const isOne = only !== undefined && this.#pieces.length === 1 && this.#slabs.length === 1
    if (isOne && slab !== undefined && slab.length <= GIVEN_AWAY_BYTES_MAX) {
      this.#whole = only
      this.#slabs = []
    }
    // The slabs themselves stay: somebody may still be sending them.
    else this.#whole = Buffer.concat(this.#pieces)
    this.#pieces = [this.#whole]
    return this.#whole
  }

  /** Nobody has any of it to send any more. */
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
