import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import { limits } from '../kernel/limits.ts'
import { VERSION } from '../kernel/runtime.ts'
import { type EndpointRules, hostOf, permittedAddresses } from './endpoint-address.ts'

const WEBHOOK_ANSWER_BYTES_MAX = 64 * 1024

export interface WebhookRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The outcome of an attempt: the status of the answer, or why there was none. */
export type TryOutcome =
  | { readonly kind: 'answered'; readonly status: number }
  | { readonly kind: 'failed'; readonly reason: string }

/**
 * One attempt. The host is resolved once, its addresses are checked, and the connection uses only those, so that DNS
 * rebinding leads nowhere else. No redirects, no proxies of the environment, no reused connections. The attempt has a
 * timeout, the answer a size limit.
 */
export async function sendWebhook(
  request: WebhookRequest,
  rules: EndpointRules,
  stop: AbortSignal,
  tryMs: number = limits.webhookTryMs,
): Promise<TryOutcome> {
  const aborter = new AbortController()
  const { signal } = aborter
  const timer = setTimeout(() => aborter.abort(new Error(`no answer within ${tryMs / 1_000} s`)), tryMs)
  const onStop = () => aborter.abort(new Error('the gateway stopped'))
  stop.addEventListener('abort', onStop)
  try {
    if (stop.aborted) onStop()
    const url = new URL(request.url)
    // The endpoint may have been created before the configuration forbade http.
    if (url.protocol !== 'https:' && !rules.allowPrivate) throw new Error('http is not permitted any more')
    const addresses = await whileNotAborted(permittedAddresses(url, rules, signal), signal)
    const options = {
      method: 'POST',
      host: hostOf(url),
      port: url.port,
      path: url.pathname + url.search,
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(request.body),
        'user-agent': `Tollgate/${VERSION}`,
        ...request.headers,
      },
      signal,
      // If the host is an address, there is no lookup.
      lookup: (_host, { all }, found) => {
        const [first] = addresses
        if (all === true) found(null, [...addresses])
        else found(null, first?.address ?? '', first?.family)
      },
      // Verify certificates even if NODE_TLS_REJECT_UNAUTHORIZED turns that off.
      rejectUnauthorized: true,
    } satisfies RequestOptions & { rejectUnauthorized: boolean }
    return { kind: 'answered', status: await statusOf(await openRequest(url, options), request.body) }
  } catch (error) {
    return { kind: 'failed', reason: reasonOf(error, signal) }
  } finally {
    clearTimeout(timer)
    stop.removeEventListener('abort', onStop)
  }
}

/** Loads the HTTP client with the first webhook. A separate agent has no proxy and reuses no connection. */
async function openRequest(url: URL, options: RequestOptions): Promise<ClientRequest> {
  const { request, Agent } = await (url.protocol === 'https:' ? import('node:https') : import('node:http'))
  return request({ ...options, agent: new Agent({ keepAlive: false }) })
}

/** The status decides the outcome. The rest of the answer is read so that the receiver can finish it without an error. */
function statusOf(request: ClientRequest, body: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let status: number | null = null
    const end = (error: Error) => {
      if (status === null) reject(error)
      else resolve(status)
      request.destroy()
    }
    request.on('error', end)
    request.on('close', () => end(new Error('the connection closed before an answer')))
    request.on('response', (answer: IncomingMessage) => {
      status = answer.statusCode ?? 0
      let bytes = 0
      answer.on('data', (chunk: Buffer) => {
        bytes += chunk.length
        if (bytes > WEBHOOK_ANSWER_BYTES_MAX) request.destroy()
      })
      answer.on('error', end)
    })
    request.end(body)
  })
}

function whileNotAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

function reasonOf(error: unknown, signal: AbortSignal): string {
  const cause = signal.aborted ? signal.reason : error
  // With several addresses, the error has one error per address and no message of its own.
  return (cause instanceof AggregateError ? cause.errors[0] : cause).message
}
