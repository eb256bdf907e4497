import { type Clock, systemClock } from '../kernel/clock.ts'
import { shownCount } from './terminal.ts'

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

function barOf(filled: number, width: number): string {
  return '#'.repeat(filled).padEnd(width, '.')
}
