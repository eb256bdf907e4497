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

/** What a hold in advance is for. */
export interface Foreseen extends Omit<SocketTurn, 'atMs' | 'transcribedBy'> {
  /** Other models that may take part; null for one that is not known. */
  readonly others?: readonly (string | null)[]
  /** Models that it may go by in place of its own: one that was asked for may not be taken. The dearest is held for. */
  readonly instead?: readonly (string | null)[]
  /** None takes part before a message names it, which then waits to be judged. */
  readonly isUnnamed?: boolean
  /** Where it is no turn of the session's own. */
  readonly plan?: () => PlannedTurn
}

/** What a client wants a hold to be for. */
interface Change {
  readonly foreseen: Foreseen
  readonly changes: number
  onRefused(refused: RefusedAdvance): void
}

export type RefusedAdvance = UnadmittedTurn & { readonly kind: 'refused' }

const MODEL_UNKNOWN = 'The session does not say which model it goes by.'

/** A turn of which no message says what it will be. */
export function planForeseen(foreseen: Foreseen, gateway: Gateway): PlannedTurn {
  const { others = [], instead = [], isUnnamed = false, plan, ...foreseenTurn } = foreseen
  if (plan !== undefined) return plan()
  const turn = { ...foreseenTurn, transcribedBy: others, atMs: gateway.clock.nowMs() }
  const { model } = turn
  const { endpoint, facts } = turnRequest(turn)
  const named = model === null && isUnnamed ? others : [model, ...instead, ...others]
  const bills = [model, ...instead].map((each) => gateway.pricer.planTurn({ ...turn, model: each }))
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

/** What cannot be rated may cost anything. */
export function holdsMore(bill: BillPlan, than: BillPlan): boolean {
  if (bill.unratable !== null || than.unratable !== null) return than.unratable === null
  if (bill.hold.kind !== 'bound') return bill.hold.kind === 'unbounded'
  return than.hold.kind === 'bound' ? bill.hold.nanos > than.hold.nanos : than.hold.kind === 'none'
}

/** It was asked to go by this model, and may. */
export function mayGoBy(foreseen: Foreseen, model: string | null): Foreseen {
  const { instead = [] } = foreseen
  const isKnown = foreseen.model === model || instead.includes(model)
  return isKnown ? foreseen : { ...foreseen, instead: [...instead, model] }
}

const TRANSCRIPTION_FIELD = 'session.audio.input.transcription.model'

/** The field that has named more models than are priced for one session. */
function tooManyIn({ kind, others = [], instead = [] }: Foreseen): string | null {
  if (others.length > limits.modelsPerSessionMax) return TRANSCRIPTION_FIELD
  if (instead.length <= limits.modelsPerSessionMax) return null
  return kind === 'transcription' ? TRANSCRIPTION_FIELD : 'session.model'
}

/** Upstream shows that it goes by this model. Another that was asked for may still come. */
export function goesBy(foreseen: Foreseen, model: string | null): Foreseen {
  const { instead = [] } = mayGoBy(foreseen, model)
  const before = [...instead, foreseen.model].filter((each) => each !== null && each !== model)
  return { ...foreseen, model, instead: before, isUnnamed: false }
}

/**
 * Admits what upstream has begun by itself. What may not be is billed all the same, and `onRefused` closes the socket; null where
 * that is closed already.
 */
export async function admitLate(
  handshake: PlannedCall,
  planned: PlannedTurn,
  gateway: Gateway,
  onRefused: ((refused: RefusedAdvance) => void) | null,
  onHeld: () => void,
): Promise<TurnCall | null> {
  const admitted = onRefused === null ? null : await admitTurn(handshake, planned, gateway, { onHeld })
  if (admitted?.kind === 'admitted') return admitted.turn
  if (admitted?.kind === 'refused') onRefused?.(admitted)
  return await admitBegunTurn(handshake, planned, gateway)
}

/** Of two limits of output, of which null is that of the model. */
export function mayBeMore(wanted: number | null, before: number | null): boolean {
  return before !== null && (wanted === null || wanted > before)
}

/** The hold that a socket has for what upstream may begin by itself. */
export class AdvanceHold {
  readonly #handshake: PlannedCall
  readonly #gateway: Gateway
  readonly #onRefused: (refused: RefusedAdvance) => void
  readonly #onHeld: (admitted: Promise<unknown>) => void
  /** Of what is given back. */
  readonly #settlements: TurnSettlements
  /** Null: nothing can begin that it would be for. */
  #foreseen: Foreseen | null
  /** How often it has become something else. */
  #changes = 0
  #turn: TurnCall | null = null
  #pending: Promise<void> | null = null
  /** There is to be one, also where what is being had cannot be. */
  #isDue = false
  /** Those that have begun and wait to be admitted: what is given back may be all that they wait for. */
  readonly #late: Promise<unknown>[] = []
  /** One is to be had when they are. */
  #isOwed = false
  /** What is being had is for this, and judged whatever upstream shows meanwhile. */
  #change: Change | null = null
  /** What is being had comes after this, and is given back if it is there before. */
  #behind: Promise<unknown> | null = null
  #isOver = false

  /** `onHeld`: other calls hold what is left, until it is admitted it waits for them. */
  constructor(
    handshake: PlannedCall,
    gateway: Gateway,
    foreseen: Foreseen | null,
    onRefused: (refused: RefusedAdvance) => void,
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

  /** While it is being had, nothing of the client's goes upstream. */
  get pending(): Promise<void> | null {
    return this.#pending
  }

  /** Nor while something that has begun without one waits to be admitted: it would go on to have more begun. */
  get late(): Promise<unknown> | null {
    return this.#late[0] ?? null
  }

  /** Has the first one, before the handshake goes. Null: it is there. */
  async open(): Promise<UnadmittedTurn | null> {
    if (this.#foreseen === null) return null
    const planned = planForeseen(this.#foreseen, this.#gateway)
    const admitted = await admitTurn(this.#handshake, planned, this.#gateway, { isRecorded: false })
    if (admitted.kind !== 'admitted') return admitted
    this.#turn = admitted.turn
    return null
  }

  /** A turn takes it over, if it is there. `begins`: with this, and not when it was admitted. */
  take(begins = true): TurnCall | null {
    const turn = this.#turn
    this.#turn = null
    if (begins) turn?.takenOver()
    return turn
  }

  /** The same for a turn that has begun already. Where nothing is held for it, it is admitted now. */
  async takeOrAdmit(foreseen: Foreseen, begins = true): Promise<TurnCall | null> {
    while (this.#pending !== null) await this.#pending
    const turn = this.take(begins)
    if (turn !== null) return turn
    const planned = planForeseen(foreseen, this.#gateway)
    const onRefused = this.#isOver ? null : this.#onRefused
    const onHeld = () => this.#onHeld(admitted)
    const admitted = admitLate(this.#handshake, planned, this.#gateway, onRefused, onHeld).finally(() => {
      this.#late.splice(this.#late.indexOf(admitted), 1)
      if (this.#isOwed) this.renew()
    })
    this.#late.push(admitted)
    return await admitted
  }

  /** A turn that did not begin after all. False: there is another one already, or something else waits for it. */
  giveBack(turn: TurnCall): boolean {
    if (this.#foreseen === null || this.#isOver || this.#late.length > 0) return false
    this.#isDue = true
    if (!this.#isMissing) return false
    const { plan } = planForeseen(this.#foreseen, this.#gateway)
    // It may have been asked to do less than what may begin by itself.
    if (holdsMore(plan.bill, turn.call.plan.bill)) this.#have(this.#release(turn))
    else this.#turn = turn
    return true
  }

  /** Has the next one, if there is none, when what was before it is settled. */
  renew(settled: Promise<unknown> = Promise.resolve()): void {
    if (this.#foreseen === null || this.#isOver) return
    this.#isDue = true
    this.#isOwed = this.#late.length > 0
    if (this.#isMissing && !this.#isOwed) this.#have(settled)
  }

  /**
   * From now on it is for something else. What is held is given back first: it may be all that is left. Refused, all stays
   * as it was.
   */
  async change(foreseen: Foreseen | null): Promise<RefusedAdvance | null> {
    const field = foreseen === null ? null : tooManyIn(foreseen)
    if (foreseen !== null && field !== null) {
      const planned = planForeseen(foreseen, this.#gateway)
      return refuseTurn(this.#handshake, planned, refuseTooManyModels(field), this.#gateway)
    }
    while (this.#pending !== null) await this.#pending
    const before = this.#foreseen
    this.#foresee(foreseen)
    this.#isDue = this.#turn !== null
    const changes = this.#changes
    const refusals: RefusedAdvance[] = []
    const onRefused = (refused: RefusedAdvance) => {
      refusals.push(refused)
      // What upstream has shown meanwhile counts.
      const isFollowed = changes !== this.#changes
      if (!isFollowed) this.#foresee(before)
      if (this.#isDue || isFollowed) this.renew()
    }
    await this.#have(this.#release(), foreseen && { foreseen, changes, onRefused })
    return refusals[0] ?? null
  }

  /** What a client wants it to be for is being judged. */
  get isChanging(): boolean {
    return this.#change !== null
  }

  /** The same where upstream has changed it already. */
  follow(foreseen: Foreseen | null): void {
    this.#foresee(foreseen)
    if (this.#pending === null) this.#have(this.#release())
  }

  /** Upstream shows this limit. A hold that is larger than it has to be stays: it could not be had again for certain. */
  limit(outputTokensMax: number | null): void {
    if (this.#foreseen === null) return
    const isMore = mayBeMore(outputTokensMax, this.#foreseen.outputTokensMax)
    this.#foreseen = { ...this.#foreseen, outputTokensMax }
    if (isMore) this.follow(this.#foreseen)
  }

  /** Gives it back until something smaller is had, which behind it might wait for ever. Resolves when it is given back. */
  async standBack(until: Promise<unknown>): Promise<void> {
    const turn = this.take(false)
    if (turn === null) {
      if (this.#pending !== null) this.#behind = until
      return
    }
    const released = this.#release(turn)
    this.renew(Promise.all([released, until]))
    await released
  }

  /** Nothing more is had. */
  async end(): Promise<void> {
    this.#isOver = true
    await this.#release()
    await this.#pending
  }

  get #isMissing(): boolean {
    return this.#turn === null && this.#pending === null
  }

  /** One at a time: a second one might wait for what the first has got. */
  #have(settled: Promise<unknown>, change: Change | null = null): Promise<void> {
    this.#change = change
    this.#pending = settled
      .then(() => this.#admit())
      .catch((error: unknown) => this.#refuseFor(error))
      .then((refused) => {
        const onRefused = this.#change?.onRefused ?? this.#onRefused
        this.#change = null
        this.#pending = null
        if (refused !== null) onRefused(refused)
      })
    return this.#pending
  }

  #refuseFor(error: unknown): RefusedAdvance {
    const { requestId } = this.#handshake.exchange
    const refusal = explainThrown(error, requestId, this.#gateway.log)
    return { kind: 'refused', refusal, requestId, balanceNanos: null }
  }

  #foresee(foreseen: Foreseen | null): void {
    this.#foreseen = foreseen
    this.#changes += 1
  }

  async #admit(): Promise<RefusedAdvance | null> {
    while (!this.#isOver && this.#turn === null) {
      const { foreseen, changes } = this.#change ?? { foreseen: this.#foreseen, changes: this.#changes }
      if (foreseen === null) return null
      const planned = planForeseen(foreseen, this.#gateway)
      const asked = admitTurn(this.#handshake, planned, this.#gateway, { onHeld: () => this.#onHeld(asked) })
      const admitted = await asked
      if (admitted.kind === 'client_left') return null
      // Meanwhile it may have become something else, or another one was had.
      const isWanted = changes === this.#changes
      if (admitted.kind === 'refused') {
        if ((isWanted || this.#change !== null) && this.#turn === null) return admitted
      } else if (isWanted && !this.#isOver && this.#turn === null && this.#behind === null)
        this.#turn = admitted.turn
      else await this.#release(admitted.turn)
      const behind = this.#behind
      this.#behind = null
      if (behind === null) this.#change = null
      await behind?.catch(() => {})
    }
    return null
  }

  /** Resolves when it is given back, or cannot be. */
  async #release(turn = this.take(false)): Promise<void> {
    if (turn !== null) await this.#settlements.add(turn.release())
  }
}
