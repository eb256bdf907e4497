import type { Subject } from './subject.ts'

/** No gateway in between: shows the time that the load and the upstream take by themselves. */
export const direct: Subject = {
  name: 'direct',
  start: async ({ upstreamUrl }) => ({
    urls: [upstreamUrl],
    headers: () => [],
    pids: () => [],
    stop: async () => {},
  }),
}
