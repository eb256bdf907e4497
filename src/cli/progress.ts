import { type Clock, systemClock } from '../kernel/clock.ts'

export interface Progress {
  /** Without a total it counts. */
  show(done: number, total: number | null): void
  /** Removes the bar, so that what is printed next stands on a clean line. */
  end(): void
}

const WIDTH = 30
const REDRAW_MS = 100

/** A bar on a terminal, nothing where the output is read by a program. */
export function createProgress(
  label: string,
  stream: Pick<NodeJS.WriteStream, 'isTTY' | 'write'> = process.stderr,
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
        stream.write(`\r${label} ${done.toLocaleString('en-US')}`)
        return
      }
      const part = total <= 0 ? 1 : Math.min(1, done / total)
      const bar = '#'.repeat(Math.round(part * WIDTH)).padEnd(WIDTH, '.')
      stream.write(`\r${label} [${bar}] ${String(Math.floor(part * 100)).padStart(3)} %`)
    },
    end() {
      if (drawnAtMs !== -Infinity) stream.write('\r\x1b[K')
    },
  }
}

/** Of what goes to standard output. Where that is the terminal too, each would be written over the other. */
export function createExportProgress(label: string): Progress {
  return createProgress(label, process.stdout.isTTY ? { isTTY: false, write: () => true } : process.stderr)
}
