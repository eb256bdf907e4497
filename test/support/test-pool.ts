import { run } from 'node:test'
import type { TestEvent } from 'node:test/reporters'

/** A test file in a process of its own, with the environment that says on which store. */
export interface TestProcess {
  readonly file: string
  readonly env: NodeJS.ProcessEnv
  /** What each test's name is followed by: the tests of both stores are the same. */
  readonly suffix: string
}

type Summary = Extract<TestEvent, { type: 'test:summary' }>['data']

/** What node:test says of a run at its end. Each process is a run, and all of them are told as one. */
const TOTALS = /^(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /

/**
 * Runs these files, so many at a time whatever their store, so that no core is idle while the last file of one store is still
 * at work. Events come in the order of the files, and the sum of them at the end.
 */
export async function* runPool(
  processes: readonly TestProcess[],
  concurrency: number,
  execArgv: readonly string[],
): AsyncGenerator<TestEvent> {
  const startedMs = performance.now()
  const streams = processes.map(() => Promise.withResolvers<AsyncIterable<TestEvent>>())
  const waiting = processes.entries()
  const startNext = () => {
    const [at, next] = waiting.next().value ?? []
    if (at === undefined || next === undefined) return
    const events = run({ files: [next.file], env: next.env, execArgv: [...execArgv] })
    events.on('test:summary', ({ file }: Summary) => {
      if (file === undefined) startNext()
    })
    streams[at]?.resolve(events as AsyncIterable<TestEvent>)
  }
  for (let i = 0; i < concurrency; i += 1) startNext()

  const summaries: Summary[] = []
  let failed = 0
  for (const [at, { promise }] of streams.entries()) {
    for await (const event of await promise) {
      if (event.type === 'test:summary') {
        if (event.data.file === undefined) summaries.push(event.data)
      } else if (event.type !== 'test:diagnostic' || !TOTALS.test(event.data.message)) {
        if (event.type === 'test:fail') failed += 1
        if (event.data !== undefined && 'name' in event.data) event.data.name += processes[at]?.suffix ?? ''
        yield event
      }
    }
  }
  const durationMs = performance.now() - startedMs
  const sum = (name: keyof Summary['counts']) =>
    summaries.reduce((total, { counts }) => total + counts[name], 0)
  const totals = {
    ...{ tests: sum('tests'), suites: sum('suites'), pass: sum('passed'), fail: failed },
    ...{ cancelled: sum('cancelled'), skipped: sum('skipped'), todo: sum('todo') },
    duration_ms: Math.round(durationMs),
  }
  for (const [name, value] of Object.entries(totals)) {
    yield { type: 'test:diagnostic', data: { message: `${name} ${value}`, nesting: 0, level: 'info' } }
  }
}
