import { admit, admitBegun, checkAsk } from '../calls/admit.ts'
import type { Ask, Work } from '../calls/ask.ts'
import type { CallPlan } from '../calls/call-plan.ts'
import type { Hold } from '../calls/hold.ts'
import type { KeyShare } from '../calls/key-shares.ts'
import { refuseTooManyCalls } from '../calls/refusals.ts'
import type { Handshake } from '../http-calls/call.ts'
import type { Gateway } from '../http-calls/gateway.ts'
import { upstreamFor } from '../http-calls/own-upstreams.ts'
import { explainThrown, recordRefusal } from '../http-calls/refusals.ts'
import type { Denial, Refusal } from '../kernel/errors.ts'
import { NO_MODELS } from '../kernel/model-names.ts'
import { TurnCall } from './turn-call.ts'

export type UnadmittedTurn =
  | ({ readonly kind: 'refused'; readonly requestId: string } & Denial)
  | { readonly kind: 'client_left' }

export type AdmittedTurn = { readonly kind: 'admitted'; readonly turn: TurnCall } | UnadmittedTurn

/** Admits the turns of a socket as separate calls, each with an id, a hold and a record. */
export class TurnAdmission {
  readonly #handshake: Handshake
  readonly #gateway: Gateway

  constructor(handshake: Handshake, gateway: Gateway) {
    this.#handshake = handshake
    this.#gateway = gateway
  }

  /** `isStanding`: takes a hold for a turn that has not begun, which the request log does not show. */
  async admit(work: Work, isStanding = false): Promise<AdmittedTurn> {
    const { keyShares } = this.#gateway
    const share = keyShares.enter(this.#handshake.caller.digest)
    if (share === null) return this.refuse(work, refuseTooManyCalls(keyShares.callsMax), isStanding)
    const ask = this.#askFor(work, isStanding)
    const admission = await admit(ask, this.#gateway).catch((error: unknown) => this.#explain(error, ask))
    if (admission.kind === 'admitted') {
      this.#gateway.reached('admitted')
      return { kind: 'admitted', turn: this.#turnOf(admission.hold, share) }
    }
    keyShares.leave(share)
    return admission.kind === 'refused' ? this.#refuseAsk(ask, admission) : admission
  }

  /** Admits a turn that upstream has begun. It costs money, so no limit refuses it. Null: it cannot be billed. */
  async admitBegun(work: Work): Promise<TurnCall | null> {
    const { keyShares, log } = this.#gateway
    const profile: CallPlan = { ...work.profile, hold: { kind: 'none' }, unratable: null, models: NO_MODELS }
    const ask = this.#askFor({ ...work, profile, ambiguity: null }, false)
    const share = keyShares.enterUnlimited(this.#handshake.caller.digest)
    const hold = await admitBegun(ask, this.#gateway).catch((error: unknown) => {
      this.#explain(error, ask)
      return null
    })
    if (hold !== null) return this.#turnOf(hold, share)
    keyShares.leave(share)
    const about = { request: ask.requestId, socket: ask.socketId }
    log.error(about, 'upstream began a turn without a request, and it cannot be billed')
    return null
  }

  /** The call goes to the upstream of its account, like an HTTP request. */
  #turnOf(hold: Hold, share: KeyShare): TurnCall {
    const { upstream: own, accountId } = hold.terms
    const upstream = upstreamFor(accountId, own, hold.ask.surface, this.#gateway) ?? this.#handshake.upstream
    if (own !== null) hold.uses(upstream.key)
    const { headers } = this.#handshake.exchange
    return new TurnCall({ hold, share, upstream, headers }, this.#gateway)
  }

  /** Checks a turn that takes over a hold, or the models of a message, as admission would. Records nothing. */
  check(work: Work, isStanding = false) {
    const ask = this.#askFor(work, isStanding)
    return checkAsk(ask, this.#gateway).catch((error: unknown) => this.#explain(error, ask))
  }

  /** A socket stays open while the database is unavailable. */
  #explain(error: unknown, { requestId }: Ask) {
    return refused(explainThrown(error, requestId, this.#gateway.log))
  }

  refuse(work: Work, refusal: Refusal, isStanding = false) {
    return this.#refuseAsk(this.#askFor(work, isStanding), refused(refusal))
  }

  #refuseAsk(ask: Ask, denial: Denial) {
    const { headers } = this.#handshake.exchange
    if (ask.isStanding !== true) recordRefusal(ask, denial.refusal, this.#gateway, headers, ask.profile.model)
    return { ...denial, kind: 'refused', requestId: ask.requestId } as const
  }

  #askFor(work: Work, isStanding: boolean): Ask {
    const { requestId: socketId, caller, surface, path } = this.#handshake
    const requestId = this.#gateway.nextRequestId()
    return { ...work, requestId, caller, surface, method: 'WS', path, socketId, isStanding }
  }
}

function refused(refusal: Refusal) {
  return { kind: 'refused', refusal, balanceNanos: null } as const
}
