import type { Clock } from './clock.ts'

export interface Pace {
  /** How long a portion should take, with its wait for the writer. */
  readonly ms: number
  readonly rowsMax: number
  /** How many times as long nothing is done after a portion. */
  readonly rest: number
}

/** SQLite's writer admits no call during a portion. Calls have it for three quarters of the time. */
export const BESIDE_CALLS: Pace = { ms: 5, rowsMax: 500, rest: 3 }

/** A process that was suspended in a portion must not rest for hours, and its stop waits for the rest. */
const REST_MS_MAX = 1_000

/** A portion of 20 old calls took 147 ms from a cold disk. */
export const FIRST_PORTION = 1

/** Background work in portions, each as large as the time allows that the one before took. */
export class Portions {
  readonly #pace: Pace
  readonly #clock: Clock
  #rows = FIRST_PORTION

  constructor(clock: Clock, pace = BESIDE_CALLS) {
    this.#clock = clock
    this.#pace = pace
  }

  /** Works on so many rows at most, and rests. */
  async next<T>(work: (rowsMax: number) => Promise<T>): Promise<T> {
    const { ms, rowsMax, rest } = this.#pace
    const sinceMs = this.#clock.monotonicMs()
    const result = await work(this.#rows)
    const tookMs = this.#clock.monotonicMs() - sinceMs
    this.#rows = Math.min(portionAfter(this.#rows, tookMs / ms), rowsMax)
    const restMs = Math.min(tookMs * rest, REST_MS_MAX)
    if (restMs > 0) await new Promise<void>((resolve) => setTimeout(resolve, restMs).unref())
    return result
  }
}

/**
 * `overTime`: the part of its time that the last portion took. The next one is at most twice as large, so that one quick
 * portion does not make a slow one.
 */
function portionAfter(rows: number, overTime: number): number {
  const fitting = Math.round(rows / Math.max(overTime, 0.1))
  return Math.max(1, Math.min(fitting, rows * 2))
}
