/**
 * The clock of background work: batches and background responses go by this clock, and it can be hurried,
 * so that a test need not wait for work that takes a minute here and a day upstream.
 */
export interface WorkClock {
  nowMs(): number
  /** The milliseconds of work done since `sinceMs`; endless hurry has done all of the work. */
  elapsedMs(sinceMs: number): number
}

export function createWorkClock(nowMs: () => number, hurry: number): WorkClock {
  return {
    nowMs,
    elapsedMs: (sinceMs) => (hurry === Number.POSITIVE_INFINITY ? hurry : (nowMs() - sinceMs) * hurry),
  }
}
