import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import type { TestContext } from 'node:test'

/** The files that start the timers of sockets, known by their place in a stack. */
const OF_SOCKETS = ['silence-timer', 'response-lanes', 'socket-session'].map((name) => {
  const file = new URL(`../../src/gateway/turns/${name}.ts`, import.meta.url)
  assert.ok(existsSync(file), `the timers of sockets were in ${file.pathname}: say here where they are now`)
  return file.pathname
})

/**
 * From here on the timers of sockets advance only by the returned function. Other timers go on: a process has the gateways of
 * other test files too, and a gateway whose heartbeat stops is fenced by its database.
 */
export function stopTime(t: TestContext): (ms: number) => void {
  const { setTimeout: start, clearTimeout: clear } = globalThis
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { setTimeout: startMocked, clearTimeout: clearMocked } = globalThis
  const mocked = new WeakSet<object>()
  const startEither = (run: (...args: unknown[]) => void, ms: number, ...args: unknown[]) => {
    const { stack = '' } = new Error('which file starts this timer')
    if (!OF_SOCKETS.some((file) => stack.includes(file))) return start(run, ms, ...args)
    const timer = startMocked(run, ms, ...args)
    mocked.add(timer)
    return timer
  }
  // The mock puts both functions back at the end of the test.
  globalThis.setTimeout = startEither as typeof start
  globalThis.clearTimeout = ((timer: NodeJS.Timeout) =>
    (mocked.has(timer) ? clearMocked : clear)(timer)) as typeof clear
  return (ms) => t.mock.timers.tick(ms)
}
