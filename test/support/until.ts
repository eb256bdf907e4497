import { setTimeout as sleep } from 'node:timers/promises'
import { deadlineMsDefault } from './deadline.ts'

/** Asks again and again until it is so, of something that tells nobody when it changes. */
export async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + deadlineMsDefault
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`still not so after ${deadlineMsDefault} ms: ${what}`)
    await sleep(10)
  }
}
