export type ReplyTimes = ReturnType<Silence['timesAt']>

/** Shorter gaps between pieces of output count as network delay, not as reasoning. */
const PAUSE_MS_MAX = 1_000

/** A reply that ends this soon after a pause may have ended during the pause. */
const AFTER_PAUSE_MS = 5_000

/** Sums the time without visible output: from the first event to the first output, and later gaps above a second. */
export class Silence {
  #visibleBytes = 0
  #firstMs: number | null = null
  #lastMs = 0
  #silentMs = 0
  #pausedSinceMs: number | null = null
  #longestPause = { ms: 0, endedMs: -Infinity }

  recordOutput(visibleBytes: number, nowMs: number): void {
    if (this.#firstMs === null) {
      this.#firstMs = nowMs
      this.#lastMs = nowMs
    }
    if (visibleBytes === this.#visibleBytes) return
    this.#silentMs = this.silentMsAt(nowMs)
    this.#visibleBytes = visibleBytes
    this.#lastMs = nowMs
  }

  pause(nowMs: number): void {
    this.#pausedSinceMs ??= nowMs
  }

  resume(nowMs: number): void {
    if (this.#pausedSinceMs === null) return
    const pausedMs = nowMs - this.#pausedSinceMs
    this.#pausedSinceMs = null
    const { ms, endedMs } = this.#longestPause
    if (pausedMs >= ms || nowMs - endedMs > AFTER_PAUSE_MS)
      this.#longestPause = { ms: pausedMs, endedMs: nowMs }
    if (this.#firstMs !== null) this.#lastMs += pausedMs
  }

  timesAt(nowMs: number) {
    const { ms, endedMs } = this.#longestPause
    const pauseMs = nowMs - (this.#pausedSinceMs ?? nowMs)
    return {
      silentMs: this.silentMsAt(nowMs),
      /** How long the client had not been reading when the reply ended, which may be why it ended. */
      stalledMs: Math.max(pauseMs, nowMs - endedMs <= AFTER_PAUSE_MS ? ms : 0),
    }
  }

  silentMsAt(nowMs: number): number {
    if (this.#firstMs === null) return 0
    const gapMs = (this.#pausedSinceMs ?? nowMs) - this.#lastMs
    return this.#silentMs + (this.#visibleBytes === 0 || gapMs > PAUSE_MS_MAX ? gapMs : 0)
  }
}
