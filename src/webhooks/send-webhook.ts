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

/** The outcome of a try: the status of the answer, or why there was none. */
export type TryOutcome =
  | { readonly kind: 'answered'; readonly status: number }
  | { readonly kind: 'failed'; readonly reason: string }

/**
 * One try. The host is resolved once and its addresses are judged; the connection gets those and no others, so that a
 * name that changes after the check leads nowhere else. Redirects are not followed, no proxy of the environment is used,
 * no connection is reused. The whole attempt has a timeout, and the answer a limit of size.
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
    // The endpoint may have been made before the configuration forbade http.
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
      // A host that is an address is connected to without a look-up.
      lookup: (_host, { all }, found) => {
        const [first] = addresses
        if (all === true) found(null, [...addresses])
        else found(null, first?.address ?? '', first?.family)
      },
      // Certificates are checked even where NODE_TLS_REJECT_UNAUTHORIZED turns that off.
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

/** The HTTP client is loaded with the first webhook. An agent of its own has no proxy and reuses no connection. */
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
  // An error of happy eyeballs has a message for each address tried, and none of its own.
  return (cause instanceof AggregateError ? cause.errors[0] : cause).message
}
