import { setTimeout as sleep } from 'node:timers/promises'
import { Histogram } from './histogram.ts'
import type { Figures, SocketsJob } from './job.ts'
import { monotonicNs } from './monotonic.ts'
import { memoryBytes } from './read-proc.ts'
import { SocketCaller, type SocketEvents } from './socket-caller.ts'
import { FRAMES_AROUND, handshake, turnAsked } from './socket-text.ts'
import { TimeFinder } from './time-finder.ts'
import { watchProcesses } from './watch-processes.ts'

/** A few sockets before memory is first looked at, so that modules that are loaded on first use are there. */
const FIRST_SOCKETS = 50
/** A pause longer than a gateway waits for the other side of a socket that closes. */
const SETTLE_MS = 3_000
const COLLECTIONS = 3
const OPENING_MS_MAX = 20_000

/** Opens sockets one after the other, evenly over the time. Throws where not all sockets can be opened. */
async function openSockets(
  job: SocketsJob,
  count: number,
  events: Partial<SocketEvents> = {},
): Promise<SocketCaller[]> {
  const url = job.urls[0] ?? ''
  const request = handshake(url, job.headers)
  let opened = 0
  const counting: SocketEvents = {
    message() {},
    closed() {},
    ...events,
    opened(caller) {
      opened += 1
      events.opened?.(caller)
    },
  }
  const callers: SocketCaller[] = []
  const beganMs = performance.now()
  while (opened < count) {
    const passedMs = performance.now() - beganMs
    if (passedMs > job.rampSeconds * 1_000 + OPENING_MS_MAX) {
      throw new Error(`only ${opened} of ${count} sockets could be opened`)
    }
    const due = Math.min(count, Math.ceil((passedMs / 1_000 / job.rampSeconds) * count))
    while (callers.length < due) callers.push(new SocketCaller(url, request, counting))
    await sleep(5)
  }
  return callers
}

/** The memory of each socket that is open and idle. */
export async function loadIdleSockets(job: SocketsJob): Promise<Figures> {
  for (const caller of await openSockets(job, FIRST_SOCKETS)) caller.close()
  const beforeBytes = await memoryInUse(job.pids)
  let open = 0
  const callers = await openSockets(job, job.sockets, {
    opened: () => (open += 1),
    closed: () => (open -= 1),
  })
  const openBytes = await memoryInUse(job.pids)
  const stopWatch = watchProcesses(job)
  await sleep(job.seconds * 1_000)
  const watched = stopWatch()
  const figures = {
    sockets: job.sockets,
    memoryKbPerSocket: (openBytes - beforeBytes) / 1e3 / job.sockets,
    errors: job.sockets - open,
    ...watched.figures,
  }
  for (const caller of callers) caller.close()
  return figures
}

async function memoryInUse(pids: readonly number[]): Promise<number> {
  for (let i = 0; i < COLLECTIONS; i += 1) {
    await sleep(SETTLE_MS / COLLECTIONS)
    for (const pid of pids) process.kill(pid, 'SIGUSR2')
  }
  await sleep(SETTLE_MS / COLLECTIONS)
  return memoryBytes(pids)
}

/** Sockets with one turn after the other, or with a long turn each: the delay and the processor time of an event. */
export async function loadBusySockets(job: SocketsJob): Promise<Figures> {
  const delays = new Histogram()
  const framesLeft = new Map<SocketCaller, number>()
  const nextTurn = turnAsked(job.eventsPerTurn)
  let measuring = false
  let bytes = 0
  let turns = 0
  let gone = 0
  const finder = new TimeFinder((sentNs, nowNs) => delays.record(nowNs - sentNs))

  const callers = await openSockets(job, job.sockets, {
    opened(caller) {
      // Where other turns follow, the first turns of sockets differ in length, so that turns do not all end at the same time.
      const share = job.kind === 'streaming-sockets' ? 1 : framesLeft.size / job.sockets
      const events = 1 + Math.floor(share * job.eventsPerTurn)
      framesLeft.set(caller, FRAMES_AROUND + events)
      caller.send(turnAsked(events))
    },
    message(caller, payload) {
      if (measuring) {
        bytes += payload.length
        finder.read(payload, monotonicNs())
      }
      const left = (framesLeft.get(caller) ?? 0) - 1
      framesLeft.set(caller, left === 0 ? FRAMES_AROUND + job.eventsPerTurn : left)
      if (left > 0) return
      if (measuring) turns += 1
      caller.send(nextTurn)
    },
    closed: () => (gone += 1),
  })
  await sleep(job.warmUpSeconds * 1_000)

  const stopWatch = watchProcesses(job)
  measuring = true
  await sleep(job.seconds * 1_000)
  measuring = false
  const watched = stopWatch()
  const figures = {
    sockets: job.sockets,
    turnsPerSecond: turns / watched.seconds,
    eventsPerSecond: delays.count / watched.seconds,
    delayP50Ms: delays.quantileMs(0.5),
    delayP99Ms: delays.quantileMs(0.99),
    delayMaxMs: delays.maxMs,
    cpuMicrosPerEvent: (watched.cpuSeconds / Math.max(1, delays.count)) * 1e6,
    cpuMillisPerMb: (watched.cpuSeconds * 1e3) / Math.max(1, bytes / 1e6),
    errors: gone,
    ...watched.figures,
  }
  for (const caller of callers) caller.close()
  return figures
}
