import { setTimeout as sleep } from 'node:timers/promises'

/** What a database or another process comes to by itself, and tells nobody: asked for again and again. */
export async function waitUntil(
  what: string,
  isSo: () => Promise<boolean>,
  { withinMs = 20_000, everyMs = 25 } = {},
): Promise<void> {
  const deadline = performance.now() + withinMs
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`)
    await sleep(everyMs)
  }
}
