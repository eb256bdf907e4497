import { Caller, requestBytes } from './caller.ts'
import { Histogram } from './histogram.ts'
import type { Figures, ReportsJob } from './job.ts'
import { monotonicNs } from './monotonic.ts'
import { watchProcesses } from './watch-processes.ts'

const WARM_UP_ROUNDS = 3

/** One caller that asks for each report in turn. */
export async function loadReports(job: ReportsJob): Promise<Figures> {
  const url = job.urls[0] ?? ''
  let answered: (status: number | null) => void = () => {}
  const caller = new Caller(url, { ended: (_, status) => answered(status) })
  const requests = job.paths.map((path) => ({
    request: requestBytes(url, path, job.headers, null),
    times: new Histogram(),
  }))
  const ask = (request: Buffer): Promise<number | null> =>
    new Promise((resolve) => {
      answered = resolve
      caller.ask(request)
    })

  let errors = 0
  for (let round = 0; round < WARM_UP_ROUNDS; round += 1) {
    for (const { request } of requests) await ask(request)
  }
  const stopWatch = watchProcesses(job)
  const endNs = monotonicNs() + job.seconds * 1e9
  let rounds = 0
  do {
    for (const { request, times } of requests) {
      const sentNs = monotonicNs()
      if ((await ask(request)) === 200) times.record(monotonicNs() - sentNs)
      else errors += 1
    }
    rounds += 1
  } while (monotonicNs() < endNs)
  const watched = stopWatch()
  caller.close()

  const medians = requests.map(({ times }) => times.quantileMs(0.5))
  return {
    reportsMs: medians.reduce((sum, ms) => sum + ms, 0),
    slowestReportMs: Math.max(...medians),
    cpuMicrosPerReport: (watched.cpuSeconds / (rounds * requests.length)) * 1e6,
    ...Object.fromEntries(medians.map((ms, i) => [`report${i + 1}Ms`, ms])),
    errors,
    ...watched.figures,
  }
}
