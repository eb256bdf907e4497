import { waitMsMax } from './limits.ts'

/** How long a model takes before its first byte, and how fast it writes then. */
export interface Pace {
  readonly firstByteMs: number
  readonly tokensPerSecond: number
}

export type PaceMode = 'realistic' | 'instant'

export function tokensMs(pace: Pace, tokens: number): number {
  return (tokens / pace.tokensPerSecond) * 1000
}

/** Waits, or returns at once when the signal says that the client has left. */
export function wait(ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0 || signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer)
      signal.removeEventListener('abort', finish)
      resolve()
    }
    const timer = setTimeout(finish, Math.min(ms, waitMsMax))
    signal.addEventListener('abort', finish)
  })
}

/** The clock of batches and background responses. It can be hurried, so that a test need not wait. */
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
