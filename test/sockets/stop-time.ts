import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import type { TestContext } from 'node:test'
import { withDeadline } from '../support/deadline.ts'

function pathOf(name: string): string {
  const file = new URL(`../../src/${name}.ts`, import.meta.url)
  assert.ok(
    existsSync(file),
    `${file.pathname} no longer has the timers of sockets: name their new file here`,
  )
  return file.pathname
}

/** The files that start the timers of sockets, found in stack traces. */
const OF_SOCKETS = ['socket-session', 'client-side', 'upstream-side'].map((name) => pathOf(`sockets/${name}`))

/** The file that starts the handshake timer itself. Its callees start timers of connections. */
const OF_HANDSHAKES = pathOf('http/upstream-connection')

function isOfSockets(stack: string, files: readonly string[]): boolean {
  const [, _here, starter = ''] = stack.split('\n')
  return starter.includes(OF_HANDSHAKES) || files.some((file) => stack.includes(file))
}

export interface StoppedTime {
  (ms: number): void
  /** Waits until another timer of this length starts, and lets it expire. */
  over(ms: number): Promise<void>
}

/** Only timers of sockets and these files stop: a gateway in this process without a heartbeat is fenced. */
export function stopTime(t: TestContext, ...names: readonly string[]): StoppedTime {
  const files = [...OF_SOCKETS, ...names.map(pathOf)]
  const { setTimeout: start, clearTimeout: clear } = globalThis
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { setTimeout: startMocked, clearTimeout: clearMocked } = globalThis
  const mocked = new WeakSet<object>()
  const started: number[] = []
  let onStarted = Promise.withResolvers<void>()
  const startEither = (run: (...args: unknown[]) => void, ms: number, ...args: unknown[]) => {
    const { stack = '' } = new Error('which file starts this timer')
    if (!isOfSockets(stack, files)) return start(run, ms, ...args)
    const timer = startMocked(run, ms, ...args)
    mocked.add(timer)
    started.push(ms)
    onStarted.resolve()
    onStarted = Promise.withResolvers()
    return timer
  }
  // The mock restores both functions at the end of the test.
  globalThis.setTimeout = startEither as typeof start
  globalThis.clearTimeout = ((timer: NodeJS.Timeout) =>
    (mocked.has(timer) ? clearMocked : clear)(timer)) as typeof clear
  const pass = (ms: number) => t.mock.timers.tick(ms)
  const taken = async (ms: number) => {
    while (!started.includes(ms)) await onStarted.promise
    started.splice(started.indexOf(ms), 1)
  }
  return Object.assign(pass, {
    async over(ms: number) {
      await withDeadline(taken(ms), () => `no timer of ${ms} ms was started`)
      pass(ms)
    },
  })
}
