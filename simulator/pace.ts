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
