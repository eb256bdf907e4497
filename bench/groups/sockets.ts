import { fileURLToPath } from 'node:url'
import type { SocketsJob } from '../job.ts'
import { eventsNeeded } from '../load-streams.ts'
import { runLoad, targetOf, withSubject } from '../measure.ts'
import { bytePipe } from '../subjects/pipe.ts'
import type { Subject } from '../subjects/subject.ts'
import { tollgate } from '../subjects/tollgate.ts'
import type { Case, Group, Plan } from './group.ts'

export const IDLE_SOCKETS = 'sockets-idle'
/** Sockets that are each in one turn that outlasts the measuring, like the streams of HTTP. */
export const STREAMING_SOCKETS = 'sockets-streaming'
/** Sockets that have one turn after the other. */
const BUSY_SOCKETS = 'sockets-busy'

const COLLECTOR = fileURLToPath(new URL('../collect-garbage.ts', import.meta.url))
const COLLECTS_ON_SIGNAL = ['--expose-gc', '--import', COLLECTOR]

const OPENING_SECONDS = 10

/** WebSockets of `/v1/responses`, beside a pipe that passes bytes between two sockets. */
export function socketGroups(plan: Plan): Group[] {
  const { sizes } = plan
  const { socketsIdle, socketsBusy, eventsPerTurn, eventsPerSecond } = sizes
  const withDirect = [...plan.subjects.filter(({ name }) => name === 'direct'), ...subjectsOf(plan, [])]
  return [
    {
      title: `${socketsIdle} idle WebSockets`,
      cases: subjectsOf(plan, COLLECTS_ON_SIGNAL).map((subject) =>
        socketCase(plan, IDLE_SOCKETS, { kind: 'idle-sockets', sockets: socketsIdle }, subject),
      ),
    },
    {
      title: `${socketsBusy} WebSockets, a turn each, ${eventsPerSecond} events a second`,
      cases: withDirect.map((subject) =>
        socketCase(plan, STREAMING_SOCKETS, { kind: 'streaming-sockets', sockets: socketsBusy }, subject),
      ),
    },
    {
      title: `${socketsBusy} WebSockets, turns of ${eventsPerTurn} events, ${eventsPerSecond} a second each`,
      cases: withDirect.map((subject) =>
        socketCase(plan, BUSY_SOCKETS, { kind: 'busy-sockets', sockets: socketsBusy }, subject),
      ),
    },
  ]
}

/** The pipe, if it was asked for, and Tollgate in one revision or in two. */
function subjectsOf({ subjects, tollgates }: Plan, nodeArgs: readonly string[]): Subject[] {
  const isPipeAsked = subjects.some(({ name }) => name === 'pipe')
  return [
    ...(isPipeAsked ? [bytePipe(nodeArgs)] : []),
    ...tollgates.map((parts) => tollgate({ ...parts, nodeArgs })),
  ]
}

function socketCase(
  { sizes, cores, warmUpSeconds, seconds }: Plan,
  workload: string,
  what: Pick<SocketsJob, 'kind' | 'sockets'>,
  subject: Subject,
): Case {
  const { requestBytes: replyBytes, eventsPerSecond } = sizes
  const rampSeconds = Math.max(0.5, what.sockets / sizes.streamsOpenedPerSecond)
  const times = { rampSeconds, warmUpSeconds, seconds }
  // The first sockets of a process open slowly, and none of their turns may end during the measuring.
  const openSeconds = rampSeconds + OPENING_SECONDS
  const eventsPerTurn =
    what.kind === 'streaming-sockets'
      ? eventsNeeded({ ...times, rampSeconds: openSeconds }, eventsPerSecond)
      : sizes.eventsPerTurn
  return {
    workload,
    subject: subject.name,
    run: () =>
      withSubject(subject, { replyBytes, events: 0, eventsPerSecond }, cores, (running, upstream) => {
        const target = targetOf(running, upstream, 'chat')
        const job = { ...target, ...what, ...times, eventsPerTurn }
        return runLoad(job, cores.load)
      }),
  }
}
