/** Time is injected: tests move it, the store compares against it, and nothing else calls Date.now(). */
export interface Clock {
  /** Wall-clock time, for instants that people and records see. */
  nowMs(): number
  /** Monotonic time, for durations; a stepped wall clock must not give a negative latency. */
  monotonicMs(): number
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
}
