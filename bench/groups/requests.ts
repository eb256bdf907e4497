import { runLoad, targetOf, withSubject } from '../measure.ts'
import type { UpstreamPlan } from '../upstream.ts'
import type { Group, Plan } from './group.ts'

interface RequestsWorkload {
  readonly name: string
  readonly title: string
  readonly callers: number
  readonly requestBytes: number
  readonly replyBytes: number
  readonly warmUpRequests: number
  readonly warmUpCallers: number
}

export function requestWorkloads({ sizes }: Pick<Plan, 'sizes'>): RequestsWorkload[] {
  const { callers, requestBytes, largeBytes, largeCallers } = sizes
  const small = callers.map((count) => ({
    name: `2kB-${count}`,
    title: `2 kB requests, ${count === 1 ? 'one caller' : `${count} callers`}`,
    callers: count,
    requestBytes,
    replyBytes: requestBytes,
    warmUpRequests: sizes.warmUpRequests,
    warmUpCallers: callers[1],
  }))
  const large = {
    callers: largeCallers,
    requestBytes,
    replyBytes: requestBytes,
    warmUpRequests: sizes.warmUpRequests / 20,
    warmUpCallers: largeCallers,
  }
  return [
    ...small,
    {
      ...large,
      name: '1MB-request',
      title: `1 MB requests, ${largeCallers} callers`,
      requestBytes: largeBytes,
    },
    { ...large, name: '1MB-reply', title: `1 MB replies, ${largeCallers} callers`, replyBytes: largeBytes },
  ]
}

/** Requests per second and their latency, in a closed loop. */
export function requestGroups(plan: Plan): Group[] {
  return requestWorkloads(plan).map((workload) => ({
    title: workload.title,
    cases: plan.subjects.map((subject) => ({
      workload: workload.name,
      subject: subject.name,
      run: () =>
        withSubject(subject, wholeReplies(workload.replyBytes), plan.cores, (running, upstream) =>
          runLoad(
            {
              ...targetOf(running, upstream, 'messages'),
              kind: 'requests',
              surface: 'messages',
              requestBytes: workload.requestBytes,
              callers: workload.callers,
              warmUpSeconds: plan.warmUpSeconds,
              warmUpRequests: workload.warmUpRequests,
              warmUpCallers: workload.warmUpCallers,
              seconds: plan.seconds,
            },
            plan.cores.load,
          ),
        ),
    })),
  }))
}

export function wholeReplies(replyBytes: number): UpstreamPlan {
  return { replyBytes, events: 1, eventsPerSecond: 20 }
}
