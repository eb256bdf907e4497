import { text } from 'node:stream/consumers'
import type { Figures, Job } from './job.ts'
import { loadReports } from './load-reports.ts'
import { loadRequests } from './load-requests.ts'
import { loadStreams } from './load-streams.ts'

/** The load in a process of its own, on raw sockets. Reads one job from standard input and prints its figures. */

function run(job: Job): Promise<Figures> {
  switch (job.kind) {
    case 'requests':
      return loadRequests(job)
    case 'streams':
      return loadStreams(job)
    case 'reports':
      return loadReports(job)
  }
}

const job = JSON.parse(await text(process.stdin)) as Job
const figures = await run(job)
process.stdout.write(`figures ${JSON.stringify(figures)}\n`, () => process.exit())
