import { setTimeout as sleep } from 'node:timers/promises'
import { deadlineMsDefault } from './deadline.ts'

/** Polls until the condition holds, for a state whose changes raise no event: a database, another process. */
export async function until(
  what: string,
  isSo: () => Promise<boolean>,
  { withinMs = deadlineMsDefault, everyMs = 10 } = {},
): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`still not so after ${withinMs} ms: ${what}`)
    await sleep(everyMs)
  }
}
