import { setTimeout as sleep } from 'node:timers/promises'

/** Resolves to the result, or to null if it fails or takes too long. */
export function unlessLate<T>(result: Promise<T>, withinMs: number): Promise<T | null> {
  return Promise.race([result.catch(() => null), sleep(withinMs, null, { ref: false })])
}

/** Polls until `isQuiet` returns true, but at most for `withinMs`. */
export async function untilQuiet(isQuiet: () => boolean, withinMs: number): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!isQuiet() && performance.now() < deadline) await sleep(10)
}
