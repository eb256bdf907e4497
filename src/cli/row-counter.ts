const QUOTE = 0x22
const LINE_END = 0x0a

/** Counts the rows of an export as it passes. A line end within quotes of CSV is part of a cell. */
export class RowCounter {
  readonly #isCsv: boolean
  #lines = 0
  #isQuoted = false

  constructor(format: 'csv' | 'ndjson') {
    this.#isCsv = format === 'csv'
  }

  add(chunk: Uint8Array): void {
    for (const byte of chunk) {
      if (byte === QUOTE && this.#isCsv) this.#isQuoted = !this.#isQuoted
      else if (byte === LINE_END && !this.#isQuoted) this.#lines += 1
    }
  }

  /** Without the head of CSV. */
  get rows(): number {
    return Math.max(0, this.#lines - (this.#isCsv ? 1 : 0))
  }
}
