import type { Figures } from '../job.ts'
import { eventsNeeded } from '../load-streams.ts'
import { type RunningUpstream, runLoad, targetOf, withSubject } from '../measure.ts'
import { memoryBytes } from '../read-proc.ts'
import { median } from '../report/median.ts'
import type { RunningSubject } from '../subjects/subject.ts'
import { type TollgateParts, tollgate } from '../subjects/tollgate.ts'
import type { Case, Group, Plan } from './group.ts'

const CALLERS = 16
const STREAMS = 100
/**
 * Streams that hang up before their usage has come, so that the gateway loads a vocabulary to count their tokens. Every
 * run has some: by chance alone the vocabulary would take memory in one run and not in another.
 */
const LEAVERS = 4
const SAMPLE_EVERY_MS = 1_000
/** New callers and new streams each time, as clients come and go. */
const CYCLE_SECONDS = 15
const RAMP_SECONDS = 1

/** Requests and chat streams for minutes on end, and whether memory stays where it is. */
export function soakGroup(plan: Plan): Group {
  return {
    title: `${plan.soakMinutes} minutes of ${CALLERS} callers and ${STREAMS} chat streams, and ${LEAVERS} that hang up`,
    rounds: 1,
    cases: plan.tollgates.map((parts) => soakCase(plan, parts)),
  }
}

function soakCase(plan: Plan, parts: TollgateParts): Case {
  const { cores, sizes } = plan
  const seconds = Math.min(CYCLE_SECONDS, plan.soakMinutes * 60)
  const events = eventsNeeded({ rampSeconds: RAMP_SECONDS, warmUpSeconds: 0, seconds }, sizes.eventsPerSecond)
  const upstreamPlan = { replyBytes: sizes.requestBytes, events, eventsPerSecond: sizes.eventsPerSecond }
  return {
    workload: 'soak',
    subject: parts.name,
    run: () =>
      withSubject(tollgate(parts), upstreamPlan, cores, async (running, upstream) => {
        const beganMs = performance.now()
        const memoryMb: number[] = []
        const sample = () => memoryMb.push(memoryBytes(running.pids()) / 1e6)
        const timer = setInterval(sample, SAMPLE_EVERY_MS)
        let requests = 0
        let errors = 0
        let incomplete = 0
        try {
          while (performance.now() - beganMs < plan.soakMinutes * 60_000) {
            const cycle = await runCycle(plan, running, upstream, seconds, events)
            requests += cycle.requests
            errors += cycle.errors
            incomplete += cycle.incomplete
          }
        } finally {
          clearInterval(timer)
        }
        return { requests, errors, streamsIncomplete: incomplete, ...growth(memoryMb) }
      }),
  }
}

async function runCycle(
  { cores, sizes }: Plan,
  running: RunningSubject,
  upstream: RunningUpstream,
  seconds: number,
  eventsPerStream: number,
): Promise<{ requests: number; errors: number; incomplete: number }> {
  const [whole, streamed] = await Promise.all([
    runLoad(
      {
        ...targetOf(running, upstream, 'messages'),
        kind: 'requests',
        surface: 'messages',
        requestBytes: sizes.requestBytes,
        callers: CALLERS,
        warmUpSeconds: 0,
        warmUpRequests: 0,
        seconds: seconds + RAMP_SECONDS,
      },
      cores.load,
    ),
    runLoad(
      {
        ...targetOf(running, upstream, 'chat'),
        kind: 'streams',
        surface: 'chat',
        streams: STREAMS,
        leavers: LEAVERS,
        eventsPerStream,
        rampSeconds: RAMP_SECONDS,
        warmUpSeconds: 0,
        seconds,
      },
      cores.load,
    ),
  ])
  return {
    requests: whole['requests'] ?? 0,
    errors: whole['errors'] ?? 0,
    incomplete: (streamed['streams'] ?? 0) - (streamed['streamsComplete'] ?? 0),
  }
}

/** The second quarter of the time against the last: in the first one, memory still grows into its working size. */
function growth(samples: readonly number[]): Figures {
  const quarter = Math.floor(samples.length / 4)
  const memoryOf = (from: number, to: number): number => median(samples.slice(from, to))
  const early = memoryOf(quarter, 2 * quarter)
  const late = memoryOf(samples.length - quarter, samples.length)
  return { memoryEarlyMb: early, memoryLateMb: late, memoryGrowthPercent: (late / early - 1) * 100 }
}
