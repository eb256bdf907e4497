import { createExportProgress } from './progress.ts'
import { print } from './terminal.ts'

export type ExportFormat = 'csv' | 'ndjson'

/** Prints an export as it comes, so that millions of rows need no more memory than a few. */
export async function printExport(
  chunks: AsyncIterable<Uint8Array>,
  format: ExportFormat,
  label: string,
): Promise<void> {
  const progress = createExportProgress(label)
  const counter = new RowCounter(format)
  try {
    for await (const chunk of chunks) {
      await print(chunk)
      counter.add(chunk)
      progress.show(counter.rows, null)
    }
  } finally {
    progress.end()
  }
}

const QUOTE = 0x22
const LINE_END = 0x0a

/** Counts the rows of an export as it passes. A line end within quotes of CSV is part of a cell. */
class RowCounter {
  readonly #isCsv: boolean
  #lines = 0
  #isQuoted = false

  constructor(format: ExportFormat) {
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
