import { clientLeft, type Exchange, sendWhole } from '../http/exchange.ts'
import type { Target } from '../http/target.ts'
import type { Refusal } from '../kernel/errors.ts'
import { modelAsked } from '../metering/request-facts.ts'
import { providerCredential } from '../providers/credentials.ts'
import { shapeError } from '../providers/error-shape.ts'
import { findEndpoint } from '../providers/find-endpoint.ts'
import type { Surface } from '../providers/surface.ts'
import { upstreamTarget } from '../providers/upstream-target.ts'
import { admit, checkKey } from './admit.ts'
import { answerStreamed } from './answer.ts'
import { forward } from './forward.ts'
import type { Gateway } from './gateway.ts'
import { identify, surfaceOf } from './identify.ts'
import { bodyForUpstream, type RequestBody, readBody, worthKeyCheck } from './read.ts'
import { explainFailure, refuseStored, refuseUnconfigured, refuseWebSocket } from './refusals.ts'
import type { Upstream } from './upstream.ts'
import { toUpstreamHeaders } from './upstream-headers.ts'

/**
 * The life of a proxied request, top to bottom. Only this file knows the order.
 *
 *   identify   who calls, on which surface                     → 400 401 501 503
 *   read       find model, limits and stream flag in the body  → 403 408 413
 *   admit      one store transaction decides                   → 401 503
 *   forward    provider credential in, bytes out               → 502
 *   answer     upstream's reply as it arrives, and our headers
 */
export async function handleRequest(exchange: Exchange, target: Target, gateway: Gateway): Promise<void> {
  const { method, headers } = exchange

  // identify
  const surface = surfaceOf(target.path, method, headers)
  const deny = (refusal: Refusal): void => denyCall(exchange, surface, refusal)
  const noWebSocket = refuseWebSocket(exchange)
  if (noWebSocket !== null) return deny(noWebSocket)
  const identity = identify(method, headers, gateway.identify)
  if (identity.kind === 'refused') return deny(identity.refusal)
  const upstream = gateway.upstreams[surface]
  if (identity.kind === 'key' && (upstream === null || worthKeyCheck(exchange))) {
    const badKey = await checkKey(identity.digest, gateway)
    if (badKey !== null) return deny(badKey)
  }
  if (upstream === null) return deny(refuseUnconfigured(surface))
  const call: ProxiedCall = { exchange, target, surface, upstream }
  // A preflight has no credential to check and none to pay with; browsers see upstream's own answer.
  if (identity.kind === 'preflight') return await forwardAndAnswer(call, { kind: 'none' }, 'unpaid', gateway)

  // read
  const endpoint = findEndpoint(surface, method, target.path)
  const noStored = refuseStored(endpoint, gateway.stateful)
  if (noStored !== null) return deny(noStored)
  const read = await readBody(exchange, endpoint, gateway.reading)
  if (read.kind === 'refused') return deny(read.refusal)
  if (read.kind === 'client_left') return

  try {
    // admit
    const admission = await admit(identity.digest, gateway)
    if (admission.kind === 'refused') return deny(admission.refusal)
    const model = modelAsked(read.facts)
    gateway.log.debug({ request: exchange.requestId, key: admission.keyId, model }, 'admitted')

    // forward and answer
    await forwardAndAnswer(call, read.body, 'paid', gateway)
  } finally {
    if (read.body.kind === 'held') read.body.held.dispose()
  }
}

interface ProxiedCall {
  readonly exchange: Exchange
  readonly target: Target
  readonly surface: Surface
  readonly upstream: Upstream
}

async function forwardAndAnswer(
  { exchange, target, surface, upstream }: ProxiedCall,
  body: RequestBody,
  payment: 'paid' | 'unpaid',
  gateway: Gateway,
): Promise<void> {
  const { clock, log, inFlight } = gateway
  const { res, names, requestId } = exchange
  if (clientLeft(exchange)) return

  const sentMs = clock.monotonicMs()
  const answer = answerStreamed(exchange, {
    addedHeaders: () => [
      names.requestId,
      requestId,
      names.upstreamMs,
      String(Math.round(clock.monotonicMs() - sentMs)),
    ],
    onDrain: () => upstreamCall.resume(),
  })
  const upstreamCall = forward(
    upstream.pool,
    {
      method: exchange.method,
      target: upstreamTarget(surface, upstream.url, target),
      headers: toUpstreamHeaders(exchange.headers, {
        credential:
          payment === 'paid' && upstream.key !== null ? providerCredential(surface, upstream.key) : null,
        host: upstream.url.host,
        contentLength: body.kind === 'none' ? null : body.lengthBytes,
        ownPrefix: names.prefix,
      }),
      body: bodyForUpstream(exchange, body),
    },
    answer,
  )
  res.once('close', () => {
    if (!res.writableFinished) upstreamCall.abandon()
  })

  inFlight.count += 1
  const end = await upstreamCall.ended
  inFlight.count -= 1
  log.debug(
    { request: requestId, end: end.kind, error: 'error' in end ? end.error.message : undefined },
    'ended',
  )
  if (end.kind === 'failed') denyCall(exchange, surface, explainFailure(end))
  if (end.kind === 'cut') answer.cut()
}

function denyCall(exchange: Exchange, surface: Surface, refusal: Refusal): void {
  sendWhole(exchange, shapeError(surface, refusal, exchange.requestId), { close: refusal.close === true })
}
