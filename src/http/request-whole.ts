import { type EgressRules, routeTo } from './egress.ts'
import type { RawHeaders } from './raw-headers.ts'
import { type UpstreamBody, UpstreamBroke } from './upstream-call.ts'
import { callUpstream, UpstreamPool } from './upstream-connection.ts'

export interface WholeRequest {
  readonly url: URL
  readonly method: string
  readonly headers: RawHeaders
  readonly body?: UpstreamBody
}

interface WholeAnswer {
  readonly status: number
  readonly headers: RawHeaders
  /** The beginning of the body, if it is longer than `bytesMax`. */
  readonly body: Buffer
}

interface AnswerLimits {
  readonly answerMs: number
  readonly bytesMax: number
}

/** One request of the gateway itself, on its own connection. Redirects are not followed. Throws if no answer comes. */
export async function requestWhole(
  { url, method, headers, body = null }: WholeRequest,
  egress: EgressRules,
  { answerMs, bytesMax }: AnswerLimits,
  stop?: AbortSignal,
): Promise<WholeAnswer> {
  const pool = new UpstreamPool(routeTo(url, egress), () => {})
  const chunks: Buffer[] = []
  let head: Pick<WholeAnswer, 'status' | 'headers'> | null = null
  let bytesLeft = bytesMax
  const target = url.pathname + url.search
  const call = callUpstream(
    pool,
    { method, target, host: url.host, headers, lengthBytes: null, body },
    {
      head(received) {
        if (received.status >= 200) head = received
      },
      data(chunk) {
        chunks.push(Buffer.from(chunk.subarray(0, bytesLeft)))
        bytesLeft = Math.max(0, bytesLeft - chunk.length)
        if (bytesLeft === 0) call.abandon()
        return true
      },
    },
  )
  const abandon = () => call.abandon()
  const timer = setTimeout(abandon, answerMs)
  stop?.addEventListener('abort', abandon)
  if (stop?.aborted === true) abandon()
  const end = await call.ended
  clearTimeout(timer)
  stop?.removeEventListener('abort', abandon)
  pool.destroy()
  if (head !== null && (end.kind === 'complete' || bytesLeft === 0))
    return { ...(head as Pick<WholeAnswer, 'status' | 'headers'>), body: Buffer.concat(chunks) }
  if ('error' in end) throw end.error
  throw new UpstreamBroke('UPSTREAM_TIMEOUT', `no answer within ${Number((answerMs / 1_000).toFixed(1))} s`)
}
