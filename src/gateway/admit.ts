import type { Exchange } from '../http/exchange.ts'
import { firstValue } from '../http/raw-headers.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { Nanos } from '../kernel/money.ts'
import { refuseKey } from '../keys/identity.ts'
import type { CallRefusal } from '../ledger/call.ts'
import type { Surface } from '../providers/surface.ts'
import type { Gateway } from './gateway.ts'
import type { BillPlan } from './pricer.ts'

export type AdmitResult =
  | { readonly kind: 'admitted'; readonly keyId: string; readonly balanceNanos: Nanos }
  | { readonly kind: 'refused'; readonly refusal: Refusal; readonly balanceNanos: Nanos | null }

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
  readonly digest: Uint8Array
  readonly modelAsked: string | null
  readonly plan: BillPlan
  readonly atMs: number
}

/**
 * Whether this call may go upstream. If it may, its hold is on disk when this returns. The answer is for this call
 * only; nothing of it is kept.
 */
export async function admit(request: AdmitRequest, gateway: Gateway): Promise<AdmitResult> {
  const { exchange, plan } = request
  if (gateway.inFlight.count >= limits.callsInFlightMax) {
    return refused(refuse('overloaded', `There are ${limits.callsInFlightMax} calls in flight already.`))
  }
  if (gateway.settler.waiting >= limits.settlementsWaitingMax) {
    return refused(
      refuse('store_unavailable', 'Too many finished calls wait for the store. Nothing was sent.'),
    )
  }
  const admission = await gateway.store.admit({
    requestId: exchange.requestId,
    digest: request.digest,
    atMs: request.atMs,
    method: exchange.method,
    path: request.path.slice(0, limits.recordedCharsMax),
    surface: request.surface,
    modelAsked: request.modelAsked,
    clientIp: exchange.req.socket.remoteAddress ?? '',
    userAgent: firstValue(exchange.headers, 'user-agent')?.slice(0, limits.recordedCharsMax) ?? null,
    holdNanos: plan.holdNanos,
    holdListNanos: plan.holdListNanos,
    priceVersion: plan.priceVersion,
    rating: plan.rating,
    unratable: plan.unratable,
  })
  if (admission.kind === 'admitted') return admission
  if (admission.reason !== 'unknown_key')
    return refused(explain(admission.reason, request), admission.balanceNanos)
  // It may be an admin key, whose holder deserves to be told so.
  const caller = await gateway.store.recognise(request.digest, request.atMs)
  return refused(refuseKey(caller.kind === 'admin_key' ? 'admin_key' : 'unknown_key'))
}

function explain(reason: CallRefusal, { modelAsked }: AdmitRequest): Refusal {
  switch (reason) {
    case 'model_not_priced': {
      const model =
        modelAsked === null ? 'The model of this request' : `The model ${JSON.stringify(modelAsked)}`
      return refuse('model_not_priced', `${model} has no price in this gateway yet. Ask its operator.`, {
        param: 'model',
      })
    }
    case 'endpoint_not_metered':
      return refuse(
        'endpoint_not_metered',
        'What this endpoint costs cannot be metered by this gateway yet. Ask its operator.',
      )
    case 'unknown_key':
    case 'revoked_key':
    case 'expired_key':
      return refuseKey(reason)
  }
}

function refused(refusal: Refusal, balanceNanos: Nanos | null = null): AdmitResult {
  return { kind: 'refused', refusal, balanceNanos }
}
