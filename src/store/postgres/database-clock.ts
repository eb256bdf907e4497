import type { Clock } from '../../kernel/clock.ts'

/** A slow answer may be less exact than the previous estimate. */
const USABLE_WITHIN_MS = 500

/** The database's time, estimated on the node, so that nodes agree on months even if their clocks are off. */
export class DatabaseClock implements Clock {
  readonly #own: Clock
  #aheadMs: number | null = null

  constructor(own: Clock) {
    this.#own = own
  }

  readonly monotonicMs = (): number => this.#own.monotonicMs()

  readonly nowMs = (): number =>
    this.#aheadMs === null ? this.#own.nowMs() : Math.floor(this.#own.monotonicMs() + this.#aheadMs)

  /** Call this with the database's time. `sentAtMs` is the monotonic time of the query. */
  sync(databaseMs: number, sentAtMs: number): void {
    const receivedAtMs = this.#own.monotonicMs()
    if (this.#aheadMs !== null && receivedAtMs - sentAtMs > USABLE_WITHIN_MS) return
    this.#aheadMs = databaseMs - (sentAtMs + receivedAtMs) / 2
  }
}
