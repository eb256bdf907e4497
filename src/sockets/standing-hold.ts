import type { Work } from '../calls/ask.ts'
import type { Refusal } from '../kernel/errors.ts'
import { NO_LANE } from './lanes.ts'
import type { MeteredSocket, SocketProtocol } from './socket-protocol.ts'
import type { AdmittedTurn, TurnAdmission, UnadmittedTurn } from './turn-admission.ts'
import type { TurnCall } from './turn-call.ts'

/** The hold of a socket on which upstream may begin turns. A turn takes it over; it is renewed afterwards. */
export class StandingHold {
  readonly #admission: TurnAdmission
  readonly #protocol: SocketProtocol
  #socket: MeteredSocket | null = null
  #turn: TurnCall | null = null
  #pending: Promise<void> | null = null
  #isRefused = false
  #isOver = false

  constructor(admission: TurnAdmission, protocol: SocketProtocol) {
    this.#admission = admission
    this.#protocol = protocol
  }

  /** The current renewals and checks, for which client messages wait. Never rejects. */
  get pending(): Promise<void> | null {
    return this.#pending
  }

  async open(): Promise<UnadmittedTurn | null> {
    const admitted = await this.#admit()
    if (admitted.kind !== 'admitted') return admitted
    this.#turn = admitted.turn
    return null
  }

  start(socket: MeteredSocket): void {
    this.#socket = socket
  }

  /** Gives the hold to a turn that the client begins, if the limits still permit it. Null: another turn has it. */
  async takeFor(planned: Work): Promise<AdmittedTurn | null> {
    const turn = this.#take()
    if (turn === null) return null
    const checked = await this.#admission.check(planned)
    if (checked.kind !== 'permitted') {
      if (!this.putBack(turn)) await drop(turn)
      return checked.kind === 'refused' ? this.#admission.refuse(planned, checked.refusal) : checked
    }
    if (turn.isUpToDate(planned, checked.discountBillionths))
      return { kind: 'admitted', turn: turn.startNow() }
    await drop(turn)
    const admitted = await this.#admit()
    if (admitted.kind === 'refused') return this.#admission.refuse(planned, admitted.refusal)
    return admitted.kind === 'admitted' ? { ...admitted, turn: admitted.turn.startNow() } : admitted
  }

  /** Gives the hold to a turn that upstream has begun. Null: another turn has it, or it is outdated. */
  async takeBegun(): Promise<TurnCall | null> {
    while (this.#pending !== null) await this.#pending
    const turn = this.#take()
    const planned = this.#protocol.planUnrequested()
    const checked = await this.#admission.check(planned, true)
    if (checked.kind === 'refused' && isRevocation(checked.refusal)) this.#refuse(checked.refusal)
    if (turn === null) return null
    if (checked.kind !== 'permitted' || turn.isUpToDate(planned, checked.discountBillionths))
      return turn.startNow()
    await drop(turn)
    return null
  }

  /** Takes back the hold of a turn that did not begin. Returns false if the socket gets another hold, or is closed. */
  putBack(turn: TurnCall): boolean {
    if (this.#isOver || this.#turn !== null || this.#pending !== null) return false
    this.#turn = turn
    return true
  }

  renew(settled: Promise<unknown>): void {
    this.#queue(async () => {
      await settled
      if (this.#isOver || this.#turn !== null) return
      const admitted = await this.#admit()
      if (admitted.kind === 'refused') this.#refuse(admitted.refusal)
      if (admitted.kind !== 'admitted') return
      if (this.#isOver) await drop(admitted.turn)
      else this.#turn = admitted.turn
    })
  }

  /** Checks the limits after a turn or transcript without a hold was settled. */
  check(settled: Promise<unknown>): void {
    this.#queue(async () => {
      await settled.catch(() => {})
      if (this.#isOver || this.#isRefused) return
      const checked = await this.#admission.check(this.#protocol.planUnrequested(), true)
      // With a revoked key, running turns and transcripts finish.
      if (checked.kind === 'refused' && !isRevocation(checked.refusal)) this.#refuse(checked.refusal)
    })
  }

  async end(): Promise<void> {
    this.#isOver = true
    await this.#pending
    await this.#take()?.release()
  }

  #take(): TurnCall | null {
    const turn = this.#turn
    this.#turn = null
    return turn
  }

  #admit(): Promise<AdmittedTurn> {
    return this.#admission.admit(this.#protocol.planUnrequested(), true)
  }

  #queue(task: () => Promise<void>): void {
    const pending = (this.#pending ?? Promise.resolve())
      .then(task)
      .catch(() => {})
      .finally(() => {
        if (this.#pending === pending) this.#pending = null
      })
    this.#pending = pending
  }

  /** The first refusal closes the socket before more input is forwarded; for a revoked key, after its last turn. */
  #refuse(refusal: Refusal): void {
    if (this.#isOver || this.#isRefused) return
    this.#isRefused = true
    const { requestId } = this.#admission.refuse(this.#protocol.planUnrequested(), refusal)
    this.#socket?.refuse(refusal, { requestId, lane: NO_LANE, tag: null })
    if (isRevocation(refusal)) this.#socket?.keyRevoked()
    else this.#socket?.close(1008, refusal.message)
  }
}

function isRevocation({ code }: Refusal): boolean {
  return code === 'invalid_api_key'
}

/** If the store refuses the release, the outbox logs it; that must not stop the new turn. */
async function drop(turn: TurnCall): Promise<void> {
  await turn.release().catch(() => {})
}
