const NOWHERE = -1

/**
 * A part of a text that arrives in pieces: a name or a value. Only a part that lies in two pieces is copied. `offset` is
 * where in the text the piece at hand begins, `end` is the offset in the piece behind the part.
 */
export class KeptPart {
  #start = NOWHERE
  #bytesMax = 0
  #copies: Buffer[] = []

  get isOpen(): boolean {
    return this.#start !== NOWHERE
  }

  open(start: number, bytesMax: number): void {
    this.#start = start
    this.#bytesMax = bytesMax
  }

  /** The piece is used up. */
  endChunk(chunk: Buffer, offset: number): void {
    if (this.#start === NOWHERE) return
    if (offset + chunk.length - this.#start > this.#bytesMax) this.#copies = []
    else this.#copies.push(Buffer.from(chunk.subarray(Math.max(0, this.#start - offset))))
  }

  /** The text of the part; null if none is open, or if it is longer than it may be. */
  take(chunk: Buffer, offset: number, end: number): string | null {
    if (this.#start === NOWHERE) return null
    const from = this.#start - offset
    const fits = end - from <= this.#bytesMax
    const copies = this.#copies
    this.drop()
    if (!fits) return null
    if (from >= 0) return chunk.toString('utf8', from, end)
    return Buffer.concat([...copies, chunk.subarray(0, end)]).toString('utf8')
  }

  drop(): void {
    this.#start = NOWHERE
    if (this.#copies.length > 0) this.#copies = []
  }
}
