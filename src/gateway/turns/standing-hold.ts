import type { PlannedCall } from '../call.ts'
import type { Gateway } from '../gateway.ts'
import { explainThrown } from '../refusals.ts'
import { admitHold, checkHold, type PlannedTurn, type TurnCall, type UnadmittedTurn } from './turn-call.ts'

export type RefusedHold = UnadmittedTurn & { readonly kind: 'refused' }

/** The hold of a socket on which upstream may begin turns. A turn that begins takes it over; it is renewed after settlement. */
export class StandingHold {
  readonly #handshake: PlannedCall
  readonly #gateway: Gateway
  readonly #plan: () => PlannedTurn
  readonly #onRefused: (refused: RefusedHold) => void
  #turn: TurnCall | null = null
  #pending: Promise<void> | null = null
  #checking: Promise<void> | null = null
  #isOver = false

  constructor(
    handshake: PlannedCall,
    gateway: Gateway,
    plan: () => PlannedTurn,
    onRefused: (refused: RefusedHold) => void,
  ) {
    this.#handshake = handshake
    this.#gateway = gateway
    this.#plan = plan
    this.#onRefused = onRefused
  }

  /** The current renewal or check, for which client messages wait. Never rejects. */
  get pending(): Promise<void> | null {
    return this.#pending ?? this.#checking
  }

  async open(): Promise<UnadmittedTurn | null> {
    const admitted = await this.#admit()
    if (admitted.kind !== 'admitted') return admitted
    this.#turn = admitted.turn
    return null
  }

  /** Hands the hold to a turn that begins now. Null: another turn has it. */
  take(): TurnCall | null {
    const turn = this.#turn
    this.#turn = null
    turn?.startNow()
    return turn
  }

  /** Takes back the hold of a turn that did not begin. False: the socket has another, or is over. */
  putBack(turn: TurnCall): boolean {
    if (this.#isOver || this.#turn !== null || this.#pending !== null) return false
    this.#turn = turn
    return true
  }

  renew(settled: Promise<unknown>): void {
    if (this.#isOver || this.#turn !== null || this.#pending !== null) return
    this.#pending = this.#renew(settled)
  }

  /** Checks the limits after a settlement without a hold, such as a turn or transcript that upstream began. */
  check(settled: Promise<unknown>): void {
    const checking = this.#check(settled).finally(() => {
      if (this.#checking === checking) this.#checking = null
    })
    this.#checking = checking
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#turn?.release()
    this.#turn = null
    await this.#pending
  }

  async #check(settled: Promise<unknown>): Promise<void> {
    await settled.catch(() => {})
    if (this.#isOver) return
    const refused = await checkHold(this.#handshake, this.#plan(), this.#gateway)
    if (refused?.kind !== 'refused' || this.#isOver) return
    // With a revoked key, running turns finish and no more input passes.
    if (refused.refusal.code !== 'invalid_api_key') this.#onRefused(refused)
  }

  async #renew(settled: Promise<unknown>): Promise<void> {
    await settled
    const admitted = this.#isOver ? ({ kind: 'client_left' } as const) : await this.#admit()
    this.#pending = null
    if (admitted.kind === 'admitted') {
      if (this.#isOver) await admitted.turn.release().catch((error: unknown) => this.#explain(error))
      else this.#turn = admitted.turn
    } else if (admitted.kind === 'refused' && !this.#isOver) this.#onRefused(admitted)
  }

  async #admit() {
    try {
      return await admitHold(this.#handshake, this.#plan(), this.#gateway)
    } catch (error) {
      const { requestId } = this.#handshake.exchange
      return { kind: 'refused', requestId, refusal: this.#explain(error), balanceNanos: null } as const
    }
  }

  #explain(error: unknown) {
    return explainThrown(error, this.#handshake.exchange.requestId, this.#gateway.log)
  }
}
