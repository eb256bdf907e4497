import type { Exchange } from '../http/exchange.ts'
import { firstValue } from '../http/raw-headers.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { Nanos } from '../kernel/money.ts'
import { refuseKey } from '../keys/identity.ts'
import { type Admission, type Ahead, type NamedModels, NOBODY_AHEAD } from '../ledger/call.ts'
import type { Surface } from '../providers/surface.ts'
import { explainHeld, explainRefusal } from './explain-refusal.ts'
import type { Gateway } from './gateway.ts'
import type { BillPlan } from './pricer.ts'
import { recordable } from './recordable.ts'

export type AdmitResult =
  | (Admission & { readonly kind: 'admitted' })
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly balanceNanos: Nanos | null }
  | { readonly kind: 'client_left' }

/**
 * Asks the store about the key before anything else is said or taken in: before a large body is received or invited
 * by `100 Continue`, for one. This decides nothing: `admit` asks again, in the transaction that counts.
 */
export async function checkKey(digest: Uint8Array, gateway: Gateway): Promise<Refusal | null> {
  const caller = await gateway.store.recognise(digest, gateway.clock.nowMs())
  if (caller.kind === 'refused') return refuseKey(caller.reason)
  return caller.kind === 'admin_key' ? refuseKey('admin_key') : null
}

/** What is asked of the store about one call. */
export interface AdmitRequest {
  readonly exchange: Exchange
  readonly path: string
  readonly surface: Surface
  readonly digest: Buffer
  readonly modelAsked: string | null
  readonly models: NamedModels
  readonly ambiguity: string | null
  readonly plan: BillPlan
}

/**
 * Whether this call may go upstream. If it may, its hold is on disk when this returns. Where calls in flight hold
 * what is left of a limit it waits for them, in the order of arrival. The answer is for this call only; nothing of it
 * is kept.
 */
export async function admit(request: AdmitRequest, gateway: Gateway): Promise<AdmitResult> {
  const overloaded = refuseOverload(gateway)
  if (overloaded !== null) return refused(overloaded)
  const place = gateway.lines.enter(lineKeyOf(request.digest))
  const { res } = request.exchange
  res.once('close', place.leave)
  try {
    let admission =
      place.isBehind && waits(request) ? null : await ask(request, place.ahead(), false, gateway)
    while (admission === null || admission.kind === 'held') {
      const turn = await place.turn(admission?.by.limit ?? 'budget', admission?.accountId ?? '')
      if (turn === 'left') return { kind: 'client_left' }
      // Those before it in line are late too: whatever room there is now is for whoever asks.
      const ahead = turn === 'late' ? NOBODY_AHEAD : place.ahead()
      admission = await ask(request, ahead, admission !== null, gateway)
      if (turn !== 'ask') break
    }
    if (admission.kind === 'admitted') return admission
    if (admission.kind === 'held') {
      return refused(explainHeld(admission.by, request.exchange.names), admission.balanceNanos)
    }
    if (admission.refusal.reason !== 'unknown_key') {
      const refusal = explainRefusal(admission.refusal, request.modelAsked, request.exchange.names)
      return refused(refusal, admission.balanceNanos)
    }
    // It may be an admin key, whose holder deserves to be told so.
    const caller = await gateway.store.recognise(request.digest, gateway.clock.nowMs())
    return refused(refuseKey(caller.kind === 'admin_key' ? 'admin_key' : 'unknown_key'))
  } finally {
    res.off('close', place.leave)
    place.done()
  }
}

/** By what a key's line is known while there is one. */
export function lineKeyOf(digest: Buffer): string {
  return digest.toString('latin1')
}

/** What costs nothing never waits. */
function waits({ plan }: AdmitRequest): boolean {
  return plan.hold.kind !== 'none'
}

function refuseOverload({ inFlight, settler }: Gateway): Refusal | null {
  if (inFlight.count >= limits.callsInFlightMax) {
    return refuse('overloaded', `There are ${limits.callsInFlightMax} calls in flight already.`)
  }
  if (settler.waiting >= limits.settlementsWaitingMax) {
    return refuse('store_unavailable', 'Too many finished calls wait for the store. Nothing was sent.')
  }
  return null
}

/** The instant of this question is the instant of the call, if it is admitted now: after a wait it may be next month. */
function ask(
  request: AdmitRequest,
  ahead: Ahead,
  askedBefore: boolean,
  gateway: Gateway,
): Promise<Admission> {
  const { exchange, plan } = request
  return gateway.store.admit({
    requestId: exchange.requestId,
    digest: request.digest,
    atMs: gateway.clock.nowMs(),
    method: exchange.method,
    path: recordable(request.path, exchange.names),
    surface: request.surface,
    modelAsked: recordable(request.modelAsked, exchange.names),
    clientIp: exchange.req.socket.remoteAddress ?? '',
    userAgent: recordable(firstValue(exchange.headers, 'user-agent') ?? null, exchange.names),
    hold: plan.hold,
    models: request.models,
    ambiguity: request.ambiguity,
    priceVersion: plan.priceVersion,
    rating: exchange.names.redact(plan.rating),
    unratable: plan.unratable,
    heldCounts: gateway.budgetMode === 'exact',
    ahead,
    askedBefore,
  })
}

function refused(refusal: Refusal, balanceNanos: Nanos | null = null): AdmitResult {
  return { kind: 'refused', refusal, balanceNanos }
}
