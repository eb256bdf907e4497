import { isDeepStrictEqual } from 'node:util'
import type { CallEnd } from '../../http/upstream-call.ts'
import { delegatedBy } from '../../providers/live-events.ts'
import {
  type Delegate,
  isSound,
  type SessionEvent,
  type SessionSettings,
  sessionEvent,
  soundMs,
} from '../../providers/realtime-events.ts'
import { ADVANCE_MS } from '../../providers/socket-turn.ts'
import type { Message } from '../../sockets/message-reader.ts'
import type { PlannedCall } from '../call.ts'
import type { Gateway } from '../gateway.ts'
import {
  AdvanceHold,
  type Foreseen,
  goesBy,
  mayGoBy,
  planForeseen,
  type RefusedAdvance,
} from './advance-hold.ts'
import { DelegatedResponses } from './delegated-responses.ts'
import type { SessionClock, SessionModels } from './session-clocks.ts'
import { type ClientEvent, SessionDoor, wordBytes } from './session-door.ts'
import { type MeteredSocket, refusedBy, type SocketMeter, type Verdict } from './socket-meter.ts'
import { admitTurn, type TurnCall, TurnSettlements, withoutHold } from './turn-call.ts'

const PASS: Verdict = { kind: 'pass' }

/**
 * A session that is paid by the time it lasts: Live and translations. A minute is held in advance; when it is used up it is a
 * call, and nothing of the client's goes before the next one is held.
 */
export class TimedTurns implements SocketMeter {
  readonly beginsByItself: boolean
  readonly #handshake: PlannedCall
  readonly #gateway: Gateway
  readonly #door: SessionDoor
  readonly #clock: SessionClock
  /** What it was for when something was last held. */
  #last: Foreseen
  readonly #advance: AdvanceHold
  /** For what was sent and is not counted yet, beyond the first minute. */
  readonly #ahead: TurnCall[] = []
  readonly #settlements: TurnSettlements
  readonly #delegated: DelegatedResponses
  /** Another socket meters it. */
  #isResting = false
  #modelShown: string | null = null
  /** Undefined: one was asked for, and upstream has not said whether it takes it. */
  #transcriptionShown: SessionSettings['transcription'] = null

  constructor(handshake: PlannedCall, gateway: Gateway, foreseen: Foreseen, clock: SessionClock) {
    this.#handshake = handshake
    this.#gateway = gateway
    this.#clock = clock
    clock.takenOver = () => this.#rest()
    this.#last = foreseen
    // A translation is counted as it is sent.
    this.beginsByItself = foreseen.kind === 'live'
    this.#door = new SessionDoor(handshake, gateway, {
      pending: () =>
        this.#advance.pending ?? this.#delegated.pending ?? this.#advance.late ?? this.#delegated.late,
      foreseen: () => this.#foreseen,
      decide: (event, payload) => this.#decide(event, payload),
    })
    const closing = (refused: RefusedAdvance) => this.#door.close(refused)
    this.#advance = new AdvanceHold(handshake, gateway, foreseen, closing)
    const onEach = () => this.#door.turnEnded()
    this.#settlements = new TurnSettlements(handshake.exchange.requestId, gateway, onEach)
    const onIdle = (settled: Promise<void>) => this.#renewFirst(settled)
    this.#delegated = new DelegatedResponses(handshake, gateway, this.#settlements, closing, onIdle)
  }

  get running(): number {
    return this.#delegated.running
  }

  /** One that is attached to a session that is paid for here already holds nothing: it could wait for that very session. */
  async open() {
    if (!this.#clock.isMeteredHere) return await this.#advance.open()
    const planned = withoutHold(planForeseen(this.#foreseen, this.#gateway))
    const admitted = await admitTurn(this.#handshake, planned, this.#gateway, { isRecorded: false })
    if (admitted.kind !== 'admitted') return admitted
    await admitted.turn.release()
    this.#rest()
    return null
  }

  start(socket: MeteredSocket): void {
    this.#door.start(socket)
  }

  judge(message: Message): Verdict | Promise<Verdict> {
    return this.#door.judge(message)
  }

  observe(payload: Buffer): void {
    if (this.#door.isOver) return
    const event = sessionEvent(payload)
    if (event === null) return
    this.#clock.said(event)
    if (this.#clock.session !== null) this.#delegated.join(this.#clock.session)
    if (event.session !== null) this.#shown(event.session)
    if (this.#clock.isIdle) this.#rest()
    else if (this.#isResting) this.#resume()
    if (!isSound(event.type)) this.#delegated.came(event.deltaBytes)
    if (event.type === 'error') this.#delegated.failed(event.aboutEventId)
    this.#delegated.observe(event, payload, this.#clock.isIdle)
    this.#settleIfDue(event)
    this.#giveAheadBack()
  }

  paused(isPaused: boolean, isSlow: boolean): void {
    this.#delegated.paused(isPaused)
    this.#clock.paused(isSlow)
  }

  readOnMs(): number {
    return Math.max(this.#door.readOnMs(this.running, this.#delegated.isBusy), this.#delegated.readOnMs())
  }

  async end(abandoned: boolean): Promise<void> {
    const cut = this.#door.end(abandoned)
    if (cut !== null) {
      this.#delegated.end(cut)
      this.#giveAheadBack()
      this.#settlements.add(this.#settleLast(cut))
    }
    await this.#settlements.done()
  }

  async #settleLast(cut: CallEnd): Promise<void> {
    const used = this.#clock.take(this.#models, true)
    this.#clock.end()
    const last = this.#advance.take(false)
    const ended = this.#advance.end()
    const turn =
      last ??
      (used === null ? null : await this.#advance.takeOrAdmit({ ...this.#foreseen, model: this.#model }))
    await (used === null ? turn?.release() : turn?.endWith(used, cut))
    await ended
  }

  #decide(event: ClientEvent, payload: Buffer): Verdict | Promise<Verdict> {
    const { type, session, eventId, audioBytes } = event
    this.#delegated.came(wordBytes(event, payload))
    const kind = this.#last.kind === 'live' ? delegatedBy(type) : null
    if (kind !== null) return this.#delegated.ask(kind, event.response.model, eventId)
    if (session !== null) return this.#change(this.#changedBy(session), session.delegates, eventId)
    if (audioBytes === 0) return PASS
    const sent = () => {
      this.#clock.sent(audioBytes)
      this.#settleIfDue(null)
      this.#giveAheadBack()
    }
    const ms = soundMs(audioBytes, this.#clock.bytesPerMs)
    const passed: Verdict = { kind: 'pass', sent }
    return this.#clock.untoldMs + ms <= this.#heldMs ? passed : this.#holdAhead(ms, eventId, passed)
  }

  get #heldMs(): number {
    return ADVANCE_MS * (1 + this.#ahead.length)
  }

  /** A hold for each minute: one for all of them would be had while anything is left, however many they are. */
  async #holdAhead(ms: number, eventId: string | null, passed: Verdict): Promise<Verdict> {
    while (this.#clock.untoldMs + ms > this.#heldMs) {
      const planned = planForeseen({ ...this.#foreseen, model: this.#model }, this.#gateway)
      // Behind the larger hold of this socket it might wait for ever.
      const onHeld = () => void this.#delegated.standBack(asked)
      const asked = admitTurn(this.#handshake, planned, this.#gateway, { onHeld })
      const admitted = await asked
      if (admitted.kind === 'client_left') return { kind: 'dropped' }
      if (admitted.kind === 'refused') return refusedBy(admitted, eventId)
      this.#ahead.push(admitted.turn)
      if (!this.#door.isOver) continue
      this.#giveAheadBack()
      return { kind: 'dropped' }
    }
    return passed
  }

  /** What is counted by now needs no hold of its own any more. */
  #giveAheadBack(): void {
    const { isOver } = this.#door
    while (this.#ahead.length > 0 && (isOver || this.#clock.untoldMs <= this.#heldMs - ADVANCE_MS)) {
      const turn = this.#ahead.pop()
      if (turn !== undefined) this.#settlements.add(turn.release())
    }
  }

  /** Every model that takes part must be one that the key may use. */
  #changedBy({ model, transcription }: SessionSettings): Foreseen | null {
    const { foreseen } = this.#advance
    if (foreseen === null) return null
    const { others = [] } = foreseen
    const wanted = model === undefined ? foreseen : mayGoBy(foreseen, model)
    const named = transcription == null ? [] : [transcription.model]
    if (named.length > 0 && this.#transcriptionShown === null) this.#transcriptionShown = undefined
    if (wanted === foreseen && named.every((name) => others.includes(name))) return null
    const all = [...new Set([...others, ...named])]
    const isFirst = foreseen.model === null && model !== undefined
    return { ...(isFirst ? { ...foreseen, model } : wanted), others: all, isUnnamed: false }
  }

  async #change(
    next: Foreseen | null,
    delegates: readonly Delegate[],
    eventId: string | null,
  ): Promise<Verdict> {
    const before = this.#advance.foreseen
    if (before === null) {
      const refused = await this.#delegated.allow(delegates)
      return refused === null ? PASS : refusedBy(refused, eventId)
    }
    const first = next === null ? null : await this.#changeMinute(next)
    if (first !== null) return refusedBy(first, eventId)
    const refused = await this.#delegated.change(delegates)
    if (refused === null) return PASS
    if (next !== null) await this.#changeMinute(before)
    return refusedBy(refused, eventId)
  }

  /** It comes first: behind the larger hold it might wait for ever. */
  async #changeMinute(next: Foreseen): Promise<RefusedAdvance | null> {
    const changed = Promise.withResolvers<void>()
    await this.#delegated.standBack(changed.promise)
    try {
      return await this.#advance.change(next)
    } finally {
      changed.resolve()
      await this.#delegated.pending
    }
  }

  #shown({ model, transcription, delegates }: SessionSettings): void {
    const before = this.#models
    this.#modelShown = model ?? this.#modelShown
    if (transcription !== undefined) this.#transcriptionShown = transcription
    // What was used until now is paid for as it was used.
    if (!isDeepStrictEqual(before, this.#models)) this.#settleUsed(before)
    this.#delegated.learn(delegates)
    const { foreseen } = this.#advance
    if (foreseen === null || this.#clock.isIdle) return
    if (model !== undefined && (foreseen.model === null || foreseen.instead?.includes(model)))
      this.#advance.follow(goesBy(foreseen, model))
    this.#followDelegates()
  }

  #rest(): void {
    this.#isResting = true
    if (this.#advance.foreseen === null) return
    this.#last = this.#advance.foreseen
    this.#advance.follow(null)
    this.#delegated.rest()
  }

  /** Whoever has metered it has left, or does not read. */
  #resume(): void {
    this.#isResting = false
    this.#advance.follow({ ...this.#last, model: this.#model })
    this.#followDelegates()
  }

  get #foreseen(): Foreseen {
    return this.#advance.foreseen ?? this.#last
  }

  get #model(): string | null {
    return this.#modelShown ?? this.#foreseen.model
  }

  get #models(): SessionModels {
    const shown = this.#transcriptionShown
    const asked = shown === undefined ? (this.#foreseen.others ?? []).slice(-1) : []
    return { model: this.#model, transcribedBy: shown == null ? asked : [shown.model] }
  }

  #settleIfDue(event: SessionEvent | null): void {
    const isLast = event?.type === 'session.closed'
    if (isLast || this.#clock.isDue) this.#settleUsed(this.#models, isLast)
  }

  #settleUsed(models: SessionModels, isLast = false): void {
    const turn = this.#advance.take(false)
    if (turn === null && !isLast && this.#advance.pending === null && this.#delegated.isBusy) {
      this.#settlements.add(this.#settleUnheld(models))
      return
    }
    const used = turn === null ? null : this.#clock.take(models, false)
    if (turn === null || used === null) {
      if (turn !== null && !this.#advance.giveBack(turn)) this.#settlements.add(turn.release())
      return
    }
    const settled = this.#settlements.add(turn.endWith(used))
    if (isLast) this.#advance.follow(null)
    else this.#renew(settled)
  }

  /** What went without a hold is paid for like the rest. */
  async #settleUnheld(models: SessionModels): Promise<void> {
    const used = this.#clock.take(models, false)
    if (used === null) return
    const foreseen = { ...this.#foreseen, model: this.#model }
    const plan = () => withoutHold(planForeseen(foreseen, this.#gateway))
    const turn = await this.#advance.takeOrAdmit({ ...foreseen, plan }, false)
    await turn?.endWith(used)
    // What holds nothing is admitted by a key that has nothing left.
    const refused = await this.#door.refuseKey(true)
    if (refused !== null) this.#door.close(refused)
  }

  #followDelegates(): void {
    const { pending } = this.#advance
    const follow = () => this.#followDelegates()
    if (pending !== null) void pending.then(follow, follow)
    else if (!this.#clock.isIdle) this.#delegated.hold()
  }

  /** While others work, the next minute goes without: their hold is this socket's too, and it would wait for that. */
  #renew(settled: Promise<void>): void {
    if (this.#delegated.isBusy) return
    const had = Promise.withResolvers<void>()
    this.#advance.renew(Promise.all([settled, this.#delegated.standBack(had.promise)]))
    void (this.#advance.pending ?? settled).then(had.resolve, had.resolve)
  }

  /** What others did is over: before the next that they may do, the minute is held for that went without. */
  #renewFirst(settled: Promise<void>): Promise<unknown> {
    this.#advance.renew(settled)
    this.#followDelegates()
    return Promise.allSettled([settled, this.#advance.pending])
  }
}
