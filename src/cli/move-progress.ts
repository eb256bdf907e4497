import { type Clock, systemClock } from '../kernel/clock.ts'

/** For work in phases that may take hours: how much of the phase is done, how fast, and for how long yet. */
export interface MoveProgress {
  show(phase: string, done: number, total: number): void
  /** Removes the bar, so that what is printed next stands on a clean line. */
  end(): void
}

const WIDTH = 10
const REDRAW_MS = 100
const LINE_EVERY_MS = 10_000

interface Phase {
  readonly name: string
  readonly beganMs: number
  /** What an earlier run had done says nothing of how fast this one is. */
  readonly doneBefore: number
  isOver: boolean
}

/** A bar on a terminal; elsewhere a line for each phase, and one now and then while it lasts. */
export function createMoveProgress(
  stream: Pick<NodeJS.WriteStream, 'isTTY' | 'write'> & { readonly columns?: number } = process.stderr,
  clock: Pick<Clock, 'monotonicMs'> = systemClock,
): MoveProgress {
  let phase: Phase | null = null
  let shownMs = -Infinity

  function write(text: string): void {
    shownMs = clock.monotonicMs()
    // A line that wraps could not be written over.
    const room = (stream.columns ?? 80) - 1
    if (stream.isTTY) stream.write(`\r${text.slice(0, room)}\x1b[K`)
    else stream.write(`${text}\n`)
  }

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
      write(describe(phase, done, total, nowMs, stream.isTTY))
    },
    end() {
      if (stream.isTTY && phase !== null) stream.write('\r\x1b[K')
      phase = null
    },
  }
}

function describe(phase: Phase, done: number, total: number, nowMs: number, withBar: boolean): string {
  const seconds = (nowMs - phase.beganMs) / 1_000
  const perSecond = (done - phase.doneBefore) / seconds
  const parts = [`${count(done)} of ${count(total)}`]
  if (seconds >= 1 && perSecond >= 1) {
    parts.push(`${count(Math.round(perSecond))}/s`)
    if (done < total) parts.push(`${duration((total - done) / perSecond)} left`)
  }
  const bar = '#'.repeat(Math.floor(Math.min(1, done / total) * WIDTH)).padEnd(WIDTH, '.')
  return `${phase.name}${withBar ? ` [${bar}]` : ':'} ${parts.join(', ')}`
}

export function count(n: number): string {
  return n.toLocaleString('en-US')
}

export function duration(seconds: number): string {
  if (seconds < 100) return `${Math.ceil(seconds)} s`
  const minutes = Math.ceil(seconds / 60)
  return minutes < 100 ? `${minutes} min` : `${Math.ceil(minutes / 60)} h`
}
