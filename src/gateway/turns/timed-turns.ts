import { isDeepStrictEqual } from 'node:util'
import type { CallEnd } from '../../http/upstream-call.ts'
import { delegatedBy } from '../../providers/live-events.ts'
import {
  audioMs,
  type Delegate,
  isAudioDelta,
  type SessionEvent,
  type SessionSettings,
  sessionEvent,
} from '../../providers/realtime-events.ts'
import { ADVANCE_MS } from '../../providers/socket-turn.ts'
import type { Message } from '../../sockets/message-reader.ts'
import type { PlannedCall } from '../call.ts'
import type { Gateway } from '../gateway.ts'
import {
  AdvanceHold,
  type Foreseen,
  planForeseen,
  type RefusedHold,
  withAlternative,
  withModel,
} from './advance-hold.ts'
import { DelegatedResponses } from './delegated-responses.ts'
import type { SessionClock, SessionModels } from './session-clocks.ts'
import { type ClientEvent, SessionDoor, textBytesOf } from './session-door.ts'
import { type MeteredSocket, refusedBy, type SocketMeter, type Verdict } from './socket-meter.ts'
import { admitTurn, type TurnCall, TurnSettlements, withoutHold } from './turn-call.ts'

const PASS: Verdict = { kind: 'pass' }

/**
 * The turns of a session that is paid by the time: Live and translations. Each minute is a call with a hold in advance, and
 * messages of the client wait until the next minute is held for.
 */
export class TimedTurns implements SocketMeter {
  readonly upstreamStartsTurns: boolean
  readonly #handshake: PlannedCall
  readonly #gateway: Gateway
  readonly #door: SessionDoor
  readonly #clock: SessionClock
  /** What the hold was for when there was one last. */
  #lastForeseen: Foreseen
  readonly #advance: AdvanceHold
  /** Holds for audio that was sent ahead of what upstream has reported, one for each minute beyond the first. */
  readonly #aheadHolds: TurnCall[] = []
  readonly #settlements: TurnSettlements
  readonly #delegated: DelegatedResponses
  /** Another socket meters the session. */
  #isSuspended = false
  #modelShown: string | null = null
  /** Undefined: the client has asked for a transcription model, and upstream has not shown whether it accepts it. */
  #transcriptionShown: SessionSettings['transcription'] = null

  constructor(handshake: PlannedCall, gateway: Gateway, foreseen: Foreseen, clock: SessionClock) {
    this.#handshake = handshake
    this.#gateway = gateway
    this.#clock = clock
    clock.onTakenOver = () => this.#suspend()
    this.#lastForeseen = foreseen
    // In a translation upstream does nothing but with the audio that is sent.
    this.upstreamStartsTurns = foreseen.kind === 'live'
    this.#door = new SessionDoor(handshake, gateway, {
      pending: () =>
        this.#advance.pending ??
        this.#delegated.pending ??
        this.#advance.lateAdmission ??
        this.#delegated.lateAdmission,
      foreseen: () => this.#foreseen,
      decide: (event, payload) => this.#decide(event, payload),
    })
    const closing = (refused: RefusedHold) => this.#door.close(refused)
    this.#advance = new AdvanceHold(handshake, gateway, foreseen, closing)
    const onEach = () => this.#door.turnEnded()
    this.#settlements = new TurnSettlements(handshake.exchange.requestId, gateway, onEach)
    const onIdle = (settled: Promise<void>) => this.#renewFirst(settled)
    this.#delegated = new DelegatedResponses(handshake, gateway, this.#settlements, closing, onIdle)
  }

  get running(): number {
    return this.#delegated.running
  }

  /** A socket that attaches to a session which is metered here holds nothing: its admission could wait for that very session. */
  async open() {
    if (!this.#clock.joinsMeteredSession) return await this.#advance.open()
    const planned = withoutHold(planForeseen(this.#foreseen, this.#gateway))
    const admitted = await admitTurn(this.#handshake, planned, this.#gateway, { isRecorded: false })
    if (admitted.kind !== 'admitted') return admitted
    await admitted.turn.release()
    this.#suspend()
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
    this.#clock.observe(event)
    if (this.#clock.session !== null) this.#delegated.join(this.#clock.session)
    if (event.session !== null) this.#applySettings(event.session)
    if (this.#clock.isMeteredElsewhere) this.#suspend()
    else if (this.#isSuspended) this.#resume()
    if (!isAudioDelta(event.type)) this.#delegated.addContext(event.deltaBytes)
    if (event.type === 'error') this.#delegated.failed(event.aboutEventId)
    this.#delegated.observe(event, payload, this.#clock.isMeteredElsewhere)
    this.#settleIfDue(event)
    this.#releaseAhead()
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
      this.#releaseAhead()
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
    this.#delegated.addContext(textBytesOf(event, payload))
    const kind = this.#lastForeseen.kind === 'live' ? delegatedBy(type) : null
    if (kind !== null) return this.#delegated.ask(kind, event.response.model, eventId)
    if (session !== null) return this.#judgeUpdate(session, eventId)
    // Images in an item are for delegates, and no time of the session.
    if (audioBytes === 0 || type?.endsWith('.item.create') === true) return PASS
    const sent = () => {
      this.#clock.sent(audioBytes)
      this.#settleIfDue(null)
      this.#releaseAhead()
    }
    const ms = audioMs(audioBytes, this.#clock.bytesPerMs)
    const pass: Verdict = { kind: 'pass', sent }
    return this.#clock.unreportedMs + ms <= this.#heldMs ? pass : this.#holdAhead(ms, eventId, pass)
  }

  get #heldMs(): number {
    return ADVANCE_MS * (1 + this.#aheadHolds.length)
  }

  /** Each minute has a hold of its own: a single hold of any size is admitted while anything is left under the cap. */
  async #holdAhead(ms: number, eventId: string | null, pass: Verdict): Promise<Verdict> {
    while (this.#clock.unreportedMs + ms > this.#heldMs) {
      const planned = planForeseen({ ...this.#foreseen, model: this.#model }, this.#gateway)
      // The admission might wait for the larger hold of this very socket.
      const onHeld = () => void this.#delegated.yieldTo(admitting)
      const admitting = admitTurn(this.#handshake, planned, this.#gateway, { onHeld })
      const admitted = await admitting
      if (admitted.kind === 'client_left') return { kind: 'dropped' }
      if (admitted.kind === 'refused') return refusedBy(admitted, eventId)
      this.#aheadHolds.push(admitted.turn)
      if (!this.#door.isOver) continue
      this.#releaseAhead()
      return { kind: 'dropped' }
    }
    return pass
  }

  /** Audio that upstream has reported needs no hold of its own any more. */
  #releaseAhead(): void {
    const { isOver } = this.#door
    while (this.#aheadHolds.length > 0 && (isOver || this.#clock.unreportedMs <= this.#heldMs - ADVANCE_MS)) {
      const turn = this.#aheadHolds.pop()
      if (turn !== undefined) this.#settlements.add(turn.release())
    }
  }

  /** What the hold has to be for with these settings, so that every model is checked; null where it is for that already. */
  #changedBy({ model, transcription }: SessionSettings): Foreseen | null {
    const foreseen = this.#foreseen
    const { otherModels = [] } = foreseen
    const wanted = model === undefined ? foreseen : withAlternative(foreseen, model)
    const named = transcription == null ? [] : [transcription.model]
    if (wanted === foreseen && named.every((name) => otherModels.includes(name))) return null
    const all = [...new Set([...otherModels, ...named])]
    const isFirst = foreseen.model === null && model !== undefined
    return { ...(isFirst ? { ...foreseen, model } : wanted), otherModels: all, modelComesLater: false }
  }

  async #judgeUpdate(session: SessionSettings, eventId: string | null): Promise<Verdict> {
    const refused = await this.#change(this.#changedBy(session), session.delegates)
    if (refused !== null) return refusedBy(refused, eventId)
    if (session.transcription != null && this.#transcriptionShown === null)
      this.#transcriptionShown = undefined
    if (session.bytesPerMs !== undefined) this.#clock.askedFor(session.bytesPerMs)
    return PASS
  }

  async #change(next: Foreseen | null, delegates: readonly Delegate[]): Promise<RefusedHold | null> {
    const before = this.#advance.foreseen
    if (before === null)
      return (next && (await this.#allow(next))) ?? (await this.#delegated.allow(delegates))
    const first = next === null ? null : await this.#changeMinute(next)
    if (first !== null) return first
    const refused = await this.#delegated.change(delegates)
    if (refused !== null && next !== null) await this.#changeMinute(before)
    return refused
  }

  /** Judges a change where another socket has the hold. */
  async #allow(next: Foreseen): Promise<RefusedHold | null> {
    const planned = withoutHold(planForeseen(next, this.#gateway))
    const admitted = await admitTurn(this.#handshake, planned, this.#gateway)
    if (admitted.kind === 'admitted') await admitted.turn.release()
    return admitted.kind === 'refused' ? admitted : null
  }

  /** The larger hold for delegates yields meanwhile: the admission of the minute might wait for it. */
  async #changeMinute(next: Foreseen): Promise<RefusedHold | null> {
    const changed = Promise.withResolvers<void>()
    await this.#delegated.yieldTo(changed.promise)
    try {
      return await this.#advance.requestChange(next)
    } finally {
      changed.resolve()
      await this.#delegated.pending
    }
  }

  #applySettings({ model, transcription, delegates }: SessionSettings): void {
    const before = this.#models
    this.#modelShown = model ?? this.#modelShown
    if (transcription !== undefined) this.#transcriptionShown = transcription
    // The time until now is billed by the models until now.
    if (!isDeepStrictEqual(before, this.#models)) this.#settleUsed(before)
    this.#delegated.applyShown(delegates)
    const { foreseen } = this.#advance
    if (foreseen === null || this.#clock.isMeteredElsewhere) return
    if (model !== undefined && (foreseen.model === null || foreseen.alternativeModels?.includes(model)))
      this.#advance.applyChange(withModel(foreseen, model))
    this.#followDelegates()
  }

  #suspend(): void {
    this.#isSuspended = true
    if (this.#advance.foreseen === null) return
    this.#lastForeseen = this.#advance.foreseen
    this.#advance.applyChange(null)
    this.#delegated.suspend()
  }

  /** The socket that has metered the session has ended, or is paused: this one takes over. */
  #resume(): void {
    this.#isSuspended = false
    this.#advance.applyChange({ ...this.#lastForeseen, model: this.#model })
    this.#followDelegates()
  }

  get #foreseen(): Foreseen {
    return this.#advance.foreseen ?? this.#lastForeseen
  }

  get #model(): string | null {
    return this.#modelShown ?? this.#foreseen.model
  }

  get #models(): SessionModels {
    const shown = this.#transcriptionShown
    const requested = shown === undefined ? (this.#foreseen.otherModels ?? []).slice(-1) : []
    return { model: this.#model, transcribedBy: shown == null ? requested : [shown.model] }
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
    if (isLast) this.#advance.applyChange(null)
    else this.#renew(settled)
  }

  /** Bills a minute that went without a hold, while delegates worked. */
  async #settleUnheld(models: SessionModels): Promise<void> {
    const used = this.#clock.take(models, false)
    if (used === null) return
    const foreseen = { ...this.#foreseen, model: this.#model }
    const plan = () => withoutHold(planForeseen(foreseen, this.#gateway))
    const turn = await this.#advance.takeOrAdmit({ ...foreseen, plan }, false)
    await turn?.endWith(used)
    // A turn without a hold is admitted also where nothing is left under the cap.
    const refused = await this.#door.refuseKey(true)
    if (refused !== null) this.#door.close(refused)
  }

  #followDelegates(): void {
    const { pending } = this.#advance
    const follow = () => this.#followDelegates()
    if (pending !== null) void pending.then(follow, follow)
    else if (!this.#clock.isMeteredElsewhere) this.#delegated.hold()
  }

  /** While delegates work, the next minute has no hold: its admission might wait for theirs, which are this socket's too. */
  #renew(settled: Promise<void>): void {
    if (this.#delegated.isBusy) return
    const renewed = Promise.withResolvers<void>()
    this.#advance.renew(Promise.all([settled, this.#delegated.yieldTo(renewed.promise)]))
    void (this.#advance.pending ?? settled).then(renewed.resolve, renewed.resolve)
  }

  /** Delegates are done: the minute that went without a hold gets one before the next work of delegates does. */
  #renewFirst(settled: Promise<void>): Promise<unknown> {
    this.#advance.renew(settled)
    this.#followDelegates()
    return Promise.allSettled([settled, this.#advance.pending])
  }
}
