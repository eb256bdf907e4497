import { Readable } from 'node:stream'
import { clientLeft, type Exchange } from '../http/exchange.ts'
import type { Target } from '../http/judge-head.ts'
import type { Borrowed } from '../kernel/read-buffer.ts'
import type { Admission } from '../ledger/call.ts'
import type { Metered } from '../metering/meter.ts'
import { modelAsked as modelIn } from '../metering/request-facts.ts'
import { ambiguityFor } from '../providers/ambiguity.ts'
import type { Endpoint } from '../providers/endpoint.ts'
import { findEndpoint } from '../providers/find-endpoint.ts'
import { namedModels } from '../providers/named-models.ts'
import type { Surface } from '../providers/surface.ts'
import { providerCredential, upstreamTarget } from '../providers/surfaces.ts'
import { admit, checkKey } from './admit.ts'
import { Answer } from './answer.ts'
import { askForStored } from './ask-for-stored.ts'
import { billCall, NOTHING_BILLED, withoutSecrets } from './bill-call.ts'
import { CarriedReply } from './carry-reply.ts'
import { deny } from './deny.ts'
import type { CountableRequest } from './estimate-usage.ts'
import { type Call, type CallEnd, forward } from './forward.ts'
import { toUpstreamHeaders } from './forwarded-headers.ts'
import type { Gateway } from './gateway.ts'
import { identify, surfaceOf } from './identify.ts'
import type { KeyShare } from './key-shares.ts'
import { Onlookers } from './onlookers.ts'
import { passPreflight } from './pass-preflight.ts'
import { prepareBody } from './prepare-body.ts'
import type { BillPlan } from './pricer.ts'
import { countable, type ReadBody, readBody, worthKeyCheck } from './read.ts'
import { readOnMs } from './read-on.ts'
import type { Sender } from './receive-body.ts'
import {
  explainFailure,
  refuseEndpoint,
  refuseTooManyCalls,
  refuseUnconfigured,
  refuseWebSocket,
} from './refusals.ts'
import { refuseCall } from './refuse-call.ts'
import type { Upstream } from './upstream-pool.ts'

/**
 * The life of a proxied request, top to bottom. Only this file knows the order.
 *
 *   identify   who calls, on which surface, with how many others   → 400 401 402 403 404 426 429 503
 *   read       find models, limits and stream flag in the body     → 401 402 408 413 503
 *   admit      one store transaction: key in force? models allowed? room under cap and credit?
 *              place the hold, or wait in line for calls in flight → 400 401 402 403 404 429 503
 *   forward    provider credential in, bytes out                   → 502
 *   observe    the meter looks at a view of each chunk of the reply
 *   settle     usage → price → one store transaction; closes the hold once, on every way out
 *   answer     upstream's reply, with the figures as headers or trailers
 */
export async function handleRequest(exchange: Exchange, target: Target, gateway: Gateway): Promise<void> {
  const { method, headers } = exchange

  // identify
  const surface = surfaceOf(target.path, method, headers)
  const noWebSocket = refuseWebSocket(exchange)
  if (noWebSocket !== null) return deny(exchange, surface, noWebSocket)
  const identity = identify(exchange, gateway.identify)
  if (identity.kind === 'refused') return deny(exchange, surface, identity.refusal)
  const upstream = gateway.upstreams[surface]
  // HEAD does what GET does.
  const endpoint = findEndpoint(surface, method === 'HEAD' ? 'GET' : method, target.path)
  const notServed = refuseEndpoint(endpoint, method, target.path, gateway)
  const isPaid = endpoint?.billing === 'metered'
  const keyFirst = worthKeyCheck(exchange)
  if (identity.kind === 'key' && (upstream === null || notServed !== null || keyFirst)) {
    const denial = await checkKey(identity.digest, isPaid && keyFirst, exchange, gateway)
    const refusal = denial?.refusal ?? notServed ?? (upstream === null ? refuseUnconfigured(surface) : null)
    if (refusal !== null) {
      const call = { exchange, path: target.path, surface, digest: identity.digest, modelAsked: null }
      return refuseCall(call, refusal, gateway, denial ?? {})
    }
  }
  if (upstream === null) return deny(exchange, surface, refuseUnconfigured(surface))
  if (identity.kind === 'preflight') return await passPreflight(exchange, target, surface, upstream, gateway)

  const { digest } = identity
  const share = gateway.keyShares.enter(digest)
  if (share === null) {
    const call = { exchange, path: target.path, surface, digest, modelAsked: null }
    return refuseCall(call, refuseTooManyCalls(gateway.keyShares.callsMax), gateway)
  }
  const check = keyFirst ? null : () => checkKey(digest, isPaid, exchange, gateway)
  const sender = { share, checkKey: check }
  try {
    await serveKey({ exchange, target, surface, endpoint, upstream, digest, sender }, gateway)
  } finally {
    gateway.keyShares.leave(share)
  }
}

interface IdentifiedCall {
  readonly exchange: Exchange
  readonly target: Target
  readonly surface: Surface
  readonly endpoint: Endpoint | null
  readonly upstream: Upstream
  readonly digest: Buffer
  readonly sender: Sender
}

/** All of this is a call of its key, which may have so many. */
async function serveKey(identified: IdentifiedCall, gateway: Gateway): Promise<void> {
  const { exchange, target, surface, endpoint, upstream, digest, sender } = identified
  const { method } = exchange

  // read
  const read = await readBody(exchange, endpoint, gateway.reading, sender)
  if (read.kind === 'refused') {
    const call = { exchange, path: target.path, surface, digest, modelAsked: null }
    return refuseCall(call, read.refusal, gateway, read)
  }
  if (read.kind === 'client_left') return

  try {
    // admit
    const atMs = gateway.clock.nowMs()
    const modelAsked = modelIn(read.facts)
    const { path } = target
    const request = countable(exchange, read)
    const plan = gateway.pricer.plan({
      surface,
      method,
      path,
      endpoint,
      facts: read.facts,
      modelAsked,
      bodyBytes: request.lengthBytes,
      atMs,
    })
    const models = namedModels(endpoint, surface, method, path, read.facts, target.query, plan.modelDefault)
    const ambiguity = ambiguityFor(endpoint, read.facts)
    const asked = { exchange, path, endpoint, surface, digest, modelAsked, models, ambiguity, plan }
    const admission = await admit(asked, gateway)
    if (admission.kind === 'client_left') return
    if (admission.kind === 'refused') return refuseCall(asked, admission.refusal, gateway, admission)
    gateway.reached('admitted')

    // forward, observe, settle, answer
    const call = {
      exchange,
      target,
      surface,
      endpoint,
      upstream,
      read,
      request,
      plan,
      modelAsked,
      digest,
      share: sender.share,
      admission,
    }
    await carryThrough(call, gateway)
  } finally {
    if (read.body.kind === 'held') read.body.held.dispose()
  }
}

interface AdmittedCall {
  readonly exchange: Exchange
  readonly target: Target
  readonly surface: Surface
  readonly endpoint: Endpoint | null
  readonly upstream: Upstream
  readonly read: ReadBody
  readonly request: CountableRequest
  readonly plan: BillPlan
  readonly modelAsked: string | null
  readonly digest: Buffer
  readonly share: KeyShare
  readonly admission: Admission & { readonly kind: 'admitted' }
}

/** From here on there is a hold, and every way out closes it. */
async function carryThrough(admitted: AdmittedCall, gateway: Gateway): Promise<void> {
  const { exchange, surface, endpoint, read, request, plan, modelAsked } = admitted
  const { clock, settler } = gateway
  const sentMs = clock.monotonicMs()
  let endedMs: number | null = null
  const upstreamMs = () => Math.round((endedMs ?? clock.monotonicMs()) - sentMs)

  const onlookers = new Onlookers(admitted, gateway)
  const reader = plan.metered && endpoint?.billing === 'metered' ? endpoint.usage : null
  const answer = new Answer(exchange, {
    memory: gateway.heldReplies,
    keyName: admitted.share.name,
    upstreamMs,
    onDrain: () => reply.onDrain(),
  })
  const reply = new CarriedReply({
    answer,
    reader,
    balanceNanos: admitted.admission.balanceNanos,
    holdJson: onlookers.holdJson,
    nowMs: () => clock.monotonicMs(),
    onFirstByte: () => gateway.reached('first_byte'),
    look: (chunk) => onlookers.received(chunk),
  })
  const settle = (bill: Awaited<ReturnType<typeof billCall>>) =>
    settler.settle(
      {
        ...withoutSecrets(bill, exchange.names.redact),
        requestId: exchange.requestId,
        atMs: clock.nowMs(),
        streamed: reply.isStreamed,
        upstreamMs: upstreamMs(),
        overheadMs: Math.max(0, Math.round(clock.monotonicMs() - exchange.startedMs) - upstreamMs()),
        bytesIn: onlookers.sentBytes,
        // What is held leaves next, with the figures of this settlement.
        bytesOut: answer.bytesOut + answer.bytesHeld,
      },
      // Those who wait for room ask again.
      () => gateway.lines.settled(admitted.digest, admitted.admission.accountId),
    )

  // Plain audio states no usage. The counter is loaded while upstream speaks, or the first such reply would end late.
  if (reader === 'speech') gateway.tokenCounter.warm()
  gateway.inFlight.count += 1
  let whole = false
  try {
    // forward and observe
    await onlookers.seeHeld(read.body)
    const end = clientLeft(exchange) ? NEVER_SENT : await send(admitted, reply, onlookers, gateway)
    endedMs = clock.monotonicMs()
    const { silentMs } = reply
    const observed = await reply.observed(end.kind === 'complete')
    const metered = (await askUpstream(admitted, observed, end, reply)) ?? observed

    // settle
    const bill = await billCall(
      {
        surface,
        plan,
        reader,
        modelAsked,
        end,
        head: reply.replyHead,
        metered,
        request,
        bytesOut: answer.bytesOut,
        silentMs,
      },
      gateway,
    )
    gateway.reached('before_settle')
    const settled = await settle(bill)
    gateway.reached('settled')
    whole = end.kind === 'complete'
    if (whole && modelAsked !== null) gateway.outputSpeeds.note(modelAsked, bill.tokens.output, upstreamMs())
    await onlookers.callSettled(reply.replyHead, whole)

    // answer
    const balanceNanos = settled?.balanceNanos ?? null
    const figures = { costNanos: bill.costNanos, listNanos: bill.listNanos, balanceNanos }
    if (end.kind === 'complete') await reply.finish(figures, end.trailers)
    else if (end.kind === 'cut' || (end.kind === 'abandoned' && !clientLeft(exchange))) await reply.cut()
    else if (end.kind === 'failed') {
      deny(exchange, surface, explainFailure(end), { balanceNanos, upstreamMs: upstreamMs() })
    }
    gateway.showCall?.({
      atMs: clock.nowMs(),
      method: exchange.method,
      path: admitted.target.path,
      model: bill.modelServed ?? modelAsked,
      status: bill.status,
      code: null,
      tokens: bill.tokens,
      costNanos: bill.costNanos,
      ms: Math.round(clock.monotonicMs() - exchange.startedMs),
    })
  } catch (defect) {
    await settle(NOTHING_BILLED)
    throw defect
  } finally {
    onlookers.callOver(reply.replyHead, whole)
    reply.dispose()
    gateway.inFlight.count -= 1
  }
}

const NEVER_SENT: CallEnd = { kind: 'abandoned', sent: false }

async function send(
  admitted: AdmittedCall,
  reply: CarriedReply,
  onlookers: Onlookers,
  gateway: Gateway,
): Promise<CallEnd> {
  const { exchange, target, surface, endpoint, upstream, read, share } = admitted
  const { times, decoding: turns } = gateway.reading
  const look = (chunk: Borrowed) => onlookers.sent(chunk)
  const settings = { injectUsage: gateway.injectUsage, times, turns, share, look }
  const prepared = await prepareBody(exchange, read.body, read.facts, endpoint, settings)
  // Encoding a body again takes a while, and the client may have left meanwhile.
  if (clientLeft(exchange)) return NEVER_SENT
  gateway.reached('before_send')
  const call = forward(
    upstream.pool,
    {
      method: exchange.method,
      target: upstreamTarget(surface, upstream.url, target),
      headers: toUpstreamHeaders(exchange.headers, {
        credential: upstream.key === null ? null : providerCredential(surface, upstream.key),
        host: upstream.url.host,
        contentLength: prepared.lengthBytes,
        ownPrefix: exchange.names.prefix,
        bodyEdited: prepared.usageAdded,
      }),
      body: prepared.content,
    },
    reply,
  )
  reply.attach(call, prepared.usageAdded)
  leaveWithClient(exchange, call, reply, () => readOnMs(reply, admitted.plan, gateway.onLeave))
  const end = await call.ended
  // A body that upstream did not take to its end is let go of, or the client would wait to send the rest of it.
  if (prepared.content instanceof Readable) prepared.content.destroy()
  return end
}

/** A client that leaves ends the call upstream, at once or when it has been read on for as long as it is worth. */
function leaveWithClient({ res }: Exchange, call: Call, reply: CarriedReply, readOnMs: () => number): void {
  res.whenClosed.add(() => {
    if (res.writableFinished) return
    // What waited for the client to read waits no longer.
    reply.onDrain()
    const ms = readOnMs()
    if (ms === 0) return call.abandon()
    const timer = setTimeout(() => call.abandon(), ms)
    call.ended.then(() => clearTimeout(timer))
  })
}

/** What upstream itself says of a response that was cut, where it stores it. Null: what was observed is all there is. */
async function askUpstream(
  { plan, upstream }: AdmittedCall,
  observed: Metered | null,
  end: CallEnd,
  reply: CarriedReply,
): Promise<Metered | null> {
  const id = observed?.objectId ?? null
  if (end.kind === 'complete' || id === null || observed?.outputKnown || !plan.unseen().stored) return null
  // The client is not to wait for an answer that is none of its business.
  await reply.cut()
  return await askForStored(id, upstream)
}
