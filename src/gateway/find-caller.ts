import type { Refusal } from '../kernel/errors.ts'
import type { HeaderNames } from '../kernel/header-names.ts'
import type { Nanos } from '../kernel/money.ts'
import { type Caller, refuseKey } from '../keys/credential.ts'
import { refuseSpent } from '../ledger/decide-admission.ts'
import type { Gateway } from './gateway.ts'
import { explainSpent, refuseSuspended } from './refusals.ts'

interface FoundCaller {
  readonly caller: (Caller & { readonly kind: 'api_key' }) | null
  /** Set if the key is unusable or exhausted, or its account is suspended. */
  readonly refusal: Refusal | null
  readonly balanceNanos: Nanos | null
}

/** For answers that depend on the key outside admission. `isPaid`: also refuse a key without budget or credit. */
export async function findCaller(
  digest: Uint8Array,
  isPaid: boolean,
  names: HeaderNames,
  { store, clock }: Gateway,
): Promise<FoundCaller> {
  const caller = await store.lookUpKey(digest, clock.nowMs())
  if (caller.kind !== 'api_key') {
    const refusal = refuseKey(caller.kind === 'refused' ? caller.reason : 'admin_key')
    return { caller: null, refusal, balanceNanos: null }
  }
  const { funds, isSuspended } = caller
  const spent = isPaid ? refuseSpent(funds) : null
  const refusal = isSuspended ? refuseSuspended() : spent && explainSpent(spent, names)
  return { caller, refusal, balanceNanos: funds.balanceNanos }
}
