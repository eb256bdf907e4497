interface Mark {
  readonly bytes: Buffer
  readonly bit: number
}

/** Short strings whose presence in a text matters. They are bits, so one number collects the marks of a whole text. */
export class MarkTable {
  readonly #strings: readonly Mark[]
  readonly #endings: readonly Mark[]
  /** 1 for every byte with which a mark can end. Most strings need only this check. */
  readonly #ends = new Uint8Array(256)

  constructor(strings: Readonly<Record<string, number>>, endings: Readonly<Record<string, number>> = {}) {
    this.#strings = marksOf(strings)
    this.#endings = marksOf(endings)
    for (const { bytes } of [...this.#strings, ...this.#endings]) this.#ends[bytes.at(-1) ?? 0] = 1
  }

  /** The mark of the string between `from` and `to`; 0 for nearly every string. */
  markOf(chunk: Uint8Array, from: number, to: number): number {
    if (to - from > MARK_BYTES_MAX || this.#ends[chunk[to - 1] as number] === 0) return 0
    for (const { bytes, bit } of this.#strings)
      if (bytes.length === to - from && endsWith(chunk, from, to, bytes)) return bit
    for (const { bytes, bit } of this.#endings) if (endsWith(chunk, from, to, bytes)) return bit
    return 0
  }
}

export const NO_MARKS = new MarkTable({})

/** The longest mark: a string with a marked ending, or a mark with all letters escaped. */
export const MARK_BYTES_MAX = 96

function marksOf(bits: Readonly<Record<string, number>>): Mark[] {
  return Object.entries(bits).map(([text, bit]) => ({ bytes: Buffer.from(text), bit }))
}

function endsWith(chunk: Uint8Array, from: number, to: number, end: Uint8Array): boolean {
  const start = to - end.length
  if (start < from) return false
  for (let i = 0; i < end.length; i++) if (chunk[start + i] !== end[i]) return false
  return true
}
