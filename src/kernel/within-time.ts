import { setTimeout as sleep } from 'node:timers/promises'
import type { Clock } from './clock.ts'

/** Tells no more often than that; what comes in between is not told. */
export function atMostEvery(ms: number, clock: Clock, tell: (text: string) => void): (text: string) => void {
  let toldMs = -Infinity
  return (text) => {
    if (clock.monotonicMs() - toldMs < ms) return
    toldMs = clock.monotonicMs()
    tell(text)
  }
}

/** Null if it fails or takes too long. */
export function unlessLate<T>(asked: Promise<T>, withinMs: number): Promise<T | null> {
  return Promise.race([asked.catch(() => null), sleep(withinMs, null, { ref: false })])
}

/** Resolves when nothing is under way any more, or after the time. */
export async function untilQuiet(isQuiet: () => boolean, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!isQuiet() && performance.now() < deadline) await sleep(10)
}
