import type { TestContext } from 'node:test'

/** Where the timers of sockets are. */
const OF_SOCKETS = /\/src\/gateway\/turns\/(?:silence-timer|response-lanes|socket-session)\.ts/

/**
 * From here on the time of sockets passes where it is told to. Other timers go on: a process has the gateways of other test files
 * too, and one whose database hears no more of it is given up.
 */
export function stopTime(t: TestContext): (ms: number) => void {
  const { setTimeout: start, clearTimeout: clear } = globalThis
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { setTimeout: startMocked, clearTimeout: clearMocked } = globalThis
  const mocked = new WeakSet<object>()
  const startEither = (run: (...args: unknown[]) => void, ms: number, ...args: unknown[]) => {
    if (!OF_SOCKETS.test(new Error('who asks').stack ?? '')) return start(run, ms, ...args)
    const timer = startMocked(run, ms, ...args)
    mocked.add(timer)
    return timer
  }
  // Both are put back with the mock.
  globalThis.setTimeout = startEither as typeof start
  globalThis.clearTimeout = ((timer: NodeJS.Timeout) =>
    (mocked.has(timer) ? clearMocked : clear)(timer)) as typeof clear
  return (ms) => t.mock.timers.tick(ms)
}
