/** Time is injected, so that tests can move it. No other code calls Date.now(). */
export interface Clock {
  nowMs(): number
  /** Monotonic time, for durations. A wall clock can be set back, which would make a duration negative. */
  monotonicMs(): number
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
}

/** Minimum interval between log lines about the same problem. */
export const WARN_INTERVAL_MS = 60_000

/** Throttles `notify` to one call per `ms`; calls in between are dropped. */
export function atMostEvery<T>(ms: number, clock: Clock, notify: (what: T) => void): (what: T) => void {
  let notifiedMs = -Infinity
  return (what) => {
    if (clock.monotonicMs() - notifiedMs < ms) return
    notifiedMs = clock.monotonicMs()
    notify(what)
  }
}
