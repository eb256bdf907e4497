import { Readable } from 'node:stream'
import type { CallPlan } from '../calls/call-plan.ts'
import { ReservedBytes } from '../calls/key-shares.ts'
import type { Exchange } from '../http/exchange.ts'
import { firstValue } from '../http/raw-headers.ts'
import type { CallEnd, ReplyReceiver, UpstreamCall } from '../http/upstream-call.ts'
import { callUpstream, type Upstream } from '../http/upstream-connection.ts'
import { refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { HiddenWork } from '../pricing/request-profile.ts'
import {
  keysInProtocols,
  protocolsForClient,
  protocolsForUpstream,
  providerCredential,
} from '../providers/credentials.ts'
import { upstreamTarget } from '../providers/surfaces.ts'
import type { AdmittedCall, Call } from './call.ts'
import type { Gateway, OnLeave } from './gateway.ts'
import { type PreparedBody, prepareBody, returnsBatches, toUpstreamHeaders } from './permitted-changes.ts'
import { explainFailure, refuseRequest, refuseUnconfigured, sendRefusal } from './refusals.ts'
import { Reply } from './reply.ts'
import type { SentCall } from './sent-call.ts'

const NEVER_SENT: CallEnd = { kind: 'abandoned', sent: false }

export async function forward(sent: SentCall, gateway: Gateway): Promise<CallEnd> {
  const { call, reply } = sent
  const { exchange, endpoint, upstream, read, share } = call
  if (exchange.res.isOver) return NEVER_SENT
  const { times } = gateway.reading
  const onChunk = (chunk: Buffer) => sent.bodySent(chunk)
  if (read.body.kind === 'held') for (const piece of read.body.held.pieces()) onChunk(piece)
  const settings = { injectUsage: gateway.injectUsage, times, pace: share.pace, onChunk }
  const prepared = prepareBody(exchange, read.body, read.facts, endpoint, settings)
  const plainReply =
    prepared.usageAdded || (gateway.isSecure !== null && returnsBatches(endpoint?.template ?? ''))
  sent.sending()
  const upstreamCall = sendUpstream(
    call,
    upstream,
    { ...prepared, plainReply, idempotencyPrefix: idempotencyPrefix(call) },
    exchange.res.maySwitch ? withoutProviderKey(exchange, reply) : reply,
  )
  reply.attach(upstreamCall, prepared.usageAdded)
  cancelWhenClientLeaves(call, upstreamCall, reply, gateway.onLeave)
  const end = await upstreamCall.ended
  // Destroy a body that upstream did not read to its end, or the client would wait forever to send the rest.
  if (prepared.content instanceof Readable) prepared.content.destroy()
  return end
}

export type AbandonedReply = Pick<Reply, 'isError' | 'isNearlyDone' | 'shown'>

function cancelWhenClientLeaves(
  { exchange, hold }: AdmittedCall,
  upstreamCall: UpstreamCall,
  reply: Reply,
  onLeave: OnLeave,
): void {
  const { res } = exchange
  res.whenClosed.add(() => {
    if (res.writableFinished) return
    reply.onDrain()
    const ms = readOnMs(reply, hold.ask.profile, onLeave)
    if (ms === 0) return upstreamCall.abandon()
    const timer = setTimeout(() => upstreamCall.abandon(), ms)
    upstreamCall.ended.then(() => clearTimeout(timer))
  })
}

/** How long to read a reply after its client has left. 0: cancel the call. */
export function readOnMs(reply: AbandonedReply, plan: CallPlan, onLeave: OnLeave): number {
  // Free calls and errors cost nothing, so the rest of the reply is not needed.
  if (!plan.metered || reply.isError) return 0
  // Once the reply has named the created object, upstream can be polled for it.
  if (plan.deferredKind !== null) return reply.shown.objectId === null ? limits.finishMs : limits.readOnMs
  if (onLeave === 'finish' || isUsageUnknown(reply, plan.hidden)) return limits.finishMs
  return reply.isNearlyDone ? limits.readOnMs : 0
}

/** Counts only tools that the reply shows, because declared tools may never run. */
function isUsageUnknown({ shown }: AbandonedReply, hidden: HiddenWork): boolean {
  return hidden.makesMedia || shown.toolsRan || (hidden.refersElsewhere && !shown.inputKnown)
}

/** A handshake's answer must not reveal the provider's key. */
function withoutProviderKey({ headers }: Exchange, reply: Reply): ReplyReceiver {
  return {
    head: (head) => reply.head({ ...head, headers: protocolsForClient(head.headers, headers) }),
    data: (chunk) => reply.data(chunk),
  }
}

type ProxiedRequest = Pick<Call, 'exchange' | 'target' | 'surface'>

type PreparedRequest = PreparedBody & { readonly plainReply: boolean; readonly idempotencyPrefix: string }

/** The prefix that keeps the `Idempotency-Key`s of accounts on one credential apart. */
function idempotencyPrefix({ hold: { terms } }: AdmittedCall): string {
  return terms.hasOthers && terms.upstream === null ? `${terms.accountId}-` : ''
}

function sendUpstream(
  { exchange, target, surface }: ProxiedRequest,
  { pool, url, key, fixedHeaders }: Upstream,
  prepared: PreparedRequest | null,
  receiver: ReplyReceiver,
): UpstreamCall {
  const { method, headers, names, res } = exchange
  const upgrades = res.maySwitch
  // If the client sent its key as a subprotocol, the provider's key replaces it there, not in a header.
  const inProtocols = upgrades && keysInProtocols(headers).length > 0
  return callUpstream(
    pool,
    {
      method,
      target: upstreamTarget(surface, url, target),
      host: url.host,
      headers: toUpstreamHeaders(headers, {
        credential:
          prepared === null || key === null || inProtocols ? null : providerCredential(surface, key),
        ownPrefix: names.prefix,
        bodyEdited: prepared?.usageAdded ?? false,
        plainReply: prepared?.plainReply ?? false,
        idempotencyPrefix: prepared?.idempotencyPrefix ?? '',
        // A preflight has no credential, and the values may be secret.
        fixedHeaders: prepared === null ? [] : fixedHeaders,
        protocols: upgrades ? (value) => protocolsForUpstream(value, key?.reveal() ?? null) : null,
      }),
      lengthBytes: prepared?.lengthBytes || (firstValue(headers, 'content-length') === '0' ? 0 : null),
      body: prepared?.content ?? null,
      upgrades,
    },
    receiver,
  )
}

const NOT_METERED = {
  reader: null,
  objectReader: null,
  origin: null,
  balanceNanos: null,
  requestFigures: null,
} as const

/** Forwards a CORS preflight. It has no credential and no body and is not a call: nothing is held or recorded. */
export async function passPreflight(
  preflight: ProxiedRequest,
  { clock, inFlight, bufferedReplies, upstreams, counts }: Gateway,
): Promise<void> {
  const { exchange, surface } = preflight
  const upstream = upstreams[surface]
  if (upstream === null) return refuseRequest(exchange, surface, refuseUnconfigured(surface), counts)
  if (inFlight.preflights >= limits.preflightsInFlightMax) {
    return sendRefusal(
      exchange,
      surface,
      refuse('no_memory', 'Too many CORS preflights are in flight. Retry in a second.'),
    )
  }
  const sentMs = clock.monotonicMs()
  const reply = new Reply(exchange, {
    ...NOT_METERED,
    bufferJson: false,
    memory: new ReservedBytes(bufferedReplies, ''),
    onChunk() {},
    onObject: null,
    nowMs: () => clock.monotonicMs(),
    upstreamMs: () => Math.round(clock.monotonicMs() - sentMs),
  })
  const upstreamCall = sendUpstream(preflight, upstream, null, reply)
  reply.attach(upstreamCall, false)
  exchange.res.whenClosed.add(() => {
    if (!exchange.res.writableFinished) upstreamCall.abandon()
  })
  inFlight.preflights += 1
  const end = await upstreamCall.ended
  inFlight.preflights -= 1
  if (end.kind === 'complete') reply.finish(null, end.trailers)
  else if (end.kind === 'cut') reply.cut()
  else if (end.kind === 'failed') sendRefusal(exchange, surface, explainFailure(end))
}
