import { setTimeout as sleep } from 'node:timers/promises'
import { firstValue } from '../http/raw-headers.ts'
import { limits } from '../kernel/limits.ts'
import type { Meter, Metered } from '../metering/meter.ts'
import { providerCredential, upstreamTarget } from '../providers/surfaces.ts'
import { createMeter } from '../providers/usage/create-meter.ts'
import { forward } from './forward.ts'
import type { Upstream } from './upstream-pool.ts'

/** An id that can stand in a path as it is. */
const RESPONSE_ID = /^[A-Za-z0-9_-]{1,256}$/

/** Upstream may take a moment to close a response whose stream was cut. Pauses before each further question. */
const PAUSES_MS = [250, 750, 1_500, 2_500] as const

/**
 * What upstream itself says of a response that was cut and that it has stored. Null where it does not say: it does not
 * know the response, cannot be reached, or is still at work on it.
 */
export async function askForStored(id: string, upstream: Upstream): Promise<Metered | null> {
  if (!RESPONSE_ID.test(id)) return null
  for (const pauseMs of [0, ...PAUSES_MS]) {
    if (pauseMs > 0) await sleep(pauseMs)
    const stored = await ask(id, upstream)
    if (stored === null) return null
    if (stored.inputKnown && stored.outputKnown) return stored
    if (stored.usage.stopReason !== 'in_progress' && stored.usage.stopReason !== 'queued') return null
  }
  return null
}

async function ask(id: string, upstream: Upstream): Promise<Metered | null> {
  const { url, key } = upstream
  let meter: Meter | null = null
  const call = forward(
    upstream.pool,
    {
      method: 'GET',
      target: upstreamTarget('chat', url, { path: `/v1/responses/${id}`, query: '' }),
      headers: [
        ...['host', url.host],
        ...(key === null ? [] : providerCredential('chat', key)),
        ...['accept', 'application/json', 'accept-encoding', 'identity'],
      ],
      body: null,
    },
    {
      head({ status, headers }) {
        const contentType = firstValue(headers, 'content-type')
        if (status === 200) meter = createMeter('responses', { status, contentType })
      },
      data(chunk) {
        meter?.write(chunk)
        return true
      },
    },
  )
  const timer = setTimeout(() => call.abandon(), limits.storedAnswerMs)
  const end = await call.ended
  clearTimeout(timer)
  return end.kind === 'complete' ? ((meter as Meter | null)?.end(true) ?? null) : null
}
