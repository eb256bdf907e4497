import { type Clock, systemClock } from '../kernel/clock.ts'
import { print, shownCount } from './terminal.ts'

type Stream = Pick<NodeJS.WriteStream, 'isTTY' | 'write'> & { readonly columns?: number }

export interface Progress {
  /** Without a total, only the count is shown. */
  show(done: number, total: number | null): void
  /** Removes the bar, so that the next output stands on a clean line. */
  end(): void
}

const REDRAW_MS = 100
const CLEAR_LINE = '\r\x1b[K'

/** A bar on a terminal, nothing where the output is read by a program. */
export function createProgress(
  label: string,
  stream: Stream = process.stderr,
  clock: Clock = systemClock,
): Progress {
  if (!stream.isTTY) return { show() {}, end() {} }
  let drawnAtMs = -Infinity
  return {
    show(done, total) {
      const nowMs = clock.monotonicMs()
      if (nowMs - drawnAtMs < REDRAW_MS) return
      drawnAtMs = nowMs
      if (total === null) {
        stream.write(`\r${label} ${shownCount(done)}`)
        return
      }
      const part = total <= 0 ? 1 : Math.min(1, done / total)
      const bar = barOf(Math.round(part * 30), 30)
      stream.write(`\r${label} [${bar}] ${String(Math.floor(part * 100)).padStart(3)} %`)
    },
    end() {
      if (drawnAtMs !== -Infinity) stream.write(CLEAR_LINE)
    },
  }
}

export type ExportFormat = 'csv' | 'ndjson'

const LINE_END = 0x0a

/** Prints an export as it comes, so that millions of rows need no more memory than a few. */
export async function printExport(
  chunks: AsyncIterable<Uint8Array>,
  format: ExportFormat,
  label: string,
): Promise<void> {
  // An export to the terminal shows no progress: each would be written over the other.
  const progress = createProgress(label, process.stdout.isTTY ? HIDDEN : process.stderr)
  // The first line of CSV is its head. Line ends within quotes are counted as well: the count is for people only.
  let rows = format === 'csv' ? -1 : 0
  try {
    for await (const chunk of chunks) {
      await print(chunk)
      for (const byte of chunk) if (byte === LINE_END) rows += 1
      progress.show(Math.max(0, rows), null)
    }
  } finally {
    progress.end()
  }
}

const HIDDEN = { isTTY: false, write: () => true }

function barOf(filled: number, width: number): string {
  return '#'.repeat(filled).padEnd(width, '.')
}
