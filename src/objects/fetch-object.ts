import { setTimeout as sleep } from 'node:timers/promises'
import { firstValue } from '../http/raw-headers.ts'
import { callUpstream, type Upstream } from '../http/upstream-connection.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import type { Meter, Metered } from '../metering/meter.ts'
import { providerCredential } from '../providers/credentials.ts'
import { pathOf } from '../providers/deferred-kinds.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import { createMeter, SURFACES, upstreamTarget } from '../providers/surfaces.ts'

/** Requests of the gateway itself: it asks upstream for stored objects and their results. No key pays for them. */

const RESULTS_IDLE_MS = 60_000

const STORED_ANSWER_MS = 5_000
const STORED_TOTAL_MS = 15_000

interface UpstreamFetch {
  readonly surface: Surface
  readonly upstream: Upstream
  readonly path: string
  readonly idleMs: number
  /** Limit for the whole answer: an upstream that trickles bytes must not occupy a poll forever. */
  readonly totalMs?: number
  take(contentType: string): (chunk: Buffer) => void
}

interface ObjectAnswer {
  readonly status: number
  readonly retryAfterMs: number | null
}

const NO_ANSWER: ObjectAnswer = { status: 0, retryAfterMs: null }

/** Sends a GET. Status 0: there was no complete answer. */
async function fetchPath(request: UpstreamFetch): Promise<ObjectAnswer> {
  const { surface, upstream, path, idleMs, totalMs, take } = request
  const { url, key, fixedHeaders, pool } = upstream
  let head = NO_ANSWER
  let takeChunk: ((chunk: Buffer) => void) | null = null
  const call = callUpstream(
    pool,
    {
      method: 'GET',
      target: upstreamTarget(surface, url, { path, query: '' }),
      host: url.host,
      headers: [
        ...(key === null ? [] : providerCredential(surface, key)),
        ...Object.entries(SURFACES[surface].upstream.ownHeaders).flat(),
        ...['accept', '*/*', 'accept-encoding', 'identity'],
        ...fixedHeaders,
      ],
      lengthBytes: null,
      body: null,
    },
    {
      head({ status, headers }) {
        if (status < 200) return
        head = { status, retryAfterMs: retryAfterMs(firstValue(headers, 'retry-after')) }
        if (status === 200) takeChunk = take(firstValue(headers, 'content-type') ?? '')
      },
      data(chunk) {
        timer.refresh()
        takeChunk?.(chunk)
        return true
      },
    },
  )
  const timer = setTimeout(() => call.abandon(), idleMs)
  const total = totalMs === undefined ? undefined : setTimeout(() => call.abandon(), totalMs)
  const end = await call.ended
  clearTimeout(timer)
  clearTimeout(total)
  return end.kind === 'complete' ? head : NO_ANSWER
}

/** `metered` is null unless the request succeeded. */
type UpstreamAnswer = ObjectAnswer & { readonly metered: Metered | null }

export async function fetchObject(
  surface: Surface,
  upstream: Upstream,
  path: string,
  reader: UsageReader,
): Promise<UpstreamAnswer> {
  let meter: Meter | null = null
  const head = await fetchPath({
    surface,
    upstream,
    path,
    idleMs: STORED_ANSWER_MS,
    totalMs: STORED_TOTAL_MS,
    take(contentType) {
      const created = createMeter(reader, contentType)
      meter = created
      return (chunk) => created.write(chunk)
    },
  })
  const metered = (meter as Meter | null)?.end(true) ?? null
  return { ...head, metered: head.status === 0 ? null : metered }
}

/** Pauses before each attempt: upstream may take a moment to finish a response whose stream was cut. */
const PAUSES_MS = [0, 250, 750, 1_500, 2_500] as const

/** The usage of a stored response. `running`: not stated yet. `missing`: not found. `unstated`: ended without usage. */
export async function fetchStoredResponse(
  id: string,
  upstream: Upstream,
): Promise<Metered | 'running' | 'missing' | 'unstated'> {
  for (const pauseMs of PAUSES_MS) {
    if (pauseMs > 0) await sleep(pauseMs)
    const { metered: stored } = await fetchObject('chat', upstream, pathOf('response', id), 'responses')
    if (stored === null) return 'missing'
    if (stored.inputKnown && stored.outputKnown) return stored
    if (stored.usage.stopReason !== 'in_progress' && stored.usage.stopReason !== 'queued') return 'unstated'
  }
  return 'running'
}

export async function fetchResults(
  surface: Surface,
  upstream: Upstream,
  path: string,
  take: (chunk: Buffer) => void,
): Promise<'read' | 'gone' | 'failed'> {
  const { status } = await fetchPath({ surface, upstream, path, idleMs: RESULTS_IDLE_MS, take: () => take })
  if (status === 200) return 'read'
  return status === 404 ? 'gone' : 'failed'
}

function retryAfterMs(value: string | undefined): number | null {
  return value !== undefined && /^\s*\d{1,6}\s*$/.test(value) ? Number(value) * 1_000 : null
}
