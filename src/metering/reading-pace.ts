/** How much text is read before other work may run. */
export const PIECE_BYTES = 64 * 1024

/** A key may read for this long before it pauses, twice as long as it has read. */
const READING_MS = 5
const PAUSE_PER_READING_MS = 2

/** In a longer step, the process probably did not run all the time. */
const STEP_MS_MAX = 10

/**
 * Limits the time in which the bodies of a key are read. Dense JSON takes up to 0.1 ms per kB, hundreds of times as
 * long as text, so a few connections could occupy the main thread.
 */
export class ReadingPace {
  readonly #pauses: { endMs: number }
  #last = Promise.resolve()
  #waiting = 0
  /** When the key has paused long enough for all that was read. */
  #evenAtMs = 0

  /** `pauses`: when the last pause of any key ends. Keys pause one after the other, or a few of them could take all of the time. */
  constructor(pauses = { endMs: 0 }) {
    this.#pauses = pauses
  }

  /** Null if the next piece may be read now. If it returns a promise, wait for it first. */
  pause(): Promise<void> | null {
    if (this.#waiting === 0 && this.#owedMs() === 0) return null
    this.#waiting += 1
    this.#last = this.#last.then(() => this.#wait())
    return this.#last
  }

  /** Counts the time of a step, unless the step returns false. */
  read<T>(step: () => T): T {
    const beganMs = performance.now()
    const result = step()
    if (result === false) return result
    const endMs = performance.now()
    const tookMs = Math.min(endMs - beganMs, STEP_MS_MAX)
    this.#evenAtMs = Math.max(this.#evenAtMs, endMs) + tookMs * PAUSE_PER_READING_MS
    return result
  }

  /** Reads a text that is in memory. `write` calls `read`. */
  async readInPieces(text: Buffer, write: (piece: Buffer) => unknown): Promise<void> {
    for (let from = 0; from < text.length; from += PIECE_BYTES) {
      if (from > 0) await new Promise((resolve) => setImmediate(resolve))
      await this.pause()
      write(text.subarray(from, from + PIECE_BYTES))
    }
  }

  async #wait(): Promise<void> {
    const [owedMs, nowMs] = [this.#owedMs(), performance.now()]
    if (owedMs > 0) {
      const endMs = Math.max(this.#pauses.endMs, nowMs) + owedMs
      this.#pauses.endMs = endMs
      await new Promise((resolve) => setTimeout(resolve, endMs - nowMs))
    }
    this.#waiting -= 1
  }

  #owedMs(): number {
    const owedMs = this.#evenAtMs - performance.now()
    return owedMs < READING_MS * PAUSE_PER_READING_MS ? 0 : owedMs
  }
}
