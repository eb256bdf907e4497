import { once } from 'node:events'
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http'
import { type EgressRules, routeTo } from '../http/egress.ts'
import { requestWhole } from '../http/request-whole.ts'
import { limits } from '../kernel/limits.ts'
import { VERSION } from '../kernel/runtime.ts'
import { type EndpointRules, hostOf, permittedAddresses } from './endpoint-address.ts'

const WEBHOOK_ANSWER_BYTES_MAX = 64 * 1024
const STORED_ANSWER_BYTES = 2_048

/** The outcome of an attempt: the answer's status and the beginning of its body, or why there was none. */
export type AttemptOutcome =
  | { readonly kind: 'answered'; readonly status: number; readonly body: string }
  | { readonly kind: 'failed'; readonly reason: string }

/**
 * Makes one attempt. The host is resolved once, and the connection uses only the checked addresses, so that DNS
 * rebinding cannot redirect it. Redirects are not followed. A proxy is used only with `webhooks.proxy`. The attempt has a
 * timeout, and the answer a size limit.
 */
export async function sendWebhook(
  request: Readonly<{ url: string; headers: Record<string, string>; body: string }>,
  rules: EndpointRules,
  stop: AbortSignal,
  tryMs: number = limits.webhookTryMs,
): Promise<AttemptOutcome> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(tryMs)])
  try {
    const url = new URL(request.url)
    // The endpoint may have been created before the configuration forbade http.
    if (url.protocol !== 'https:' && !rules.allowPrivate)
      throw new Error('http URLs are no longer permitted (webhooks.allow_private)')
    if (rules.proxied != null && routeTo(url, rules.proxied).proxy !== null)
      return await sendThroughProxy(request, url, rules.proxied, tryMs, signal)
    const addresses = await Promise.race([permittedAddresses(url, rules, signal), rejectOnAbort(signal)])
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
      // Node does not call this if the host is an address.
      lookup: (_host, { all }, found) => {
        const [first] = addresses
        if (all === true) found(null, [...addresses])
        else found(null, first?.address ?? '', first?.family)
      },
      // Verify certificates even if NODE_TLS_REJECT_UNAUTHORIZED turns that off.
      rejectUnauthorized: true,
    } satisfies RequestOptions & { rejectUnauthorized: boolean }
    return await answerOf(await openRequest(url, options), request.body)
  } catch (error) {
    if (stop.aborted) return { kind: 'failed', reason: 'the gateway stopped' }
    if (signal.aborted) return { kind: 'failed', reason: `no answer within ${tryMs / 1_000} s` }
    // With several addresses, the error has one error per address and no message of its own.
    const cause = error instanceof AggregateError ? error.errors[0] : error
    return { kind: 'failed', reason: (cause as Error).message }
  }
}

/** The proxy looks the host up, so it must refuse private addresses. */
async function sendThroughProxy(
  { headers, body }: Readonly<{ headers: Record<string, string>; body: string }>,
  url: URL,
  egress: EgressRules,
  tryMs: number,
  stop: AbortSignal,
): Promise<AttemptOutcome> {
  const own = ['content-type', 'application/json', 'user-agent', `Tollgate/${VERSION}`]
  const lines = [...own, ...Object.entries(headers).flat()]
  const answer = await requestWhole(
    { url, method: 'POST', headers: lines, body: [Buffer.from(body)] },
    egress,
    { answerMs: tryMs, bytesMax: STORED_ANSWER_BYTES },
    stop,
  )
  return { kind: 'answered', status: answer.status, body: storedText(answer.body) }
}

/** Rejects when the signal aborts, because a DNS lookup may not end then. */
async function rejectOnAbort(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, 'abort')
  throw signal.reason
}

/** Loads the HTTP client with the first webhook. Uses its own agent, because the global one may have a proxy. */
async function openRequest(url: URL, options: RequestOptions): Promise<ClientRequest> {
  const { request, Agent } = await (url.protocol === 'https:' ? import('node:https') : import('node:http'))
  return request({ ...options, agent: new Agent({ keepAlive: false }) })
}

/** The status decides the outcome. The body is read too, so that the receiver sees no broken connection. */
function answerOf(request: ClientRequest, body: string): Promise<AttemptOutcome> {
  return new Promise((resolve, reject) => {
    let status: number | null = null
    const stored: Buffer[] = []
    const end = (error: Error) => {
      if (status === null) reject(error)
      else resolve({ kind: 'answered', status, body: storedText(Buffer.concat(stored)) })
      request.destroy()
    }
    request.on('error', end)
    request.on('close', () => end(new Error('the connection closed before an answer')))
    request.on('response', (answer: IncomingMessage) => {
      status = answer.statusCode ?? 0
      let bytes = 0
      answer.on('data', (chunk: Buffer) => {
        if (bytes < STORED_ANSWER_BYTES) stored.push(chunk.subarray(0, STORED_ANSWER_BYTES - bytes))
        bytes += chunk.length
        if (bytes > WEBHOOK_ANSWER_BYTES_MAX) request.destroy()
      })
      answer.on('error', end)
    })
    request.end(body)
  })
}

/** UTF-8 without control characters other than tabs and line feeds: PostgreSQL stores no NUL, and people read it. */
function storedText(bytes: Buffer): string {
  // As a stream, so that a character cut at the end is left out.
  const text = new TextDecoder().decode(bytes, { stream: true })
  return text.replaceAll('\r\n', '\n').replaceAll(/[^\P{C}\n\t]/gu, '\ufffd')
}
