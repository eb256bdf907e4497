import { clientLeft, type Exchange, type WholeReply } from '../http/exchange.ts'
import { hidesOwnedPath, isOwnedPath, judgeHead, judgeTarget, type Target } from '../http/judge-head.ts'
import { firstValue, prefers, weightsOf } from '../http/raw-headers.ts'
import type { CallEnd } from '../http/upstream-call.ts'
import { type Denial, type Refusal, refuse, StoreRefused } from '../kernel/errors.ts'
import type { Credential } from '../keys/credential.ts'
import type { Metered, Shown } from '../metering/meter.ts'
import { chooseSurface, findEndpoint } from '../providers/find-endpoint.ts'
import { type Audience, carriesCredential, shapeError } from '../providers/surfaces.ts'
import { admit, checkKey } from './admit.ts'
import { Answer } from './answer.ts'
import { type Bill, billCall, billWithoutCost, LOST, NOTHING_BILLED, withoutSecrets } from './bill.ts'
import { BodyTaps } from './body-taps.ts'
import type { AdmittedCall, IdentifiedCall, ReadCall } from './call.ts'
import { originFor } from './edit-bodies.ts'
import { deny, endedCall, refuseCall, refuseRequest } from './ended-call.ts'
import { forward, passPreflight } from './forward.ts'
import type { Gateway } from './gateway.ts'
import type { Sender } from './held-body.ts'
import { askForStored, storedId } from './leave.ts'
import { parseCredential, surfaceOf } from './parse-credential.ts'
import { findMadeFrom, planCall } from './plan.ts'
import { checkKeyBeforeBody, countableInput, readBody } from './read.ts'
import {
  explainFailure,
  explainThrown,
  refuseEndpoint,
  refuseInMaintenance,
  refuseTooManyCalls,
  refuseUnconfigured,
  refuseWebSocket,
} from './refusals.ts'
import { ReplyPipeline } from './reply-pipeline.ts'
import { findHandshake, type Switched, serveSocket, turnsOf } from './turns/serve-socket.ts'
import type { SocketTurns } from './turns/socket-turns.ts'

/** Answers requests for our own paths. Given by the composition root; the data plane does not know what they do. */
export type HandleOwned = (exchange: Exchange, target: Target, credential: Credential) => Promise<void>

/**
 * The entrance of every request: the head and the target are judged as they stand, then the request is ours or
 * upstream's. An error behind this door becomes an answer here, and never an unhandled rejection.
 */
export function openFrontDoor(gateway: Gateway, handleOwned: HandleOwned): (exchange: Exchange) => void {
  const { counts } = gateway
  return (exchange) => {
    const { req, method, headers } = exchange
    const rawTarget = req.target
    const bad = judgeHead(req.httpVersion, method, headers)
    if (bad !== null) return refuseRequest(exchange, audienceOf(exchange, rawTarget), bad, counts)
    const judged = judgeTarget(rawTarget, firstValue(headers, 'host'))
    if (judged.kind === 'refused') {
      return refuseRequest(exchange, audienceOf(exchange, rawTarget), judged.refusal, counts)
    }
    const { target } = judged
    if (hidesOwnedPath(target.path)) {
      const refusal = refuse('bad_request', 'Bad request target: the request path has an encoded slash.')
      return refuseRequest(exchange, audienceOf(exchange, target.path), refusal, counts)
    }
    const owned = isOwnedPath(target.path) || isBrowserAtRoot(target.path, exchange)
    if (!owned && gateway.isMaintenance) {
      return refuseRequest(exchange, audienceOf(exchange, target.path), refuseInMaintenance(), counts)
    }
    const handled = owned
      ? handleOwned(exchange, target, parseCredential(exchange, gateway.credentials))
      : handleRequest(exchange, target, gateway)
    handled.catch((error: unknown) => {
      const audience = owned ? 'own' : audienceOf(exchange, target.path)
      const refusal = explainThrown(error, exchange.requestId, gateway.log, owned)
      refuseRequest(exchange, audience, refusal, counts)
    })
  }
}

/**
 * The life of a proxied request, top to bottom. Only this file knows the order.
 *
 *   identify   which key, on which surface, with how many others   → 400 401 402 403 404 426 429 503
 *   read       find models, limits and stream flag in the body     → 401 402 408 413 503
 *   plan       what the call may cost, which models it names, how it is priced; a batch that is made of a file is
 *              planned by that file
 *   admit      one store transaction: key in force? models allowed? room under cap and credit?
 *              place the hold, or wait in the admission queue. A DELETE of an object that
 *              is not settled is refused                           → 400 401 402 403 404 409 429 503
 *   forward    provider credential in, bytes out                   → 502
 *   observe    the meter looks at a view of each chunk of the reply. The object of a call whose cost comes later is
 *              recorded as soon as its stream names it
 *   settle     usage → price → one store transaction; closes the hold once, on every way out. A call whose cost comes
 *              later (a batch, a response in the background) is deferred instead: deferrals.ts settles it
 *   answer     upstream's reply, with the figures as headers or trailers
 *
 * The handshake of a metered WebSocket is a free call. After upstream's 101 each of its turns is a call (turns/). The standing
 * hold of a Realtime socket is placed before the handshake goes. Any other WebSocket is one call that cannot be metered.
 */
async function handleRequest(exchange: Exchange, target: Target, gateway: Gateway): Promise<void> {
  const { method, headers } = exchange

  // identify
  const surface = surfaceOf(target.path, method, headers)
  const isHandshake = exchange.res.maySwitch
  const credential = parseCredential(exchange, gateway.credentials, isHandshake)
  if (credential.kind === 'refused')
    return refuseRequest(exchange, surface, credential.refusal, gateway.counts)
  const upstream = gateway.upstreams[surface]
  // A HEAD goes by the endpoint of the GET.
  const endpoint = isHandshake
    ? findHandshake(surface, target)
    : findEndpoint(surface, method === 'HEAD' ? 'GET' : method, target.path)
  if (isHandshake && endpoint === null)
    return refuseRequest(exchange, surface, refuseWebSocket(target.path), gateway.counts)
  const socketId = isHandshake && endpoint?.billing === 'free' ? exchange.requestId : null
  const routed = { exchange, target, surface, endpoint, socketId }
  const notServed = refuseEndpoint(endpoint, method, target.path, gateway)
  const isPaid = endpoint?.billing === 'metered'
  const keyFirst = checkKeyBeforeBody(exchange)
  if (credential.kind === 'key' && (upstream === null || notServed !== null || keyFirst)) {
    const denial = await checkKey(credential.digest, isPaid && keyFirst, exchange, gateway)
    const refusal = denial?.refusal ?? notServed ?? (upstream === null ? refuseUnconfigured(surface) : null)
    if (refusal !== null) {
      return refuseCall({ ...routed, digest: credential.digest }, refusal, gateway, denial ?? {})
    }
  }
  if (upstream === null) {
    return refuseRequest(exchange, surface, refuseUnconfigured(surface), gateway.counts)
  }
  if (credential.kind === 'preflight') return await passPreflight(routed, upstream, gateway)

  const { digest } = credential
  const call = { ...routed, digest }
  const share = gateway.keyShares.enter(digest)
  if (share === null) {
    return refuseCall(call, refuseTooManyCalls(gateway.keyShares.callsMax), gateway)
  }
  const check = keyFirst ? null : () => checkKey(digest, isPaid, exchange, gateway)
  try {
    await serveCall({ ...call, upstream, share }, check, gateway)
  } finally {
    gateway.keyShares.leave(share)
  }
}

/** Serves a call from its body to its answer. All of this counts as one of the calls that its key may have under way. */
async function serveCall(
  identified: IdentifiedCall,
  checkKey: Sender['checkKey'],
  gateway: Gateway,
): Promise<void> {
  const { exchange, endpoint, share } = identified

  // read
  const read = await readBody(exchange, endpoint, gateway.reading, { share, checkKey })
  if (read.kind === 'refused') return refuseCall(identified, read.refusal, gateway, read)
  if (read.kind === 'client_left') return

  let turns: SocketTurns | null = null
  try {
    // plan
    const readCall = { ...identified, read, request: countableInput(exchange, read) }
    const madeFrom = await findMadeFrom(readCall, gateway)
    const call = { ...readCall, plan: planCall(readCall, madeFrom, gateway) }

    // admit
    if (exchange.method === 'DELETE') {
      const denial = (await checkKey?.()) ?? (await refuseDelete(call, gateway))
      if (denial !== null) return refuseCall(call, denial.refusal, gateway, denial)
    }
    turns = turnsOf(call, gateway)
    const admission = (await turns?.open()) ?? (await admit(call, gateway))
    if (admission.kind === 'client_left') return
    if (admission.kind === 'refused') {
      const { refusal, balanceNanos } = admission
      return refuseCall(call, refusal, gateway, { balanceNanos, modelAsked: call.plan.modelAsked })
    }
    gateway.reached('admitted')

    // forward, observe, settle, answer; for a handshake that upstream accepts, all of this again for each turn
    const switched = await runAdmittedCall({ ...call, admission }, gateway)
    if (switched !== null) await serveSocket({ ...call, admission }, switched, turns, gateway)
  } finally {
    await turns?.end(true)
    if (read.body.kind === 'held') read.body.held.dispose()
  }
}

/** Refuses to delete an object that is not settled. For usable keys only: others learn nothing about objects. */
async function refuseDelete(
  { surface, target, digest }: ReadCall,
  { deferrals }: Gateway,
): Promise<Denial | null> {
  const refusal = await deferrals.refuseDelete(surface, target.path, digest)
  return refusal === null ? null : { refusal, balanceNanos: null }
}

/** From here on there is a hold, and every way out closes it. */
async function runAdmittedCall(call: AdmittedCall, gateway: Gateway): Promise<Switched | null> {
  const { exchange, surface, admission } = call
  const { reader, modelAsked } = call.plan
  const { clock } = gateway
  const sentMs = clock.monotonicMs()
  let endedMs: number | null = null
  const exactUpstreamMs = () => (endedMs ?? clock.monotonicMs()) - sentMs
  const upstreamMs = () => Math.round(exactUpstreamMs())

  const taps = new BodyTaps(call, gateway)
  const reply = new ReplyPipeline({
    createAnswer: (onDrain) =>
      new Answer(exchange, { memory: gateway.heldReplies, keyName: call.share.name, upstreamMs, onDrain }),
    reader,
    shows: call.plan.shows,
    template: call.endpoint?.template ?? '',
    origin: originFor(exchange, gateway.isSecure),
    balanceNanos: admission.balanceNanos,
    holdJson: taps.holdJson || call.plan.shows !== null,
    nowMs: () => clock.monotonicMs(),
    onFirstByte: () => gateway.reached('first_byte'),
    look: (chunk) => taps.received(chunk),
    onObject: reader === 'responses' ? nameObject : null,
  })
  let counted = false
  let isRecorded = false
  const elapsedMs = () => clock.monotonicMs() - exchange.startedMs
  const passed = () => ({
    requestId: exchange.requestId,
    streamed: reply.isStreamed,
    upstreamMs: upstreamMs(),
    overheadMs: Math.max(0, Math.round(elapsedMs()) - upstreamMs()),
    bytesIn: taps.sentBytes,
    // The held bytes leave next, with the figures of this settlement.
    bytesOut: reply.bytesOut + reply.bytesHeld,
  })
  /** The id of the response that streams: it cannot be deleted, and in the background it is recorded at once. */
  let streamingId: string | null = null
  async function nameObject({ objectId = null }: Shown): Promise<void> {
    const head = reply.replyHead
    if (objectId === null || head === null) return
    streamingId = objectId
    gateway.deferrals.streaming.add(objectId)
    const { makes: kind } = call.plan.bill
    if (kind === null) return
    isRecorded = await gateway.deferrals.record(
      call,
      { kind, id: objectId, head, when: 'streaming' },
      passed(),
    )
  }
  /** The usage that upstream states of a stored response whose stream was cut. */
  async function findStored(
    observed: Metered | null,
    end: CallEnd,
  ): Promise<Metered | 'running' | 'missing' | null> {
    const id = storedId(call, observed, end)
    const head = reply.replyHead
    if (id === null || head === null) return null
    // The client does not wait for an answer that is for the bill alone. A reply that is whole has been sent by now.
    if (end.kind !== 'complete') reply.cut()
    const found = await askForStored(id, call)
    if (found !== 'running') return found
    isRecorded = await gateway.deferrals.record(call, { kind: 'response', id, head, when: 'left' }, passed())
    return isRecorded ? found : null
  }
  const settle = (bill: Bill) => {
    const times = { overheadMs: Math.max(0, elapsedMs() - exactUpstreamMs()), upstreamMs: exactUpstreamMs() }
    const closing = { ...withoutSecrets(bill, exchange.names.redact), ...passed(), atMs: clock.nowMs() }
    return gateway.settler.settle(closing, ({ booked }) => {
      gateway.queues.settled(admission.budgetId, admission.accountId)
      // A defect after the settlement closes the call again, which changes nothing, and is not to be counted. Nor is a call
      // whose object was settled, and counted, before its stream was over.
      if (!counted && (booked || !isRecorded)) gateway.counts.settled(surface, modelAsked, closing, times)
      counted = true
    })
  }

  gateway.inFlight.count += 1
  let whole = false
  let isDeferred = false
  try {
    // forward and observe
    await taps.seeHeld(call.read.body)
    const end = await forward(call, reply, taps, gateway)
    endedMs = clock.monotonicMs()
    if (end.kind === 'switched') {
      const unpriced = call.socketId === null
      counted = !unpriced
      await settle({ ...billWithoutCost(end.head), unpriced }).catch((defect: unknown) => {
        end.connection.destroy()
        throw defect
      })
      return end
    }
    const { times } = reply
    const elapsedMs = exactUpstreamMs()
    const observed = await reply.observed(end.kind === 'complete')
    const stored = await findStored(observed, end)
    const isRunning = stored === 'running'
    const metered = stored === null || typeof stored === 'string' ? observed : stored

    // settle, or leave the hold in force where the cost comes later
    const replied = { end, head: reply.replyHead, bytesOut: reply.bytesOut, times, elapsedMs }
    const outcome = { ...replied, metered, isStoredMissing: stored === 'missing' }
    const deferred = isRunning ? 'deferred' : await gateway.deferrals.defer(call, outcome, passed())
    isDeferred = deferred === 'deferred'
    const bill = deferred === 'no' ? await billCall(call, outcome, gateway) : billWithoutCost(reply.replyHead)
    gateway.reached('before_settle')
    const settled = isDeferred ? admission : await settle(bill)
    gateway.reached('settled')
    if (call.plan.shows !== null && observed !== null)
      await gateway.deferrals.shown(surface, call.target.path, observed)
    const status = reply.replyHead?.status ?? 0
    if (exchange.method === 'DELETE' && status >= 200 && status < 300)
      await gateway.deferrals.deleted(surface, call.target.path)
    whole = end.kind === 'complete'
    await taps.callSettled(reply.replyHead, whole)

    // answer
    const balanceNanos = settled?.balanceNanos ?? null
    const figures = { costNanos: bill.costNanos, listNanos: bill.listNanos, balanceNanos }
    if (end.kind === 'complete') reply.finish(figures, end.trailers)
    else if (end.kind === 'cut' || (end.kind === 'abandoned' && !clientLeft(exchange))) reply.cut()
    else if (end.kind === 'failed') {
      deny(exchange, surface, explainFailure(end), { balanceNanos, upstreamMs: upstreamMs() })
    }
    gateway.observeCall?.(endedCall(call, bill, end, gateway))
    return null
  } catch (defect) {
    // The cost of an object that is recorded is asked for, whatever becomes of its reply. A call whose bill the store refused
    // is lost by now: a release would hide that.
    if (!isDeferred && !isRecorded) await settle(defect instanceof StoreRefused ? LOST : NOTHING_BILLED)
    throw defect
  } finally {
    if (streamingId !== null) gateway.deferrals.streaming.delete(streamingId)
    taps.callOver(reply.replyHead, whole)
    gateway.inFlight.count -= 1
  }
}

/** Whether a browser opens the gateway's address. `/` is upstream's, but no SDK asks for a page there without a key. */
function isBrowserAtRoot(path: string, { method, headers }: Exchange): boolean {
  if (path !== '/' || method !== 'GET' || carriesCredential(headers)) return false
  const weights = weightsOf(headers, 'accept')
  const isFirst = weights.get('text/html') === Math.max(...weights.values())
  return isFirst && prefers(headers, 'text/html', 'application/json')
}

/** The audience of an error about this target, which may not have been judged yet. */
export function audienceOf(exchange: Exchange, rawTarget: string): Audience {
  const path = rawTarget.split('?', 1)[0] ?? ''
  return isOwnedPath(path) ? 'own' : surfaceOf(path, exchange.method, exchange.headers)
}

/**
 * The error for bytes that never became a request, in the shape of the surface they seem to be meant for. The
 * text may be any part of a head, or garbage; it is only searched, never used.
 */
export function shapeBroken(refusal: Refusal, head: string, requestId: string): WholeReply {
  const target = /^[A-Za-z]+ ([^ ?]+)/.exec(head)?.[1] ?? ''
  if (isOwnedPath(target)) return shapeError('own', refusal, requestId)
  const lines = head.toLowerCase().split(/[\r\n]/)
  const surface = chooseSurface(target, (name) => lines.some((line) => line.startsWith(`${name}:`)))
  return shapeError(surface, refusal, requestId)
}
