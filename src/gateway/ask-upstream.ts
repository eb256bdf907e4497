import { setTimeout as sleep } from 'node:timers/promises'
import { firstValue } from '../http/raw-headers.ts'
import { callUpstream, type Upstream } from '../http/upstream-call.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import type { Meter, Metered } from '../metering/meter.ts'
import { pathOf } from '../providers/deferred-kinds.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import { createMeter, providerCredential, SURFACES, upstreamTarget } from '../providers/surfaces.ts'

const RESULTS_IDLE_MS = 60_000

const STORED_ANSWER_MS = 5_000
const STORED_TOTAL_MS = 15_000

interface Question {
  readonly surface: Surface
  readonly upstream: Upstream
  readonly path: string
  readonly idleMs: number
  /** How long the whole answer may take. An upstream that sends a byte now and then must not occupy a poll for ever. */
  readonly totalMs?: number
  take(contentType: string | undefined): (chunk: Buffer) => void
}

interface AnswerHead {
  readonly status: number
  readonly retryAfterMs: number | null
}

/**
 * A GET of the gateway's own, for a bill: an object that a call has created, or its results. It goes to the configured
 * upstream with the configured key, whatever a body says, and carries nothing of a client. It is not a call: no key pays
 * for it. Null if no answer came to its end.
 */
async function ask({ surface, upstream, path, idleMs, totalMs, take }: Question): Promise<AnswerHead | null> {
  const { url, key, pool } = upstream
  let head: AnswerHead | null = null
  let takeChunk: ((chunk: Buffer) => void) | null = null
  const call = callUpstream(
    pool,
    {
      method: 'GET',
      target: upstreamTarget(surface, url, { path, query: '' }),
      headers: [
        ...['host', url.host],
        ...(key === null ? [] : providerCredential(surface, key)),
        ...Object.entries(SURFACES[surface].upstream.ownHeaders).flat(),
        ...['accept', '*/*', 'accept-encoding', 'identity'],
      ],
      body: null,
    },
    {
      head({ status, headers }) {
        if (status < 200) return
        head = { status, retryAfterMs: retryAfterMs(firstValue(headers, 'retry-after')) }
        if (status === 200) takeChunk = take(firstValue(headers, 'content-type'))
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
  return end.kind === 'complete' ? (head as AnswerHead | null) : null
}

/** `metered`: of a success. Status 0: no answer came to its end. */
export type UpstreamAnswer = AnswerHead & { readonly metered: Metered | null }

const NO_ANSWER: UpstreamAnswer = { status: 0, retryAfterMs: null, metered: null }

export async function askUpstream(
  surface: Surface,
  upstream: Upstream,
  path: string,
  reader: UsageReader,
): Promise<UpstreamAnswer> {
  let meter: Meter | null = null
  const head = await ask({
    ...{ surface, upstream, path, idleMs: STORED_ANSWER_MS, totalMs: STORED_TOTAL_MS },
    take(contentType) {
      const made = createMeter(reader, { status: 200, contentType })
      meter = made
      return (chunk) => made.write(chunk)
    },
  })
  if (head === null) return NO_ANSWER
  return { ...head, metered: (meter as Meter | null)?.end(true) ?? null }
}

/** Pauses before each question: upstream may take a moment to close a response whose stream was cut. */
const PAUSES_MS = [0, 250, 750, 1_500, 2_500] as const

/**
 * The usage that upstream states of a stored response. `running`: it states it later. `missing`: upstream does not show it.
 * `silent`: it has ended and states none.
 */
export async function askForStored(
  id: string,
  upstream: Upstream,
): Promise<Metered | 'running' | 'missing' | 'silent'> {
  for (const pauseMs of PAUSES_MS) {
    if (pauseMs > 0) await sleep(pauseMs)
    const { metered: stored } = await askUpstream('chat', upstream, pathOf('response', id), 'responses')
    if (stored === null) return 'missing'
    if (stored.inputKnown && stored.outputKnown) return stored
    if (stored.usage.stopReason !== 'in_progress' && stored.usage.stopReason !== 'queued') return 'silent'
  }
  return 'running'
}

export async function askForResults(
  surface: Surface,
  upstream: Upstream,
  path: string,
  take: (chunk: Buffer) => void,
): Promise<'read' | 'gone' | 'failed'> {
  const head = await ask({ surface, upstream, path, idleMs: RESULTS_IDLE_MS, take: () => take })
  if (head?.status === 200) return 'read'
  return head?.status === 404 ? 'gone' : 'failed'
}

function retryAfterMs(value: string | undefined): number | null {
  return value !== undefined && /^\s*\d{1,6}\s*$/.test(value) ? Number(value) * 1_000 : null
}
