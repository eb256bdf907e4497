import { firstValue } from '../http/raw-headers.ts'
import { limits } from '../kernel/limits.ts'
import type { Borrowed } from '../kernel/read-buffer.ts'
import type { Surface } from '../kernel/surface.ts'
import type { Meter, Metered } from '../metering/meter.ts'
import { filePurpose } from '../providers/batch-file.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import { providerCredential, SURFACES, upstreamTarget } from '../providers/surfaces.ts'
import { createMeter } from '../providers/usage/create-meter.ts'
import { forward } from './forward.ts'
import type { Upstream } from './upstream-pool.ts'

/** An id that can stand in a path as it is. */
export const OBJECT_ID = /^[A-Za-z0-9_-]{1,256}$/

interface Question {
  readonly surface: Surface
  readonly upstream: Upstream
  readonly method: 'GET' | 'POST'
  readonly path: string
  /** So long it may take in all, or bring nothing where it may be long. Then it has failed. */
  readonly timeoutMs: number
  readonly isLong: boolean
  /** What takes the bytes of a 200. */
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
  const { surface, method, path, timeoutMs, isLong } = question
  const { url, key, pool } = question.upstream
  let head: AnswerHead | null = null
  let take: ((chunk: Borrowed) => void) | null = null
  const call = forward(
    pool,
    {
      method,
      target: upstreamTarget(surface, url, { path, query: '' }),
      headers: [
        ...['host', url.host],
        ...(key === null ? [] : providerCredential(surface, key)),
        ...Object.entries(SURFACES[surface].upstream.modelList.headers).flat(),
        ...(path.startsWith('/v1/threads/') ? BETA : []),
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
        if (isLong) timer.refresh()
        take?.(chunk)
        return true
      },
    },
  )
  const timer = setTimeout(() => call.abandon(), timeoutMs)
  const end = await call.ended
  clearTimeout(timer)
  return end.kind === 'complete' ? (head as AnswerHead | null) : null
}

export type UpstreamAnswer =
  /** It came to its end. `metered` where it was a success. */
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
    ...{ surface, upstream, method, path, timeoutMs: limits.storedAnswerMs, isLong: true },
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
  const timeoutMs = limits.resultsIdleMs
  const question = { surface, upstream, method: 'GET', path, timeoutMs, isLong: true } as const
  return (await ask({ ...question, take: () => take }))?.status === 200
}

/** What a file was made for, as upstream says; null where it does not say. */
export async function askForPurpose(
  surface: Surface,
  upstream: Upstream,
  id: string,
): Promise<string | null> {
  const chunks: Buffer[] = []
  const question = { surface, upstream, method: 'GET', path: `/v1/files/${id}`, isLong: false } as const
  const take = (chunk: Borrowed) => void chunks.push(Buffer.from(chunk))
  const head = await ask({ ...question, timeoutMs: limits.storedAnswerMs, take: () => take })
  return head?.status === 200 ? filePurpose(Buffer.concat(chunks)) : null
}

/** Without it upstream shows nothing of threads. */
const BETA = ['openai-beta', 'assistants=v2']

/** Seconds; the form with a date is not worth reading here. */
function retryAfterMs(value: string | undefined): number | null {
  return value !== undefined && /^\s*\d{1,6}\s*$/.test(value) ? Number(value) * 1_000 : null
}
