import { basename } from 'node:path'
import { run } from 'node:test'
import type { TestEvent } from 'node:test/reporters'

/** A test file in a process of its own, with the environment that names the store. */
export interface TestProcess {
  readonly file: string
  readonly env: NodeJS.ProcessEnv
  /** The suffix of each test's name, since the tests of both stores have the same names. */
  readonly suffix: string
  /** Test files that start many processes stand in a line, of which one runs at a time. -1: the file is in no line. */
  readonly line: number
}

type Summary = Extract<TestEvent, { type: 'test:summary' }>['data']

/** The totals that node:test reports at the end of a run. Each process is a run, and all runs are reported as one. */
const TOTALS = /^(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /

/**
 * Runs these files, so many at a time whatever their store, so that no core is idle while the last file of one store is still
 * at work; of the files in one line one at a time. Events come in the order in which the files were begun, and their
 * sum at the end. A process that has reported nothing for `silenceMs` is ended and has failed: a socket or timer that a
 * failed test left open would keep the process alive for ever.
 */
export async function* runPool(
  processes: readonly TestProcess[],
  concurrency: number,
  silenceMs: number,
  execArgv: readonly string[],
): AsyncGenerator<TestEvent> {
  const startedMs = performance.now()
  const begun = processes.map(() =>
    Promise.withResolvers<{ events: AsyncIterable<TestEvent>; suffix: string }>(),
  )
  const left = [...processes]
  const took: { readonly name: string; readonly ms: number }[] = []
  let running = 0
  const taken = new Set<number>()
  const startSome = () => {
    while (running < concurrency) {
      const at = left.findIndex(({ line }) => !taken.has(line))
      const [next] = at === -1 ? [] : left.splice(at, 1)
      if (next === undefined) return
      running += 1
      if (next.line !== -1) taken.add(next.line)
      const hanging = new AbortController()
      const { signal } = hanging
      const events = run({ files: [next.file], env: next.env, execArgv: [...execArgv], signal })
      const beganMs = performance.now()
      const silence = setTimeout(() => {
        hanging.abort(new Error(`it has told nothing for ${silenceMs / 1_000} s, and was ended`))
      }, silenceMs)
      for (const told of ['test:start', 'test:pass', 'test:fail'] as const)
        events.on(told, () => silence.refresh())
      events.on('test:summary', ({ file }: Summary) => {
        if (file !== undefined) return
        clearTimeout(silence)
        running -= 1
        took.push({ name: basename(next.file) + next.suffix, ms: performance.now() - beganMs })
        taken.delete(next.line)
        startSome()
      })
      const nth = processes.length - left.length - 1
      begun[nth]?.resolve({ events: events as AsyncIterable<TestEvent>, suffix: next.suffix })
    }
  }
  startSome()

  const summaries: Summary[] = []
  let failed = 0
  for (const { promise } of begun) {
    const { events, suffix } = await promise
    for await (const event of events) {
      if (event.type === 'test:summary') {
        if (event.data.file === undefined) summaries.push(event.data)
      } else if (event.type !== 'test:diagnostic' || !TOTALS.test(event.data.message)) {
        if (event.type === 'test:fail') failed += 1
        if (event.data !== undefined && 'name' in event.data) event.data.name += suffix
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
  const slowest = took
    .sort((one, other) => other.ms - one.ms)
    .slice(0, SLOWEST)
    .map(({ name, ms }) => `${name} ${Math.round(ms / 1_000)} s`)
  const told = Object.entries(totals).map(([name, value]) => `${name} ${value}`)
  for (const message of [...told, `slowest processes: ${slowest.join(', ')}`]) {
    yield { type: 'test:diagnostic', data: { message, nesting: 0, level: 'info' } }
  }
}

/** How many of the slowest processes are named at the end, so that the cause of a long run need not be searched for. */
const SLOWEST = 25
