import { lineWriter } from './copy-text.ts'
import type { MovedTable } from './moved-tables.ts'
import type { SourceRow } from './source.ts'

/** Rows that go in one transaction: some tenths of a second, which is what a kill costs. */
export const BATCH_ROWS_MAX = 10_000

/** Bodies are large: so much text, and the row that goes beyond it. */
const BATCH_CHARS_MAX = 16 * 1024 * 1024

/** Text that is sent at once: about as much as the system takes without waiting. */
const CHUNK_CHARS = 64 * 1024

/** The next rows of a table, made into text while they are sent. */
export class Batch {
  rows = 0
  /** The key of the last row that was taken. */
  last: readonly string[] | null = null
  /** Whether the table has no more rows. */
  atEnd = false
  readonly #source: Iterator<SourceRow>
  readonly #table: MovedTable
  readonly #rowsMax: number

  constructor(table: MovedTable, source: Iterator<SourceRow>, rowsMax: number) {
    this.#table = table
    this.#source = source
    this.#rowsMax = rowsMax
  }

  *chunks(): Iterable<Buffer> {
    const { columns } = this.#table
    const lineOf = lineWriter(columns.map(({ kind }) => kind))
    let text = ''
    let chars = 0
    while (this.rows < this.#rowsMax && chars < BATCH_CHARS_MAX) {
      const { done, value } = this.#source.next()
      if (done === true) {
        this.atEnd = true
        break
      }
      const line = lineOf(value)
      text += line
      chars += line.length
      this.rows += 1
      this.last = value.slice(columns.length).map(String)
      if (text.length < CHUNK_CHARS) continue
      yield Buffer.from(text)
      text = ''
    }
    if (text !== '') yield Buffer.from(text)
  }
}
