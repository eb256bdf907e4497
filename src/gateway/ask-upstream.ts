import { firstValue } from '../http/raw-headers.ts'
import { callUpstream } from '../http/upstream-call.ts'
import type { Upstream } from '../http/upstream-pool.ts'
import { limits } from '../kernel/limits.ts'
import type { Borrowed } from '../kernel/memory.ts'
import type { Surface } from '../kernel/surface.ts'
import { objectOf, scalars } from '../metering/json-place.ts'
import { JsonWalker } from '../metering/json-walker.ts'
import type { Meter, Metered } from '../metering/meter.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import { createMeter, providerCredential, SURFACES, upstreamTarget } from '../providers/surfaces.ts'
import { nameAt, objectAt } from '../providers/usage/reading.ts'

/** An id that can stand in a path as it is. */
export const OBJECT_ID = /^[A-Za-z0-9_-]{1,256}$/

interface Question {
  readonly surface: Surface
  readonly upstream: Upstream
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** How long upstream may be silent before the request has failed. */
  readonly idleMs: number
  /** Takes the bytes of a reply with status 200. */
  take(contentType: string | undefined): (chunk: Borrowed) => void
}

interface AnswerHead {
  readonly status: number
  readonly retryAfterMs: number | null
}

/**
 * A question of the gateway's own, for a bill: the object that a call has made, or its results. It goes to the configured
 * upstream with the configured key, whatever a body says, and carries nothing of a client. It is no call: no key pays for
 * it. Null where no answer came to its end.
 */
async function ask(question: Question): Promise<AnswerHead | null> {
  const { surface, method, path, idleMs } = question
  const { url, key, pool } = question.upstream
  let head: AnswerHead | null = null
  let take: ((chunk: Borrowed) => void) | null = null
  const call = callUpstream(
    pool,
    {
      method,
      target: upstreamTarget(surface, url, { path, query: '' }),
      headers: [
        ...['host', url.host],
        ...(key === null ? [] : providerCredential(surface, key)),
        ...Object.entries(SURFACES[surface].upstream.ownHeaders).flat(),
        ...['accept', '*/*', 'accept-encoding', 'identity'],
        ...(method === 'POST' ? ['content-length', '0'] : []),
      ],
      body: null,
    },
    {
      head({ status, headers }) {
        if (status < 200) return
        head = { status, retryAfterMs: retryAfterMs(firstValue(headers, 'retry-after')) }
        if (status === 200) take = question.take(firstValue(headers, 'content-type'))
      },
      data(chunk) {
        timer.refresh()
        take?.(chunk)
        return true
      },
    },
  )
  const timer = setTimeout(() => call.abandon(), idleMs)
  const end = await call.ended
  clearTimeout(timer)
  return end.kind === 'complete' ? (head as AnswerHead | null) : null
}

export type UpstreamAnswer =
  /** The reply came to its end. `metered`: of a success. */
  ({ readonly kind: 'answered'; readonly metered: Metered | null } & AnswerHead) | { readonly kind: 'failed' }

/** Asks for an object that a call has made, or for it to be cancelled. */
export async function askUpstream(
  surface: Surface,
  upstream: Upstream,
  path: string,
  reader: UsageReader,
  method: 'GET' | 'POST' = 'GET',
): Promise<UpstreamAnswer> {
  let meter: Meter | null = null
  const head = await ask({
    ...{ surface, upstream, method, path, idleMs: limits.storedAnswerMs },
    take(contentType) {
      const made = createMeter(reader, { status: 200, contentType })
      meter = made
      return (chunk) => made.write(chunk)
    },
  })
  if (head === null) return { kind: 'failed' }
  return { kind: 'answered', ...head, metered: (meter as Meter | null)?.end(true) ?? null }
}

/** Reads the results of a batch, of any length. Whether there were some, and they came to their end. */
export async function askForResults(
  surface: Surface,
  upstream: Upstream,
  path: string,
  take: (chunk: Borrowed) => void,
): Promise<boolean> {
  const question = { surface, upstream, method: 'GET', path, idleMs: limits.resultsIdleMs } as const
  return (await ask({ ...question, take: () => take }))?.status === 200
}

/** What a file was made for, as upstream says; null where it does not say. */
export async function askForPurpose(
  surface: Surface,
  upstream: Upstream,
  id: string,
): Promise<string | null> {
  const file = new JsonWalker(objectOf(scalars('purpose')), { tolerant: true })
  const path = `/v1/files/${id}`
  const question = { surface, upstream, method: 'GET', path, idleMs: limits.storedAnswerMs } as const
  const head = await ask({ ...question, take: () => (chunk) => file.write(chunk) })
  const shown = head?.status === 200 ? file.end() : null
  return shown?.kind === 'object' ? nameAt(objectAt(shown.picked.value)['purpose']) : null
}

/** In seconds; the form with a date is not read. */
function retryAfterMs(value: string | undefined): number | null {
  return value !== undefined && /^\s*\d{1,6}\s*$/.test(value) ? Number(value) * 1_000 : null
}
