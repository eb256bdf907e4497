import { eventsNeeded } from '../load-streams.ts'
import { runLoad, targetOf, withSubject } from '../measure.ts'
import { nodesOnPostgres } from '../subjects/nodes.ts'
import type { Subject } from '../subjects/subject.ts'
import type { Surface } from '../wire-text.ts'
import type { Case, Group, Plan } from './group.ts'

interface StreamsWorkload {
  readonly name: string
  readonly title: string
  readonly surface: Surface
  readonly streams: number
}

export function streamWorkloads({ sizes }: Pick<Plan, 'sizes'>): StreamsWorkload[] {
  const { streamsFew, streamsMany, eventsPerSecond } = sizes
  const each = `streams, ${eventsPerSecond} events a second each`
  return [
    {
      name: `streams-${streamsFew}`,
      title: `${streamsFew} ${each}`,
      surface: 'messages',
      streams: streamsFew,
    },
    {
      name: `streams-${streamsMany}`,
      title: `${streamsMany} ${each}`,
      surface: 'messages',
      streams: streamsMany,
    },
    {
      name: `chat-${streamsFew}`,
      title: `${streamsFew} chat ${each}, with the usage cut out`,
      surface: 'chat',
      streams: streamsFew,
    },
  ]
}

/**
 * Several processes on one port. Processes that share a core show what an event costs and how the kernel spreads the streams.
 * On a core each, they carry as much more as one by these figures.
 */
export function onePortGroup(plan: Plan): Group {
  const [few] = streamWorkloads(plan)
  if (few === undefined) throw new Error('no workload has streams')
  const workload = { ...few, name: `one-port-${few.streams}` }
  return {
    title: `${few.title}, by processes on one port`,
    cases: plan.tollgates.flatMap((parts) =>
      [1, 2].map((count) => streamCase(plan, workload, nodesOnPostgres(parts, count, { onOnePort: true }))),
    ),
  }
}

/** The delay of each event, and the processor time and memory of a stream. */
export function streamGroups(plan: Plan): Group[] {
  return streamWorkloads(plan).map((workload) => ({
    title: workload.title,
    cases: plan.subjects.map((subject) => streamCase(plan, workload, subject)),
  }))
}

function streamCase(plan: Plan, workload: StreamsWorkload, subject: Subject): Case {
  const { sizes, seconds, warmUpSeconds, cores } = plan
  const rampSeconds = Math.max(0.5, workload.streams / sizes.streamsOpenedPerSecond)
  const eventsPerStream = eventsNeeded({ rampSeconds, warmUpSeconds, seconds }, sizes.eventsPerSecond)
  const upstreamPlan = {
    replyBytes: sizes.requestBytes,
    events: eventsPerStream,
    eventsPerSecond: sizes.eventsPerSecond,
  }
  return {
    workload: workload.name,
    subject: subject.name,
    run: () =>
      withSubject(subject, upstreamPlan, cores, (running, upstream) =>
        runLoad(
          {
            ...targetOf(running, upstream, workload.surface),
            kind: 'streams',
            surface: workload.surface,
            streams: workload.streams,
            eventsPerStream,
            rampSeconds,
            warmUpSeconds,
            seconds,
          },
          cores.load,
        ),
      ),
  }
}
