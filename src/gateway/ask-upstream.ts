import { firstValue } from '../http/raw-headers.ts'
import { limits } from '../kernel/limits.ts'
import type { Surface } from '../kernel/surface.ts'
import type { Meter, Metered } from '../metering/meter.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import { providerCredential, upstreamTarget } from '../providers/surfaces.ts'
import { createMeter } from '../providers/usage/create-meter.ts'
import { forward } from './forward.ts'
import type { Upstream } from './upstream-pool.ts'

/** An id that can stand in a path as it is. */
export const OBJECT_ID = /^[A-Za-z0-9_-]{1,256}$/

export type UpstreamAnswer =
  /** It came to its end. `metered` where it was a success. */
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly metered: Metered | null
      readonly retryAfterMs: number | null
    }
  | { readonly kind: 'failed' }

/**
 * A question of the gateway's own, for a bill: the object that a call has made. It goes to the configured upstream with the
 * configured key, whatever a body says, and carries nothing of a client. It is no call: no key pays for it.
 */
export async function askUpstream(
  surface: Surface,
  { url, key, pool }: Upstream,
  path: string,
  reader: UsageReader,
  headers: readonly string[] = [],
): Promise<UpstreamAnswer> {
  let answered: { readonly status: number; readonly retryAfter: string | undefined } | null = null
  let meter: Meter | null = null
  const call = forward(
    pool,
    {
      method: 'GET',
      target: upstreamTarget(surface, url, { path, query: '' }),
      headers: [
        ...['host', url.host],
        ...(key === null ? [] : providerCredential(surface, key)),
        ...['accept', 'application/json', 'accept-encoding', 'identity'],
        ...headers,
      ],
      body: null,
    },
    {
      head({ status, headers }) {
        if (status < 200) return
        answered = { status, retryAfter: firstValue(headers, 'retry-after') }
        const contentType = firstValue(headers, 'content-type')
        if (status === 200) meter = createMeter(reader, { status, contentType })
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
  const head = answered as { readonly status: number; readonly retryAfter: string | undefined } | null
  if (end.kind !== 'complete' || head === null) return { kind: 'failed' }
  const metered = (meter as Meter | null)?.end(true) ?? null
  return { kind: 'answered', status: head.status, metered, retryAfterMs: retryAfterMs(head.retryAfter) }
}

/** Seconds; the form with a date is not worth reading here. */
function retryAfterMs(value: string | undefined): number | null {
  return value !== undefined && /^\s*\d{1,6}\s*$/.test(value) ? Number(value) * 1_000 : null
}
