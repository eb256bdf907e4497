/** How long a client may take to send a body. */
export interface BodyTimes {
  /** Without a byte. */
  readonly idleTimeoutMs: number
  /** Over any stretch of that length; 0 without a limit. */
  readonly bytesPerSecondMin: number
  monotonicMs(): number
}

/**
 * Whether a body comes fast enough. It is judged when a byte arrives, once a stretch is as long as a silence may be: a
 * body of which none arrives is idle. So no timer runs, and a short stall of a mobile uplink is nothing.
 */
export class BodyPace {
  readonly #times: BodyTimes
  #sinceMs: number
  #bytes = 0
  #pausedMs: number | null = null

  constructor(times: BodyTimes) {
    this.#times = times
    this.#sinceMs = times.monotonicMs()
  }

  /** False: too slow. */
  arrived(bytes: number): boolean {
    const { idleTimeoutMs, bytesPerSecondMin } = this.#times
    this.#bytes += bytes
    const nowMs = this.#times.monotonicMs()
    const tookMs = nowMs - this.#sinceMs
    if (tookMs < idleTimeoutMs) return true
    const isEnough = this.#bytes * 1_000 >= bytesPerSecondMin * tookMs
    this.#sinceMs = nowMs
    this.#bytes = 0
    return isEnough
  }

  /** While we take nothing in, the client cannot send. */
  paused(): void {
    this.#pausedMs ??= this.#times.monotonicMs()
  }

  resumed(): void {
    if (this.#pausedMs === null) return
    this.#sinceMs += this.#times.monotonicMs() - this.#pausedMs
    this.#pausedMs = null
  }
}

export function slowBody(bytesPerSecondMin: number): string {
  return `The request body comes too slowly: less than ${bytesPerSecondMin} bytes a second.`
}
