import { setTimeout as sleep } from 'node:timers/promises'
import { Caller, requestBytes } from './caller.ts'
import { Histogram } from './histogram.ts'
import type { Figures, StreamsJob } from './job.ts'
import { loadRequests } from './load-requests.ts'
import { monotonicNs } from './monotonic.ts'
import { memoryBytes } from './read-proc.ts'
import { median } from './report/median.ts'
import { TimeFinder } from './time-finder.ts'
import { watchProcesses } from './watch-processes.ts'
import { PATHS, requestBody } from './wire-text.ts'

const REQUEST_BYTES = 2_000
/** A few requests before memory is first looked at, so that modules that are loaded on first use are there. */
const FIRST_REQUESTS = { callers: 4, warmUpSeconds: 0.3, warmUpRequests: 200, seconds: 0 }
const SETTLE_MS = 500
/** How much longer streams last than the measuring. */
const MARGIN_SECONDS = 0.5
/** How long no event may come: a subject that has fallen behind may deliver the missing events as long as any come. */
const STALL_MS = 10_000
const MEMORY_EVERY_MS = 500

/** How many events a stream must have to outlast the opening of all, the warm-up and the measuring. */
export function eventsNeeded(
  { rampSeconds, warmUpSeconds, seconds }: Pick<StreamsJob, 'rampSeconds' | 'warmUpSeconds' | 'seconds'>,
  eventsPerSecond: number,
): number {
  return Math.ceil((rampSeconds + warmUpSeconds + seconds + MARGIN_SECONDS) * eventsPerSecond)
}

interface OpenStream {
  readonly finder: TimeFinder
  events: number
}

/** Streams side by side: the delay of each event, and the processor time and memory while all streams are open. */
export async function loadStreams(job: StreamsJob): Promise<Figures> {
  await loadRequests({ ...job, ...FIRST_REQUESTS, kind: 'requests', requestBytes: REQUEST_BYTES })
  await sleep(SETTLE_MS)
  const idleBytes = memoryBytes(job.pids)

  const delays = new Histogram()
  const streams = new Map<Caller, OpenStream>()
  let measuring = false
  let complete = 0
  let received = 0
  let open = 0
  let progressMs = performance.now()

  function openStream(index: number): void {
    const finder = new TimeFinder((sentNs, nowNs) => {
      stream.events += 1
      received += 1
      if (measuring) delays.record(nowNs - sentNs)
    })
    const stream: OpenStream = { finder, events: 0 }
    const caller = new Caller(job.urls[index % job.urls.length] ?? '', {
      body(_, piece) {
        finder.read(piece, monotonicNs())
      },
      ended(_, status) {
        open -= 1
        if (status === 200 && stream.events === job.eventsPerStream) complete += 1
        caller.close()
        streams.delete(caller)
        progressMs = performance.now()
      },
    })
    streams.set(caller, stream)
    open += 1
    caller.ask(request)
  }

  const request = requestBytes(
    job.urls[0] ?? '',
    PATHS[job.surface],
    job.headers,
    requestBody(job.surface, REQUEST_BYTES, true),
  )
  const { leavers = 0 } = job
  const streamCount = job.streams + leavers
  let opened = 0
  const beganNs = monotonicNs()
  while (opened < streamCount) {
    const share = (monotonicNs() - beganNs) / 1e9 / job.rampSeconds
    const due = Math.min(streamCount, Math.ceil(share * streamCount))
    while (opened < due) {
      openStream(opened)
      opened += 1
    }
    await sleep(5)
  }
  await sleep(job.warmUpSeconds * 1_000)

  const stopWatch = watchProcesses(job)
  const busyBytes: number[] = []
  const looking = setInterval(() => busyBytes.push(memoryBytes(job.pids)), MEMORY_EVERY_MS)
  measuring = true
  await sleep(job.seconds * 1_000)
  measuring = false
  clearInterval(looking)
  busyBytes.push(memoryBytes(job.pids))
  const watched = stopWatch()
  const openThen = open
  // The youngest streams leave: the others are nearly complete.
  const left = [...streams.keys()].toReversed().slice(0, leavers)
  for (const caller of left) {
    caller.close()
    streams.delete(caller)
  }
  progressMs = performance.now()
  while (streams.size > 0 && performance.now() - progressMs < STALL_MS) {
    const before = received
    await sleep(50)
    if (received > before) progressMs = performance.now()
  }
  for (const caller of streams.keys()) caller.close()

  return {
    streams: streamCount - left.length,
    streamsOpen: openThen,
    streamsComplete: complete,
    eventsPerSecond: delays.count / watched.seconds,
    delayP50Ms: delays.quantileMs(0.5),
    delayP99Ms: delays.quantileMs(0.99),
    delayMaxMs: delays.maxMs,
    cpuMicrosPerEvent: (watched.cpuSeconds / Math.max(1, delays.count)) * 1e6,
    memoryKbPerStream: (median(busyBytes) - idleBytes) / 1e3 / Math.max(1, openThen),
    ...watched.figures,
  }
}
