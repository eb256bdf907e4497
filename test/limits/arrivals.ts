import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import type { IncomingRequest } from '../../src/http/incoming-request.ts'
import { firstValue } from '../../src/http/raw-headers.ts'
import { nextTurn, withDeadline } from '../support/deadline.ts'

interface Arrived {
  readonly request: IncomingRequest
  readonly socket: Socket
}

const WHOLE = 'tollgate.request.whole'
const FINISHED = 'tollgate.reply.finished'

/** Clients cannot see waiting calls, so tests of their order watch the requests that arrive. */
export function watchArrivals(port: number) {
  const seen = new Map<string, Arrived[]>()
  const answeredRequests = new WeakSet<IncomingRequest>()
  let wake = Promise.withResolvers<void>()
  const onWhole = (message: unknown) => {
    const arrived = message as Arrived
    if (arrived.socket.localPort !== port) return
    const name = firstValue(arrived.request.head.headers, 'x-call')
    if (name !== undefined) seen.set(name, [...(seen.get(name) ?? []), arrived])
    wake.resolve()
    wake = Promise.withResolvers()
  }
  const onFinish = (message: unknown) => {
    answeredRequests.add((message as { request: IncomingRequest }).request)
    wake.resolve()
    wake = Promise.withResolvers()
  }
  subscribe(WHOLE, onWhole)
  subscribe(FINISHED, onFinish)

  /** Checks again whenever a request arrives or is answered. */
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
    countOf: (name: string) => seen.get(name)?.length ?? 0,
    /** Resolves when the gateway has the complete request of this name and has begun admission. */
    async arrived(name: string) {
      const arrived = await until(() => seen.get(name)?.at(-1), name)
      // No other event separates the end of a small body from the admission.
      await nextTurn()
      return arrived
    },
    async answered(name: string) {
      await until(() => seen.get(name)?.find(({ request }) => answeredRequests.has(request)), name)
    },
    stop() {
      unsubscribe(WHOLE, onWhole)
      unsubscribe(FINISHED, onFinish)
    },
  }
}
