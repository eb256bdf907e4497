/** How long the audio of one format is, as far as its bytes have passed; null where they do not tell. */
export interface AudioTrack {
  write(chunk: Buffer): void
  readonly milliseconds: number | null
}

const NOTHING = Buffer.alloc(0)

/**
 * Walks through bytes that arrive in chunks, from one header to the next: `step` sees `need` bytes of it and says how
 * many to advance, which may lead far behind the chunk. What is kept between two chunks is shorter than `need`.
 */
export abstract class ByteWalker {
  /** How many bytes `step` has to see at least. */
  protected need: number
  /** Where in all of the bytes the step at hand stands, and how many there were. */
  protected position = 0
  protected length = 0
  #skip = 0
  #tail: Buffer = NOTHING

  constructor(need: number) {
    this.need = need
  }

  /** At `at` there are `need` bytes or more. Answers how far to go on; 0 after having raised `need`. */
  protected abstract step(bytes: Buffer, at: number): number

  write(chunk: Buffer): void {
    const bytes = this.#tail.length === 0 ? chunk : Buffer.concat([this.#tail, chunk])
    const start = this.length - this.#tail.length
    this.length += chunk.length
    let at = 0
    for (;;) {
      const skipped = Math.min(this.#skip, bytes.length - at)
      at += skipped
      this.#skip -= skipped
      if (bytes.length - at < this.need) break
      this.position = start + at
      this.#skip = this.step(bytes, at)
    }
    this.#tail = at === bytes.length ? NOTHING : Buffer.from(bytes.subarray(at))
  }
}

/** How far it is from here to the next such byte, or to the end of what is there. */
export function toNext(bytes: Buffer, at: number, byte: number): number {
  const next = bytes.indexOf(byte, at + 1)
  return (next < 0 ? bytes.length : next) - at
}

/** How far it is from here to the next such mark, or to where one may begin that is not whole yet. */
export function toMark(bytes: Buffer, at: number, mark: Buffer): number {
  const next = bytes.indexOf(mark, at + 1)
  return (next < 0 ? Math.max(at + 1, bytes.length - mark.length + 1) : next) - at
}
