import { run } from 'node:test'
import type { TestEvent } from 'node:test/reporters'

/** A process that runs test files; its environment names the files and the store. */
export interface TestProcess {
  readonly name: string
  readonly file: string
  readonly env: NodeJS.ProcessEnv
  /** The suffix of each test's name, since both stores have tests of the same names. */
  readonly suffix: string
  /** Heavier processes start first. */
  readonly weight: number
  /** The process starts when this resolves; meanwhile lighter ones start. */
  readonly waitsFor?: Promise<unknown> | undefined
}

type Summary = Extract<TestEvent, { type: 'test:summary' }>['data']

/** The totals that node:test reports at the end of a run. Each process is a run; all are reported as one. */
const TOTALS = /^(?:tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /

/** A process silent for `silenceMs` is killed: a socket of a failed test would keep it alive forever. */
export async function* runPool(
  processes: readonly TestProcess[],
  concurrency: number,
  silenceMs: number,
  execArgv: readonly string[],
  end?: AbortSignal,
): AsyncGenerator<TestEvent> {
  const startedMs = performance.now()
  const times: Record<string, number> = {}
  const begun = processes.map(() =>
    Promise.withResolvers<{ events: AsyncIterable<TestEvent>; suffix: string }>(),
  )
  const left = new Set(processes)
  const ready = new Set(processes.filter(({ waitsFor }) => waitsFor === undefined))
  let running = 0
  const start = (next: TestProcess) => {
    running += 1
    const hanging = new AbortController()
    const signal = AbortSignal.any([hanging.signal, ...(end === undefined ? [] : [end])])
    const env = { ...process.env, ...next.env }
    const events = run({ files: [next.file], env, execArgv: [...execArgv], signal })
    const beganMs = performance.now()
    const silence = setTimeout(() => {
      hanging.abort(new Error(`no report for ${silenceMs / 1_000} s: the process was ended`))
    }, silenceMs)
    for (const report of ['test:start', 'test:pass', 'test:fail'] as const)
      events.on(report, () => silence.refresh())
    events.on('test:summary', ({ file }: Summary) => {
      if (file !== undefined) return
      clearTimeout(silence)
      running -= 1
      times[next.name] = Math.round(performance.now() - beganMs)
      startSome()
    })
    const nth = processes.length - left.size - 1
    begun[nth]?.resolve({ events: events as AsyncIterable<TestEvent>, suffix: next.suffix })
  }
  const startSome = () => {
    for (const next of left) {
      if (running === concurrency) return
      if (ready.has(next) && left.delete(next)) start(next)
    }
  }
  for (const each of processes) {
    void each.waitsFor?.then(() => {
      ready.add(each)
      startSome()
    })
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
  const slowest = Object.entries(times)
    .sort(([, one], [, other]) => other - one)
    .slice(0, SLOWEST)
    .map(([name, ms]) => `${name} ${Math.round(ms / 1_000)} s`)
  const lines = Object.entries(totals).map(([name, value]) => `${name} ${value}`)
  for (const message of [...lines, `slowest processes: ${slowest.join(', ')}`]) {
    yield { type: 'test:diagnostic', data: { message, nesting: 0, level: 'info' } }
  }
}

/** How many of the slowest processes are named at the end, to explain a long run. */
const SLOWEST = 25
