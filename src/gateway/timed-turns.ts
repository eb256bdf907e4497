import { refuse } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import { ambiguityOf } from '../providers/ambiguity.ts'
import {
  type SessionEvent,
  type SessionMessage,
  type SessionSettings,
  sessionEvent,
  sessionMessage,
} from '../providers/realtime-events.ts'
import type { Message } from '../sockets/message-reader.ts'
import { AdvanceHold, type Foreseen, planForeseen, type RefusedAdvance } from './advance-hold.ts'
import type { PlannedCall } from './call.ts'
import { DelegatedResponses } from './delegated-responses.ts'
import type { CallEnd } from './forward.ts'
import type { Gateway } from './gateway.ts'
import type { SessionClock } from './session-clocks.ts'
import type { MeteredSocket, SocketMeter, Verdict } from './socket-meter.ts'
import { refuseTurn } from './turn-call.ts'
import { TurnSettlements } from './turn-settlements.ts'

const PASS: Verdict = { kind: 'pass' }

/**
 * A session that is paid by the time it lasts: Live and translations. A minute is held in advance; when it is used up it is a
 * call, and nothing of the client's goes before the next one is held.
 */
export class TimedTurns implements SocketMeter {
  readonly #handshake: PlannedCall
  readonly #gateway: Gateway
  readonly #clock: SessionClock
  /** What it was for when something was last held. */
  #last: Foreseen
  readonly #advance: AdvanceHold
  readonly #settlements: TurnSettlements
  readonly #delegated: DelegatedResponses
  #socket: MeteredSocket | null = null
  #modelShown: string | null = null
  #isOver = false

  constructor(handshake: PlannedCall, gateway: Gateway, foreseen: Foreseen, clock: SessionClock) {
    this.#handshake = handshake
    this.#gateway = gateway
    this.#clock = clock
    this.#last = foreseen
    const closing = (refused: RefusedAdvance) => this.#close(refused)
    this.#advance = new AdvanceHold(handshake, gateway, foreseen, closing)
    const onEach = () => this.#socket?.turnEnded()
    this.#settlements = new TurnSettlements(handshake.exchange.requestId, gateway, onEach)
    this.#delegated = new DelegatedResponses(handshake, gateway, this.#settlements, closing)
  }

  get running(): number {
    return this.#delegated.running
  }

  open() {
    return this.#advance.open()
  }

  start(socket: MeteredSocket): void {
    this.#socket = socket
  }

  judge(message: Message): Verdict | Promise<Verdict> {
    if (message.kind !== 'message') {
      return this.#refuseUnread(ambiguityOf({ kind: 'unreadable', reason: message.why })?.detail ?? '')
    }
    const read = sessionMessage(message.payload)
    if (this.#advance.pending === null && !(read instanceof Promise)) return this.#decide(read)
    return this.#decideLater(read)
  }

  observe(payload: Buffer): void {
    if (this.#isOver) return
    const event = sessionEvent(payload)
    if (event === null) return
    const wasIdle = this.#clock.isIdle
    this.#clock.said(event)
    if (wasIdle && !this.#clock.isIdle) this.#advance.follow({ ...this.#last, model: this.#model })
    if (event.session !== null) this.#shown(event.session)
    if (!this.#clock.isIdle) this.#delegated.observe(event.type, payload, this.#delegate)
    this.#settleIfDue(event)
  }

  paused(isPaused: boolean): void {
    this.#delegated.paused(isPaused)
  }

  readOnMs(): number {
    if (this.running === 0) return 0
    return this.#gateway.onLeave === 'finish' ? limits.finishMs : limits.readOnMs
  }

  async end(abandoned: boolean): Promise<void> {
    if (!this.#isOver) {
      this.#isOver = true
      const error = new Error('upstream closed the socket')
      const cut: CallEnd = abandoned ? { kind: 'abandoned', sent: true } : { kind: 'cut', error }
      this.#delegated.end(cut)
      this.#settlements.add(this.#settleLast(cut))
    }
    await this.#settlements.done()
  }

  async #settleLast(cut: CallEnd): Promise<void> {
    const used = this.#clock.take(this.#model, true)
    this.#clock.end()
    const last = this.#advance.take(false)
    const ended = this.#advance.end()
    const turn =
      last ??
      (used === null ? null : await this.#advance.takeOrAdmit({ ...this.#foreseen, model: this.#model }))
    await (used === null ? turn?.release() : turn?.endWith(used, cut))
    await ended
  }

  async #decideLater(read: SessionMessage | Promise<SessionMessage>): Promise<Verdict> {
    const event = await read
    while (this.#advance.pending !== null) await this.#advance.pending
    return this.#isOver ? { kind: 'dropped' } : await this.#decide(event)
  }

  #decide(event: SessionMessage): Verdict | Promise<Verdict> {
    if (event.kind === 'unreadable') return this.#refuseUnread(event.detail)
    const next = event.session === null ? null : this.#changedBy(event.session)
    if (next !== null) return this.#change(next, event.eventId)
    if (event.audioBytes === 0) return PASS
    const { audioBytes } = event
    return {
      kind: 'pass',
      sent: () => {
        this.#clock.sent(audioBytes)
        this.#settleIfDue(null)
      },
    }
  }

  /** Every model that takes part must be one that the key may use. */
  #changedBy({ model, delegates, transcription }: SessionSettings): Foreseen | null {
    const { foreseen } = this.#advance
    if (foreseen === null) return null
    const { others = [] } = foreseen
    const named = [...(delegates ?? []), ...(transcription == null ? [] : [transcription.model])]
    const isNew =
      (model !== undefined && model !== foreseen.model) || named.some((name) => !others.includes(name))
    if (!isNew) return null
    const all = [...new Set([...others, ...named])]
    return { ...foreseen, model: model ?? foreseen.model, others: all, isUnnamed: false }
  }

  async #change(next: Foreseen, eventId: string | null): Promise<Verdict> {
    const refused = await this.#advance.change(next)
    if (refused === null) return PASS
    const { refusal, requestId } = refused
    return { kind: 'refused', refusal, about: { requestId, streamId: null, eventId } }
  }

  #refuseUnread(detail: string): Verdict {
    const planned = planForeseen(this.#foreseen, this.#gateway)
    const refusal = refuse('bad_request', detail)
    const { requestId } = refuseTurn(this.#handshake, planned, refusal, this.#gateway)
    return { kind: 'refused', refusal, about: { requestId, streamId: null, eventId: null } }
  }

  #shown({ model, delegates }: SessionSettings): void {
    this.#modelShown = model ?? this.#modelShown
    this.#delegate = delegates?.find((name) => name !== null) ?? this.#delegate
    const { foreseen } = this.#advance
    if (foreseen === null) return
    if (this.#clock.isIdle) {
      this.#last = foreseen
      this.#advance.follow(null)
    } else if (foreseen.model === null && model !== undefined) this.#advance.follow({ ...foreseen, model })
  }

  /** The model that works for the session. */
  #delegate: string | null = null

  get #foreseen(): Foreseen {
    return this.#advance.foreseen ?? this.#last
  }

  get #model(): string | null {
    return this.#modelShown ?? this.#foreseen.model
  }

  #settleIfDue(event: SessionEvent | null): void {
    const isLast = event?.type === 'session.closed'
    if (!isLast && !this.#clock.isDue) return
    const turn = this.#advance.take(false)
    const used = turn === null ? null : this.#clock.take(this.#model, false)
    if (turn === null || used === null) {
      if (turn !== null && !this.#advance.giveBack(turn)) this.#settlements.add(turn.release())
      return
    }
    const settled = this.#settlements.add(turn.endWith(used))
    if (isLast) this.#advance.follow(null)
    else this.#advance.renew(settled)
  }

  #close({ refusal, requestId }: RefusedAdvance): void {
    this.#socket?.refuse(refusal, { requestId, streamId: null, eventId: null })
    this.#socket?.close(1008, refusal.message)
  }
}
