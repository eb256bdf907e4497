import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { nextTurn, withDeadline } from '../support/deadline.ts'

/**
 * What arrives at a server of this process, seen from beside. A call that waits for room shows nothing to anybody, so
 * that tests of the order of arrival need to know when a request has come.
 */
export interface Arrivals {
  /** How many requests have come with this name in the header `x-call`. */
  countOf(name: string): number
  /** Resolves when the gateway has the whole request whose header `x-call` is this, and has begun to decide about it. */
  arrived(name: string): Promise<IncomingMessage>
  /** Resolves when the first request of this name has its whole answer. */
  answered(name: string): Promise<void>
  stop(): void
}

const STARTED = 'http.server.request.start'
const FINISHED = 'http.server.response.finish'

export function watchArrivals(port: number): Arrivals {
  const seen = new Map<string, IncomingMessage[]>()
  const answeredRequests = new WeakSet<IncomingMessage>()
  let wake = Promise.withResolvers<void>()
  const onStart = (message: unknown) => {
    const { request } = message as { request: IncomingMessage }
    if (request.socket.localPort !== port) return
    const name = request.headers['x-call']
    if (typeof name === 'string') seen.set(name, [...(seen.get(name) ?? []), request])
    wake.resolve()
    wake = Promise.withResolvers()
  }
  const onFinish = (message: unknown) => {
    answeredRequests.add((message as { request: IncomingMessage }).request)
    wake.resolve()
    wake = Promise.withResolvers()
  }
  subscribe(STARTED, onStart)
  subscribe(FINISHED, onFinish)

  /** Looks again whenever something has happened. */
  async function until<T>(look: () => T | undefined, name: string): Promise<T> {
    const found = async () => {
      for (;;) {
        const value = look()
        if (value !== undefined) return value
        await wake.promise
      }
    }
    return await withDeadline(found(), () => `${name} is not seen`)
  }

  return {
    countOf: (name) => seen.get(name)?.length ?? 0,
    async arrived(name) {
      const request = await until(() => seen.get(name)?.at(-1), name)
      if (!request.readableEnded) await once(request, 'end')
      // Between the end of a small body and the admission there is no other event.
      await nextTurn()
      return request
    },
    async answered(name) {
      await until(() => seen.get(name)?.find((request) => answeredRequests.has(request)), name)
    },
    stop() {
      unsubscribe(STARTED, onStart)
      unsubscribe(FINISHED, onFinish)
    },
  }
}
