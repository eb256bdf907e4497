import { kept } from './read-buffer.ts'
import { borrowSlab, giveSlabBack } from './slabs.ts'

/** A first piece up to this size is kept by itself: most bodies have no other. */
const FIRST_BYTES_MAX = 16 * 1024

/** What comes in small pieces gets little memory at first: 20,000 connections could send two bytes each. */
const SMALL_SLAB_BYTES = 4 * 1024

/** Bytes that are kept until they are whole. What it costs follows the bytes, however small the pieces come. */
export class ChunkList {
  readonly #keep: (chunk: Buffer) => Buffer
  #pieces: Buffer[] = []
  #whole: Buffer | null = null
  readonly #slabs: Buffer[] = []
  /** Where the next bytes go in the last of the slabs, and from where on they are not among the pieces yet. */
  #at = 0
  #from = 0

  /** How a first piece is kept that is small; `keptLong` where the list lives long. */
  constructor(keep: (chunk: Buffer) => Buffer = kept) {
    this.#keep = keep
  }

  append(chunk: Buffer): void {
    const isFirst = this.#pieces.length === 0 && this.#slabs.length === 0
    if (isFirst && chunk.length <= FIRST_BYTES_MAX) {
      this.#pieces.push(this.#keep(chunk))
      return
    }
    for (let taken = 0; taken < chunk.length; ) {
      const slab = this.#roomySlab(chunk.length - taken)
      const bytes = chunk.copy(slab, this.#at, taken)
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
    // A piece of a slab would not last. The slabs themselves stay: somebody may still be sending them.
    const lasts = only !== undefined && this.#pieces.length === 1 && this.#slabs.length === 0
    this.#whole = lasts ? only : Buffer.concat(this.#pieces)
    this.#pieces = [this.#whole]
    return this.#whole
  }

  /** Nobody has any of it to send any more. */
  clear(): void {
    this.#pieces = []
    this.#whole = null
    this.#at = 0
    this.#from = 0
    for (const slab of this.#slabs.splice(0)) giveSlabBack(slab)
  }

  #roomySlab(comingBytes: number): Buffer {
    const last = this.#slabs.at(-1)
    if (last !== undefined && this.#at < last.length) return last
    this.#seal()
    const isSmall = this.#slabs.length === 0 && comingBytes < SMALL_SLAB_BYTES
    const slab = isSmall ? Buffer.allocUnsafeSlow(SMALL_SLAB_BYTES) : borrowSlab()
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
