import type { Subject } from './subject.ts'

/** Nothing in between: what the load and the upstream take by themselves. */
export const direct: Subject = {
  name: 'direct',
  start: async ({ upstreamUrl }) => ({
    urls: [upstreamUrl],
    headers: () => [],
    pids: () => [],
    stop: async () => {},
  }),
}
