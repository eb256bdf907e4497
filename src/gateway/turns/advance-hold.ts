import { limits } from '../../kernel/limits.ts'
import { type SocketTurn, turnRequest } from '../../providers/socket-turn.ts'
import type { PlannedCall } from '../call.ts'
import type { Gateway } from '../gateway.ts'
import type { BillPlan } from '../pricer.ts'
import { explainThrown, refuseTooManyModels } from '../refusals.ts'
import {
  admitBegunTurn,
  admitTurn,
  type PlannedTurn,
  refuseTurn,
  type TurnCall,
  TurnSettlements,
  type UnadmittedTurn,
} from './turn-call.ts'

/** A turn that upstream may begin by itself, as far as it is known before it begins. */
export interface Foreseen extends Omit<SocketTurn, 'atMs' | 'transcribedBy'> {
  /** Models that take part beside `model`; null for one that is not known. */
  readonly otherModels?: readonly (string | null)[]
  /** Models that may take the place of `model`: upstream may not have accepted a change yet. The hold is for the dearest of all. */
  readonly alternativeModels?: readonly (string | null)[]
  /** The session has no model until a message of the client names one, and that message waits to be judged. */
  readonly modelComesLater?: boolean
  /** Makes the plan, for work that is no turn of the session itself. */
  readonly plan?: () => PlannedTurn
}

/** A change of the hold that a message of the client needs before it may go upstream. */
interface RequestedChange {
  readonly foreseen: Foreseen
  /** The value of `#changes` with this change. */
  readonly changes: number
  onRefused(refused: RefusedHold): void
}

export type RefusedHold = UnadmittedTurn & { readonly kind: 'refused' }

const MODEL_UNKNOWN = 'The session does not say which model it goes by.'

export function planForeseen(foreseen: Foreseen, gateway: Gateway): PlannedTurn {
  const { otherModels = [], alternativeModels = [], modelComesLater = false, plan, ...known } = foreseen
  if (plan !== undefined) return plan()
  const turn = { ...known, transcribedBy: otherModels, atMs: gateway.clock.nowMs() }
  const { model } = turn
  const { endpoint, facts } = turnRequest(turn)
  const named =
    model === null && modelComesLater ? otherModels : [model, ...alternativeModels, ...otherModels]
  const bills = [model, ...alternativeModels].map((each) => gateway.pricer.planTurn({ ...turn, model: each }))
  return {
    read: { kind: 'read', body: { kind: 'none' }, facts, audio: null },
    request: { pieces: null, lengthBytes: 0, isForm: false, audioMs: null, speech: null },
    endpoint,
    plan: {
      modelAsked: model,
      models: {
        names: named.filter((name) => name !== null),
        unknown: named.includes(null) ? MODEL_UNKNOWN : null,
        batchFile: null,
      },
      ambiguity: null,
      bill: bills.reduce((dearest, bill) => (holdsMore(bill, dearest) ? bill : dearest)),
      reader: null,
      shows: null,
    },
  }
}

/** A bill that cannot be rated counts as the largest: it may come to anything. */
export function holdsMore(bill: BillPlan, than: BillPlan): boolean {
  if (bill.unratable !== null || than.unratable !== null) return than.unratable === null
  if (bill.hold.kind !== 'bound') return bill.hold.kind === 'unbounded'
  return than.hold.kind === 'bound' ? bill.hold.nanos > than.hold.nanos : than.hold.kind === 'none'
}

/** The client has asked upstream for this model, and upstream may or may not accept it. */
export function withAlternative(foreseen: Foreseen, model: string | null): Foreseen {
  const { alternativeModels = [] } = foreseen
  const isKnown = foreseen.model === model || alternativeModels.includes(model)
  return isKnown ? foreseen : { ...foreseen, alternativeModels: [...alternativeModels, model] }
}

/** Upstream shows that the session uses this model. One that was asked for before may still follow. */
export function withModel(foreseen: Foreseen, model: string | null): Foreseen {
  const { alternativeModels = [] } = withAlternative(foreseen, model)
  const others = [...alternativeModels, foreseen.model].filter((each) => each !== null && each !== model)
  return { ...foreseen, model, alternativeModels: others, modelComesLater: false }
}

/** Whether a limit of output tokens is above another one. Null is the limit of the model. */
export function raisesLimit(wanted: number | null, before: number | null): boolean {
  return before !== null && (wanted === null || wanted > before)
}

const TRANSCRIPTION_FIELD = 'session.audio.input.transcription.model'

/** The field that has named more models than one session may have. */
function fieldOverLimit({ kind, otherModels = [], alternativeModels = [] }: Foreseen): string | null {
  if (otherModels.length > limits.modelsPerSessionMax) return TRANSCRIPTION_FIELD
  if (alternativeModels.length <= limits.modelsPerSessionMax) return null
  return kind === 'transcription' ? TRANSCRIPTION_FIELD : 'session.model'
}

/**
 * Admits a turn that upstream has begun already. A turn that is refused is billed all the same, and `onRefused` closes the
 * socket; null where the socket is closed already. `onHeld`: the admission waits for calls in flight.
 */
async function admitLate(
  handshake: PlannedCall,
  planned: PlannedTurn,
  gateway: Gateway,
  onRefused: ((refused: RefusedHold) => void) | null,
  onHeld: () => void,
): Promise<TurnCall | null> {
  const admitted = onRefused === null ? null : await admitTurn(handshake, planned, gateway, { onHeld })
  if (admitted?.kind === 'admitted') return admitted.turn
  if (admitted?.kind === 'refused') onRefused?.(admitted)
  return await admitBegunTurn(handshake, planned, gateway)
}

/**
 * The hold of a socket for the next turn that upstream may begin by itself. A turn that begins takes the hold over, and the
 * socket then renews it. Near a cap the hold may be all that a key has left, so that it is always given back before another
 * one is acquired.
 */
export class AdvanceHold {
  readonly #handshake: PlannedCall
  readonly #gateway: Gateway
  readonly #onRefused: (refused: RefusedHold) => void
  readonly #onHeld: (admitted: Promise<unknown>) => void
  /** Settlements of holds that are given back. */
  readonly #settlements: TurnSettlements
  /** Null: upstream can begin nothing by itself, and nothing is held. */
  #foreseen: Foreseen | null
  /** How often `#foreseen` was set. A hold that was acquired for an earlier value is given back. */
  #changes = 0
  /** The hold itself, as an admitted turn that has not begun. */
  #turn: TurnCall | null = null
  /** Acquires the hold. Never rejects. */
  #pending: Promise<void> | null = null
  /** There should be a hold. A change that is refused puts the former one back only then. */
  #isWanted = false
  /** Turns that have begun without a hold and wait to be admitted. A hold that is given back is for them first. */
  readonly #lateAdmissions: Promise<unknown>[] = []
  /** The hold is renewed when `#lateAdmissions` is empty. */
  #renewsAfterLate = false
  /** `#pending` acquires the hold for this change, and judges it whatever upstream shows meanwhile. */
  #requested: RequestedChange | null = null
  /** `#pending` gives its hold back if it gets one before this, and acquires it again afterwards. */
  #yieldsUntil: Promise<unknown> | null = null
  #isOver = false

  /**
   * `onRefused`: a hold cannot be had. `onHeld`: acquiring the hold, or admitting a late turn, waits for calls in flight until
   * the given promise resolves.
   */
  constructor(
    handshake: PlannedCall,
    gateway: Gateway,
    foreseen: Foreseen | null,
    onRefused: (refused: RefusedHold) => void,
    onHeld: (admitted: Promise<unknown>) => void = () => {},
  ) {
    this.#handshake = handshake
    this.#gateway = gateway
    this.#foreseen = foreseen
    this.#onRefused = onRefused
    this.#onHeld = onHeld
    this.#settlements = new TurnSettlements(handshake.exchange.requestId, gateway, () => {})
  }

  get foreseen(): Foreseen | null {
    return this.#foreseen
  }

  /** The hold is being acquired. Messages of the client wait for it. */
  get pending(): Promise<void> | null {
    return this.#pending
  }

  /** A turn that has begun without a hold is being admitted. Messages of the client wait for it, too: they could begin more turns. */
  get lateAdmission(): Promise<unknown> | null {
    return this.#lateAdmissions[0] ?? null
  }

  /** A message of the client waits for its change of the hold. */
  get isChangeRequested(): boolean {
    return this.#requested !== null
  }

  /** Acquires the first hold, before the handshake goes upstream. Null: it may go. */
  async open(): Promise<UnadmittedTurn | null> {
    if (this.#foreseen === null) return null
    const planned = planForeseen(this.#foreseen, this.#gateway)
    const admitted = await admitTurn(this.#handshake, planned, this.#gateway, { isRecorded: false })
    if (admitted.kind !== 'admitted') return admitted
    this.#turn = admitted.turn
    return null
  }

  /** Hands the hold over to a turn, if there is one. `begins`: the turn begins now, and not when it was admitted. */
  take(begins = true): TurnCall | null {
    const turn = this.#turn
    this.#turn = null
    if (begins) turn?.startNow()
    return turn
  }

  /** The same for a turn that has begun already: without a hold it is admitted late. */
  async takeOrAdmit(foreseen: Foreseen, begins = true): Promise<TurnCall | null> {
    while (this.#pending !== null) await this.#pending
    const turn = this.take(begins)
    if (turn !== null) return turn
    const planned = planForeseen(foreseen, this.#gateway)
    const onRefused = this.#isOver ? null : this.#onRefused
    const onHeld = () => this.#onHeld(admitted)
    const admitted = admitLate(this.#handshake, planned, this.#gateway, onRefused, onHeld).finally(() => {
      this.#lateAdmissions.splice(this.#lateAdmissions.indexOf(admitted), 1)
      if (this.#renewsAfterLate) this.renew()
    })
    this.#lateAdmissions.push(admitted)
    return await admitted
  }

  /** Takes back the hold of a turn that did not begin. False: there is another hold, or a late admission waits for this one. */
  giveBack(turn: TurnCall): boolean {
    if (this.#foreseen === null || this.#isOver || this.#lateAdmissions.length > 0) return false
    this.#isWanted = true
    if (!this.#isMissing) return false
    const { plan } = planForeseen(this.#foreseen, this.#gateway)
    // The turn may have been smaller than what upstream may begin by itself.
    if (holdsMore(plan.bill, turn.call.plan.bill)) this.#acquire(this.#release(turn))
    else this.#turn = turn
    return true
  }

  /** Acquires the next hold, if there is none, when the turn before it is settled. */
  renew(settled: Promise<unknown> = Promise.resolve()): void {
    if (this.#foreseen === null || this.#isOver) return
    this.#isWanted = true
    this.#renewsAfterLate = this.#lateAdmissions.length > 0
    if (this.#isMissing && !this.#renewsAfterLate) this.#acquire(settled)
  }

  /** Acquires the hold for what a message of the client changes. Refused, all stays as it was, and the message must not go. */
  async requestChange(foreseen: Foreseen | null): Promise<RefusedHold | null> {
    const field = foreseen === null ? null : fieldOverLimit(foreseen)
    if (foreseen !== null && field !== null) {
      const planned = planForeseen(foreseen, this.#gateway)
      return refuseTurn(this.#handshake, planned, refuseTooManyModels(field), this.#gateway)
    }
    while (this.#pending !== null) await this.#pending
    const before = this.#foreseen
    this.#setForeseen(foreseen)
    this.#isWanted = this.#turn !== null
    const changes = this.#changes
    const refusals: RefusedHold[] = []
    const onRefused = (refused: RefusedHold) => {
      refusals.push(refused)
      // A change that upstream has shown meanwhile stays.
      const hasChangedSince = changes !== this.#changes
      if (!hasChangedSince) this.#setForeseen(before)
      if (this.#isWanted || hasChangedSince) this.renew()
    }
    await this.#acquire(this.#release(), foreseen && { foreseen, changes, onRefused })
    return refusals[0] ?? null
  }

  /** Acquires the hold for a change that upstream has made already. */
  applyChange(foreseen: Foreseen | null): void {
    this.#setForeseen(foreseen)
    if (this.#pending === null) this.#acquire(this.#release())
  }

  /** Upstream shows this limit of output tokens. A hold for a higher limit stays: it might not be had again. */
  applyOutputLimit(outputTokensMax: number | null): void {
    if (this.#foreseen === null) return
    const isRaised = raisesLimit(outputTokensMax, this.#foreseen.outputTokensMax)
    this.#foreseen = { ...this.#foreseen, outputTokensMax }
    if (isRaised) this.applyChange(this.#foreseen)
  }

  /**
   * Gives the hold back until a smaller admission of the same socket is through, which might wait for this very hold.
   * Resolves when it is given back.
   */
  async yieldTo(until: Promise<unknown>): Promise<void> {
    const turn = this.take(false)
    if (turn === null) {
      if (this.#pending !== null) this.#yieldsUntil = until
      return
    }
    const released = this.#release(turn)
    this.renew(Promise.all([released, until]))
    await released
  }

  /** Gives the hold back, and acquires no other one. */
  async end(): Promise<void> {
    this.#isOver = true
    await this.#release()
    await this.#pending
  }

  get #isMissing(): boolean {
    return this.#turn === null && this.#pending === null
  }

  /** One at a time: a second admission might wait for the hold of the first. */
  #acquire(settled: Promise<unknown>, requested: RequestedChange | null = null): Promise<void> {
    this.#requested = requested
    this.#pending = settled
      .then(() => this.#admit())
      .catch((error: unknown) => this.#refuseFor(error))
      .then((refused) => {
        const onRefused = this.#requested?.onRefused ?? this.#onRefused
        this.#requested = null
        this.#pending = null
        if (refused !== null) onRefused(refused)
      })
    return this.#pending
  }

  #refuseFor(error: unknown): RefusedHold {
    const { requestId } = this.#handshake.exchange
    const refusal = explainThrown(error, requestId, this.#gateway.log)
    return { kind: 'refused', refusal, requestId, balanceNanos: null }
  }

  #setForeseen(foreseen: Foreseen | null): void {
    this.#foreseen = foreseen
    this.#changes += 1
  }

  /** Admits until the hold is for the latest `#foreseen`. */
  async #admit(): Promise<RefusedHold | null> {
    while (!this.#isOver && this.#turn === null) {
      const { foreseen, changes } = this.#requested ?? { foreseen: this.#foreseen, changes: this.#changes }
      if (foreseen === null) return null
      const planned = planForeseen(foreseen, this.#gateway)
      const asked = admitTurn(this.#handshake, planned, this.#gateway, { onHeld: () => this.#onHeld(asked) })
      const admitted = await asked
      if (admitted.kind === 'client_left') return null
      // While the admission waited, `#foreseen` may have changed, and a hold may have been given back.
      const isLatest = changes === this.#changes
      if (admitted.kind === 'refused') {
        if ((isLatest || this.#requested !== null) && this.#turn === null) return admitted
      } else if (isLatest && !this.#isOver && this.#turn === null && this.#yieldsUntil === null)
        this.#turn = admitted.turn
      else await this.#release(admitted.turn)
      const yieldsUntil = this.#yieldsUntil
      this.#yieldsUntil = null
      if (yieldsUntil === null) this.#requested = null
      await yieldsUntil?.catch(() => {})
    }
    return null
  }

  /** Resolves when the hold is given back, or cannot be. */
  async #release(turn = this.take(false)): Promise<void> {
    if (turn !== null) await this.#settlements.add(turn.release())
  }
}
