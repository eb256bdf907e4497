import { networkOf } from '../http/addresses.ts'
import type { Exchange } from '../http/exchange.ts'
import type { Clock } from '../kernel/clock.ts'
import { limits } from '../kernel/limits.ts'
import type { Caller, KeyLookupStore } from '../keys/credential.ts'
import { keyKindOf } from '../keys/key-format.ts'
import { type Management, type Refused, refused } from './route.ts'
import type { SignIn } from './session.ts'

interface Failures {
  count: number
  readonly sinceMs: number
}

/**
 * Sign-ins that have failed, by the network they came from. A minted key has 256 random bits, so the limit guards less against
 * guessing than against a chosen admin key that is weak, and against a form that is used to test leaked keys.
 */
export class SignInAttempts {
  readonly #failures = new Map<string, Failures>()
  readonly #clock: Pick<Clock, 'monotonicMs'>

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.#clock = clock
  }

  /** Counts an attempt as failed until it is forgiven, so that attempts at once do not pass the limit. False: too many. */
  begin(address: string): boolean {
    const network = networkOf(address)
    const nowMs = this.#clock.monotonicMs()
    const known = this.#failures.get(network)
    if (known !== undefined && nowMs - known.sinceMs < limits.signInFailuresMs) {
      if (known.count >= limits.signInFailuresMax) return false
      known.count += 1
      return true
    }
    // The network moves behind all others in the map: the first is always the oldest.
    this.#failures.delete(network)
    const [oldest] = this.#failures.keys()
    if (oldest !== undefined && this.#failures.size >= limits.signInAddressesMax)
      this.#failures.delete(oldest)
    this.#failures.set(network, { count: 1, sinceMs: nowMs })
    return true
  }

  /** Takes back a counted attempt, which did not fail, or not for what was sent. */
  forgive(address: string): void {
    const known = this.#failures.get(networkOf(address))
    if (known !== undefined && known.count > 0) known.count -= 1
  }
}

export interface SignInParts {
  readonly management: Pick<Management, 'clock' | 'digestKey' | 'servicePrefix'>
  readonly recognition: KeyLookupStore
  readonly signIns: SignInAttempts
}

/** The caller of a sign-in, recognised by its admin key. */
export async function recogniseSignIn(
  { admin_key: key }: SignIn,
  { clientIp }: Pick<Exchange, 'clientIp'>,
  { management, recognition, signIns }: SignInParts,
): Promise<{ kind: 'recognised'; caller: Caller; session: null } | Refused> {
  const { clock, digestKey, servicePrefix } = management
  if (!signIns.begin(clientIp)) {
    return refused('too_many_sign_ins', 'Too many sign-ins have failed. Try again in a minute.')
  }
  // An API key is not looked up: the look-up would count as a use of the key.
  if (keyKindOf(key, servicePrefix) === 'live') {
    return refused('invalid_api_key', 'This is an API key. Sign in with an admin key.', 'admin_key')
  }
  const caller = await recognition.lookUpKey(digestKey(key), clock.nowMs()).catch((error: unknown) => {
    signIns.forgive(clientIp)
    throw error
  })
  if (caller.kind !== 'admin_key') {
    const isRevoked = caller.kind === 'refused' && caller.reason === 'revoked_key'
    const message = isRevoked ? 'This admin key was revoked.' : 'This is not an admin key of this gateway.'
    return refused('invalid_api_key', message, 'admin_key')
  }
  signIns.forgive(clientIp)
  return { kind: 'recognised', caller, session: null }
}
