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

/** The progress of work in phases that may take hours: how much of the phase is done, how fast, and for how long yet. */
export interface MoveProgress {
  show(phase: string, done: number, total: number): void
  end(): void
}

const LINE_EVERY_MS = 10_000

interface Phase {
  readonly name: string
  readonly beganMs: number
  /** Work of an earlier run, which says nothing of how fast this run is. */
  readonly doneBefore: number
  isOver: boolean
}

/** A bar on a terminal; elsewhere a line at the end of each phase, and one every ten seconds while the phase lasts. */
export function createMoveProgress(
  stream: Stream = process.stderr,
  clock: Pick<Clock, 'monotonicMs'> = systemClock,
): MoveProgress {
  let phase: Phase | null = null
  let shownMs = -Infinity
  return {
    show(name, done, total) {
      const nowMs = clock.monotonicMs()
      if (phase?.name !== name) {
        phase = { name, beganMs: nowMs, doneBefore: done, isOver: false }
        shownMs = stream.isTTY ? -Infinity : nowMs
      }
      if (total === 0 || phase.isOver) return
      phase.isOver = done >= total
      if (!phase.isOver && nowMs - shownMs < (stream.isTTY ? REDRAW_MS : LINE_EVERY_MS)) return
      shownMs = nowMs
      const text = describe(phase, done, total, nowMs, stream.isTTY)
      // A line that wraps could not be written over.
      const columns = (stream.columns ?? 80) - 1
      stream.write(stream.isTTY ? `\r${text.slice(0, columns)}\x1b[K` : `${text}\n`)
    },
    end() {
      if (stream.isTTY && phase !== null) stream.write(CLEAR_LINE)
      phase = null
    },
  }
}

function describe(phase: Phase, done: number, total: number, nowMs: number, withBar: boolean): string {
  const seconds = (nowMs - phase.beganMs) / 1_000
  const perSecond = (done - phase.doneBefore) / seconds
  const parts = [`${shownCount(done)} of ${shownCount(total)}`]
  if (seconds >= 1 && perSecond >= 1) {
    parts.push(`${shownCount(Math.round(perSecond))}/s`)
    if (done < total) parts.push(`${duration((total - done) / perSecond)} left`)
  }
  const bar = barOf(Math.floor(Math.min(1, done / total) * 10), 10)
  return `${phase.name}${withBar ? ` [${bar}]` : ':'} ${parts.join(', ')}`
}

function barOf(filled: number, width: number): string {
  return '#'.repeat(filled).padEnd(width, '.')
}

export function duration(seconds: number): string {
  if (seconds < 100) return `${Math.ceil(seconds)} s`
  const minutes = Math.ceil(seconds / 60)
  return minutes < 100 ? `${minutes} min` : `${Math.ceil(minutes / 60)} h`
}
