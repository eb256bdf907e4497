import { type Borrowed, viewOf } from '../kernel/memory.ts'
import type { Picked, Place } from './json-place.ts'
import { JsonWalker, type WalkOptions } from './json-walker.ts'

const CR = 0x0d
const LF = 0x0a
const BLANKS = new Set([0x20, 0x09, CR])

/** The most lines that are not blank, and the most lines of all kinds. Providers take fewer lines. */
const FULL_LINES_MAX = 100_000
const LINES_MAX = 1_000_000

/**
 * Reads the selected places of each line of a text that arrives in pieces, and accepts only a text that all parsers read alike:
 * every line is one JSON value or blank, no member that is looked at is given twice, and CR stands only before LF. A CR elsewhere
 * is a blank to JSON and a line's end to many readers of lines. Lines of any length are read without being kept.
 */
export class JsonLines {
  readonly #walker: JsonWalker
  /** Takes the values of a line, and answers whether to go on. */
  readonly #onLine: (line: Picked) => boolean
  #failed = false
  #open = false
  #endsInCr = false
  #lines = 0
  #fullLines = 0

  constructor(place: Place, onLine: (line: Picked) => boolean, options: WalkOptions = {}) {
    this.#walker = new JsonWalker(place, options)
    this.#onLine = onLine
  }

  get failed(): boolean {
    return this.#failed
  }

  write(chunk: Borrowed): void {
    let from = 0
    while (from < chunk.length && !this.#failed) {
      const lf = chunk.indexOf(LF, from)
      this.#take(viewOf(chunk).subarray(from, lf < 0 ? chunk.length : lf))
      if (lf < 0) return
      this.#endLine()
      from = lf + 1
    }
  }

  /** Whether every line could be read, and at least one line was not blank. */
  end(): boolean {
    this.#endLine()
    return !this.#failed && this.#fullLines > 0
  }

  #take(bytes: Buffer): void {
    if (bytes.length === 0) return
    const cr = bytes.indexOf(CR)
    if (this.#endsInCr || (cr >= 0 && cr < bytes.length - 1)) this.#failed = true
    this.#endsInCr = cr >= 0
    if (!this.#open && bytes.every((byte) => BLANKS.has(byte))) return
    this.#open = true
    this.#walker.write(bytes)
    if (this.#walker.failed) this.#failed = true
  }

  #endLine(): void {
    this.#endsInCr = false
    this.#lines++
    if (this.#lines > LINES_MAX) this.#failed = true
    if (!this.#open || this.#failed) return
    this.#open = false
    this.#fullLines++
    const scan = this.#walker.end()
    const isRead = scan.kind === 'object' && scan.picked.duplicates.length === 0
    if (!isRead || this.#fullLines > FULL_LINES_MAX || !this.#onLine(scan.picked.value)) this.#failed = true
  }
}
