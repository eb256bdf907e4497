import type { Clock } from '../../kernel/clock.ts'

/**
 * The database's time, told by a node: read now and then, and counted on from there by the clock of the node that never
 * steps. What a node says of keys, months and days is then the same as what the database decides, though the node's own
 * wall clock may be off by a day.
 */
export interface DatabaseClock extends Clock {
  /** The database has said what time it is. `askedAtMs`, by the monotonic clock, is when it was asked. */
  heard(databaseMs: number, askedAtMs: number): void
}

export function createDatabaseClock(own: Clock): DatabaseClock {
  let aheadMs: number | null = null

  return {
    monotonicMs: () => own.monotonicMs(),
    nowMs: () => (aheadMs === null ? own.nowMs() : Math.floor(own.monotonicMs() + aheadMs)),
    heard(databaseMs, askedAtMs) {
      // It was said between the question and the answer; an answer that took long says less than the last one.
      const answeredAtMs = own.monotonicMs()
      if (aheadMs !== null && answeredAtMs - askedAtMs > USABLE_WITHIN_MS) return
      aheadMs = databaseMs - (askedAtMs + answeredAtMs) / 2
    },
  }
}

const USABLE_WITHIN_MS = 500
