/**
 * Time as work in the background sees it: batches and background responses go by it, and it can be hurried,
 * so that a test need not wait for what takes a minute here and a day upstream.
 */
export interface WorkClock {
  nowMs(): number
  /** How much work was done since then; endless hurry has done all of it. */
  elapsedMs(sinceMs: number): number
}

export function createWorkClock(nowMs: () => number, hurry: number): WorkClock {
  return {
    nowMs,
    elapsedMs: (sinceMs) => (hurry === Number.POSITIVE_INFINITY ? hurry : (nowMs() - sinceMs) * hurry),
  }
}
