import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { Caller, requestBytes } from './caller.ts'
import { Histogram } from './histogram.ts'
import { type Figures, KEY_HEADER, type RequestsJob } from './job.ts'
import { monotonicNs } from './monotonic.ts'
import { watchProcesses } from './watch-processes.ts'
import { PATHS, requestBody } from './wire-text.ts'

/** A connection that was refused is tried again after a moment, or a dead server would keep a core busy. */
const RETRY_MS = 20

/** A warm-up that waits for its requests takes at most so many times as long as a warm-up without waiting. */
const WARM_UP_TIMES_MAX = 8

/** Callers in a closed loop: warmed up, then measured for a while. */
export async function loadRequests(job: RequestsJob): Promise<Figures> {
  const times = new Histogram()
  let measuring = false
  let stopped = false
  let errors = 0
  let answered = 0
  const nextRequest = requestSource(job)

  function ask(caller: Caller): void {
    if (stopped || surplus.delete(caller)) {
      caller.close()
      return
    }
    caller.sentNs = monotonicNs()
    caller.ask(nextRequest())
  }

  const surplus = new Set<Caller>()
  const callers = Array.from({ length: Math.max(job.callers, job.warmUpCallers ?? 0) }, (_, i) => {
    const url = job.urls[i % job.urls.length] ?? ''
    return new Caller(url, {
      ended(caller, status) {
        answered += 1
        if (measuring) {
          if (status === 200) times.record(monotonicNs() - caller.sentNs)
          else errors += 1
        }
        if (status === null) setTimeout(ask, RETRY_MS, caller)
        else ask(caller)
      },
    })
  })
  for (const caller of callers) ask(caller)
  const warmUpMs = job.warmUpSeconds * 1_000
  const latestMs = performance.now() + warmUpMs * WARM_UP_TIMES_MAX
  await sleep(warmUpMs)
  // Code that has hardly run is not optimised yet, and would be measured as if it always ran like this.
  while (answered < job.warmUpRequests && performance.now() < latestMs) await sleep(20)
  for (const caller of callers.splice(job.callers)) surplus.add(caller)
  while (surplus.size > 0) await sleep(5)

  const stopWatch = watchProcesses(job)
  measuring = true
  await sleep(job.seconds * 1_000)
  measuring = false
  const watched = stopWatch()
  stopped = true
  for (const caller of callers) caller.close()

  return {
    requestsPerSecond: times.count / watched.seconds,
    latencyP50Ms: times.quantileMs(0.5),
    latencyP90Ms: times.quantileMs(0.9),
    latencyP99Ms: times.quantileMs(0.99),
    latencyMaxMs: times.maxMs,
    cpuMicrosPerRequest: (watched.cpuSeconds / Math.max(1, times.count)) * 1e6,
    requests: times.count,
    errors,
    ...watched.figures,
  }
}

function requestSource(job: RequestsJob): () => Buffer {
  const body = requestBody(job.surface, job.requestBytes, false)
  const build = (headers: RequestsJob['headers']): Buffer =>
    requestBytes(job.urls[0] ?? '', PATHS[job.surface], headers, body)
  if (job.keys === undefined) {
    const request = build(job.headers)
    return () => request
  }
  const keys = readFileSync(job.keys.file, 'utf8').trim().split('\n').slice(0, job.keys.inUse)
  const others = job.headers.filter(([name]) => name !== KEY_HEADER)
  const requests = keys.map((key) => build([...others, [KEY_HEADER, key]]))
  let next = 0
  return () => {
    const request = requests[next % requests.length]
    next += 1
    if (request === undefined) throw new Error('there are no keys')
    return request
  }
}
