import { type Refusal, refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import { refuseKey } from '../keys/identity.ts'
import type { Gateway } from './gateway.ts'

export type AdmitResult =
  | { readonly kind: 'admitted'; readonly keyId: string }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/**
 * Asks the store about the key before anything else is said or taken in: before a large body is received or invited
 * by `100 Continue`, for one. This decides nothing: `admit` asks again, in the transaction that counts.
 */
export async function checkKey(digest: Uint8Array, gateway: Gateway): Promise<Refusal | null> {
  const caller = await gateway.store.recognise(digest, gateway.clock.nowMs())
  if (caller.kind === 'refused') return refuseKey(caller.reason)
  return caller.kind === 'admin_key' ? refuseKey('admin_key') : null
}

/** Whether this call may go upstream. The answer holds for this call only; nothing of it is kept. */
export async function admit(digest: Uint8Array, gateway: Gateway): Promise<AdmitResult> {
  if (gateway.inFlight.count >= limits.callsInFlightMax) {
    return refused(refuse('overloaded', `There are ${limits.callsInFlightMax} calls in flight already.`))
  }
  const nowMs = gateway.clock.nowMs()
  const admission = await gateway.store.admit(digest, nowMs)
  if (admission.kind === 'admitted') return { kind: 'admitted', keyId: admission.keyId }
  if (admission.reason !== 'unknown_key') return refused(refuseKey(admission.reason))
  // It may be an admin key, whose holder deserves to be told so.
  const caller = await gateway.store.recognise(digest, nowMs)
  return refused(refuseKey(caller.kind === 'admin_key' ? 'admin_key' : 'unknown_key'))
}

function refused(refusal: Refusal): AdmitResult {
  return { kind: 'refused', refusal }
}
