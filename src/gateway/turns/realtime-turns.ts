import type { CallEnd } from '../../http/upstream-call.ts'
import { limits } from '../../kernel/limits.ts'
import type { Usage } from '../../kernel/usage.ts'
import { PCM_BYTES_PER_MS } from '../../metering/audio-clock.ts'
import {
  audioMs,
  isAudioDelta,
  type SessionEvent,
  type SessionSettings,
  sessionEvent,
} from '../../providers/realtime-events.ts'
import type { Message } from '../../sockets/message-reader.ts'
import type { PlannedCall } from '../call.ts'
import type { Gateway } from '../gateway.ts'
import type { BillPlan } from '../pricer.ts'
import { refuseTooManyTurns } from '../refusals.ts'
import {
  AdvanceHold,
  type Foreseen,
  planForeseen,
  type RefusedHold,
  raisesLimit,
  withAlternative,
  withModel,
} from './advance-hold.ts'
import { InputTranscripts } from './input-transcripts.ts'
import { type RequestedResponse, RequestedResponses } from './requested-responses.ts'
import { type BegunResponse, promptTokens, type ResponseInput, ResponseUsages } from './response-usages.ts'
import { ClientEventIds, RecentIds } from './seen-ids.ts'
import { type ClientEvent, type Cut, SessionDoor, textBytesOf } from './session-door.ts'
import { type MeteredSocket, refusedBy, type SocketMeter, type Verdict } from './socket-meter.ts'
import {
  admitTurn,
  type PlannedTurn,
  refuseTurn,
  type TurnCall,
  TurnSettlements,
  type UnadmittedTurn,
} from './turn-call.ts'

/** A response that has begun. */
interface Running extends BegunResponse {
  /** Null while a response that upstream began without a hold is being admitted. */
  turn: TurnCall | null
  /** Set when the response has ended, which may be before it is admitted. */
  ended: { readonly used: Usage; readonly end: CallEnd | undefined } | null
  /** Upstream began it by itself when the client had left: it is billed, but upstream is not read on for it. */
  readonly beganAfterLeaving: boolean
  /** It reads its own input, and leaves that of the conversation to the next response. */
  readonly isOutOfBand: boolean
}

const PASS: Verdict = { kind: 'pass' }
const NO_INPUT: ResponseInput = { inputAudioMs: 0, inputTextBytes: 0 }

/**
 * The turns of a socket of `/v1/realtime`. A response begins because the client requests one, or because upstream's voice
 * detection has heard the client speak. So there is always a hold in advance, which the response that begins takes over.
 */
export class RealtimeTurns implements SocketMeter {
  readonly upstreamStartsTurns = true
  readonly #handshake: PlannedCall
  readonly #gateway: Gateway
  readonly #door: SessionDoor
  readonly #responses: AdvanceHold
  readonly #transcripts: InputTranscripts
  readonly #settlements: TurnSettlements
  readonly #requested: RequestedResponses
  readonly #running = new Map<string, Running>()
  /** Responses that are settled. Events that name them again are not billed again. */
  readonly #settledIds = new RecentIds(limits.endedIdsMax)
  readonly #usages = new ResponseUsages()
  readonly #eventIds = new ClientEventIds()
  /** A `response.create` waits for its hold, or to be sent. */
  #isAdmitting = false
  /** The model that upstream says the session uses. */
  #modelShown: string | null = null
  #bytesPerMs = PCM_BYTES_PER_MS
  /** Input since the last response of the conversation began. */
  #inputAudioMs = 0
  #inputTextBytes = 0

  /** `model`: of the query. Null: upstream will show it, or the session only transcribes. */
  constructor(handshake: PlannedCall, gateway: Gateway, model: string | null, onlyTranscribes: boolean) {
    this.#handshake = handshake
    this.#gateway = gateway
    this.#door = new SessionDoor(handshake, gateway, {
      pending: () => {
        const { advance } = this.#transcripts
        return (
          this.#responses.pending ?? advance.pending ?? this.#responses.lateAdmission ?? advance.lateAdmission
        )
      },
      foreseen: () => this.#foreseen,
      decide: (event, payload) => this.#decide(event, payload),
    })
    const closing = (refused: RefusedHold) => this.#door.close(refused)
    const foreseen: Foreseen = { kind: 'realtime', model, outputTokensMax: null }
    this.#responses = new AdvanceHold(handshake, gateway, onlyTranscribes ? null : foreseen, closing)
    const onEach = () => this.#door.turnEnded()
    this.#settlements = new TurnSettlements(handshake.exchange.requestId, gateway, onEach)
    this.#requested = new RequestedResponses(onEach, ({ turn }) => {
      if (!this.#responses.giveBack(turn)) this.#settlements.add(turn.reject(400))
    })
    // The hold for a transcript may wait for the larger one of this very socket.
    const onHeld = (admitted: Promise<unknown>) => void this.#responses.yieldTo(admitted)
    const events = { onRefused: closing, onHeld, onEnded: onEach }
    this.#transcripts = new InputTranscripts(handshake, gateway, this.#settlements, onlyTranscribes, events)
  }

  get running(): number {
    const running = [...this.#running.values()].filter(({ beganAfterLeaving }) => !beganAfterLeaving)
    return this.#requested.running + running.length + this.#transcripts.running
  }

  /** With turns of which upstream has said nothing for long. */
  get #open(): number {
    return this.#requested.open + this.#running.size + this.#transcripts.open
  }

  async open() {
    return (await this.#responses.open()) ?? (await this.#transcripts.advance.open())
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
    if (event.session !== null) this.#applySettings(event.session)
    this.#transcripts.observe(event)
    if (event.type === 'error') this.#applyError(event)
    else if (event.type === 'response.created') {
      // The socket is read on only for responses that ran when the client left.
      if (this.#began(event, payload)?.beganAfterLeaving === true) this.#door.turnEnded()
    } else if (event.type === 'response.done') this.#ended(event, payload)
    else if (event.responseId !== null) this.#addOutput(event, payload)
  }

  paused(isPaused: boolean): void {
    for (const { turn } of this.#running.values()) turn?.paused(isPaused)
  }

  readOnMs(): number {
    return this.#door.readOnMs(this.running, this.#open > 0 || this.#requested.mayBegin)
  }

  async end(abandoned: boolean): Promise<void> {
    const cut = this.#door.end(abandoned)
    if (cut !== null) {
      for (const [id, running] of this.#running) this.#settle(id, running, this.#estimate(running), cut)
      const { unanswered, rejected } = this.#requested.end()
      for (const requested of unanswered) this.#settlements.add(this.#endUnanswered(requested, cut))
      for (const { turn } of rejected) this.#settlements.add(turn.reject(400))
      this.#transcripts.end(abandoned, cut)
      this.#settlements.add(this.#responses.end())
    }
    await this.#settlements.done()
  }

  /** Upstream has closed the socket before the response began, or was given no time to begin it. */
  #endUnanswered(requested: RequestedResponse, cut: Cut): Promise<void> {
    const { turn } = requested
    if (cut.kind === 'cut') return turn.end({ kind: 'failed', error: cut.error, sent: true, whole: true })
    return turn.endWith(this.#estimate(this.#begin(turn, requested)), cut)
  }

  #decide(event: ClientEvent, payload: Buffer): Verdict | Promise<Verdict> {
    this.#eventIds.add(event.eventId)
    if (event.type === 'response.create') return this.#decideCreate(event, payload)
    const isCommit = event.type === 'input_audio_buffer.commit'
    const isAppend = event.type === 'input_audio_buffer.append'
    if (event.session !== null && !isCommit && !isAppend)
      return this.#decideUpdate(event, event.session, payload)
    if ((isCommit || isAppend) && this.#transcripts.isFull) return this.#refuseMore(event)
    if (isCommit) return { kind: 'pass', sent: () => this.#transcripts.commit(event.eventId) }
    const input = this.#inputOf(event, payload)
    this.#addInput(input)
    if (isAppend) this.#transcripts.addAudio(input.inputAudioMs)
    return PASS
  }

  /** All of a message that is not audio counts as text. */
  #inputOf(event: ClientEvent, payload: Buffer): ResponseInput {
    return {
      inputAudioMs: audioMs(event.audioBytes, this.#bytesPerMs),
      inputTextBytes: textBytesOf(event, payload),
    }
  }

  #addInput({ inputAudioMs, inputTextBytes }: ResponseInput): void {
    this.#inputAudioMs += inputAudioMs
    this.#inputTextBytes += inputTextBytes
  }

  #refuseMore({ eventId }: Pick<ClientEvent, 'eventId'>, planned = this.#plan()): Verdict {
    return refusedBy(refuseTurn(this.#handshake, planned, refuseTooManyTurns(), this.#gateway), eventId)
  }

  #plan(): PlannedTurn {
    return planForeseen(this.#foreseen, this.#gateway)
  }

  get #foreseen(): Foreseen {
    return this.#responses.foreseen ?? { kind: 'realtime', model: this.#modelShown, outputTokensMax: null }
  }

  /** A `session.update` goes upstream when there is a hold for what the session may do with it. */
  #decideUpdate(event: ClientEvent, session: SessionSettings, payload: Buffer): Verdict | Promise<Verdict> {
    const before = this.#foreseen
    const { model = before.model, outputTokensMax = before.outputTokensMax } = session
    const wanted = withAlternative(before, model)
    const isMore = wanted !== before || raisesLimit(outputTokensMax, before.outputTokensMax)
    const next = isMore ? { ...wanted, outputTokensMax } : null
    const transcription = this.#transcripts.changedBy(session)
    const sent = () => {
      // Until upstream shows the format of the audio, the one counts by which it is longer.
      this.#bytesPerMs = Math.min(this.#bytesPerMs, session.bytesPerMs ?? this.#bytesPerMs)
      this.#addInput(this.#inputOf(event, payload))
    }
    const pass: Verdict = { kind: 'pass', sent }
    if (next === null && transcription === undefined) return pass
    return this.#update(event, next, transcription, pass)
  }

  async #update(
    { eventId }: ClientEvent,
    next: Foreseen | null,
    transcription: Foreseen | null | undefined,
    pass: Verdict,
  ): Promise<Verdict> {
    const before = this.#responses.foreseen
    const first = next === null ? null : await this.#responses.requestChange(next)
    if (first !== null) return refusedBy(first, eventId)
    const refused =
      transcription === undefined ? null : await this.#transcripts.advance.requestChange(transcription)
    if (refused === null) return pass
    if (next !== null) this.#responses.applyChange(before)
    await this.#responses.pending
    return refusedBy(refused, eventId)
  }

  async #decideCreate(event: ClientEvent, payload: Buffer): Promise<Verdict> {
    const { eventId, response, isOutOfBand } = event
    const { model, outputTokensMax = this.#foreseen.outputTokensMax } = response
    const foreseen = model === undefined ? this.#foreseen : withModel(this.#foreseen, model)
    const planned = planForeseen({ ...foreseen, outputTokensMax }, this.#gateway)
    if (this.#open >= limits.turnsPerSocketMax) return this.#refuseMore({ eventId }, planned)
    this.#isAdmitting = true
    const turn = await this.#holdFor(planned)
    if (!('call' in turn)) {
      this.#isAdmitting = false
      this.#renew()
      if (turn.kind !== 'refused') return { kind: 'dropped' }
      return refusedBy(turn, eventId)
    }
    return {
      kind: 'pass',
      sent: () => {
        this.#isAdmitting = false
        turn.sent(payload, null)
        const input = this.#inputOf(event, payload)
        if (!isOutOfBand) this.#addInput(input)
        this.#requested.add({ turn, eventId, model, isOutOfBand, ownInput: isOutOfBand ? input : NO_INPUT })
      },
      unsent: () => {
        this.#isAdmitting = false
        this.#giveBack(turn)
      },
    }
  }

  /** Takes the hold in advance, if it is large enough and the key is still in force; else the turn is admitted like any other. */
  async #holdFor(planned: PlannedTurn): Promise<TurnCall | UnadmittedTurn> {
    const advance = this.#responses.take()
    if (advance !== null && covers(advance.call.plan, planned.plan)) {
      const refused = await this.#door.refuseKey(false)
      if (refused === null) return advance
      this.#giveBack(advance)
      return refuseTurn(this.#handshake, planned, refused.refusal, this.#gateway)
    }
    if (advance !== null) await this.#settlements.add(advance.release())
    const admitted = await admitTurn(this.#handshake, planned, this.#gateway)
    return admitted.kind === 'admitted' ? admitted.turn : admitted
  }

  #giveBack(turn: TurnCall): void {
    if (!this.#responses.giveBack(turn)) this.#settlements.add(turn.release())
  }

  #applySettings(session: SessionSettings): void {
    const { model, outputTokensMax, transcription } = session
    this.#modelShown = model ?? this.#modelShown
    this.#bytesPerMs = session.bytesPerMs ?? this.#bytesPerMs
    this.#usages.outputBytesPerMs = session.spokenBytesPerMs ?? this.#usages.outputBytesPerMs
    const { foreseen } = this.#responses
    if (foreseen !== null && model !== undefined) {
      const isOther = foreseen.model === null || foreseen.alternativeModels?.includes(model) === true
      if (isOther) this.#responses.applyChange(withModel(foreseen, model))
    }
    if (outputTokensMax !== undefined) this.#responses.applyOutputLimit(outputTokensMax)
    this.#transcripts.applyShown(transcription)
  }

  #applyError({ aboutEventId }: SessionEvent): void {
    const failed = this.#requested.takeFailed(aboutEventId)
    if (failed === null) return
    if (!this.#eventIds.isUnique(aboutEventId)) this.#requested.keepRejected(failed)
    else if (!this.#responses.giveBack(failed.turn)) this.#settlements.add(failed.turn.reject(400))
    this.#door.turnEnded()
  }

  #began({ responseId }: SessionEvent, payload: Buffer): Running | null {
    const id = responseId ?? ''
    const known = this.#running.get(id)
    if (known !== undefined || this.#settledIds.has(id)) return known ?? null
    const requested = this.#requested.takeNext()
    const turn = requested?.turn ?? this.#responses.take()
    const beganAfterLeaving = requested === null && this.#door.hasClientLeft
    const isOutOfBand = requested?.isOutOfBand === true
    const running: Running = { ...this.#begin(turn, requested), beganAfterLeaving, isOutOfBand }
    if (!isOutOfBand) {
      this.#inputAudioMs = 0
      this.#inputTextBytes = 0
    }
    this.#running.set(id, running)
    if (turn === null) this.#settlements.add(this.#admitUnsolicited(id, running))
    else turn.responseId = responseId
    turn?.observe(payload)
    return running
  }

  #begin(turn: TurnCall | null, requested: RequestedResponse | null): Running {
    const model = this.#modelShown ?? this.#foreseen.model
    const models = requested?.model === undefined ? [model] : [model, requested.model]
    const { inputAudioMs, inputTextBytes } = requested?.ownInput ?? NO_INPUT
    return {
      turn,
      ended: null,
      beganAfterLeaving: false,
      isOutOfBand: false,
      models,
      outputAudioBytes: 0,
      outputTextBytes: 0,
      inputAudioMs: this.#inputAudioMs + inputAudioMs,
      inputTextBytes: this.#inputTextBytes + inputTextBytes,
    }
  }

  /** Upstream has begun a response without a hold. It is admitted now; one that is refused is billed, and the socket closes. */
  async #admitUnsolicited(id: string, running: Running): Promise<void> {
    const turn = await this.#responses.takeOrAdmit(this.#foreseen)
    if (turn === null) {
      this.#running.delete(id)
      this.#renew()
      return
    }
    turn.responseId = id
    running.turn = turn
    const { ended } = running
    if (ended !== null) this.#settle(id, running, ended.used, ended.end)
  }

  #addOutput({ type, responseId, deltaBytes }: SessionEvent, payload: Buffer): void {
    const running = this.#running.get(responseId ?? '')
    if (running === undefined) return
    running.turn?.observe(payload)
    if (isAudioDelta(type)) running.outputAudioBytes += deltaBytes
    else running.outputTextBytes += deltaBytes
  }

  #ended(event: SessionEvent, payload: Buffer): void {
    const running = this.#began(event, payload)
    if (running === null) return
    running.turn?.observe(payload)
    const used = this.#usages.usageOfEnded(running, event, this.#billOf(running))
    // A response that was cancelled, or failed, before it has read anything leaves its input to the next one.
    if (!running.isOutOfBand && promptTokens(used) === 0) this.#addInput(running)
    this.#settle(event.responseId ?? '', running, used)
  }

  #billOf({ turn }: Running): BillPlan {
    return (turn?.call.plan ?? this.#plan().plan).bill
  }

  #estimate(running: Running): Usage {
    return this.#usages.usageOfCut(running, this.#billOf(running))
  }

  /** Settles a response, and acquires the hold for the next one. */
  #settle(id: string, running: Running, used: Usage, end?: CallEnd): void {
    // A response may have ended, and been cut while it waited for its admission.
    running.ended ??= { used, end }
    const { turn, ended } = running
    if (turn === null) return
    this.#running.delete(id)
    if (id !== '') this.#settledIds.add(id)
    this.#renew(this.#settlements.add(turn.endWith(ended.used, ended.end)))
  }

  /** While a response runs, or may begin with a hold of its own, the next hold could wait for that one, and the client for both. */
  #renew(settled?: Promise<void>): void {
    if (this.#isAdmitting || this.#requested.mayBegin || this.#running.size > 0) return
    this.#responses.renew(settled)
  }
}

/** Whether a hold is for the same model and large enough. */
function covers(advance: PlannedTurn['plan'], wanted: PlannedTurn['plan']): boolean {
  const [held, needed] = [advance.bill.hold, wanted.bill.hold]
  if (advance.modelAsked !== wanted.modelAsked) return false
  if (held.kind !== 'bound' || needed.kind !== 'bound') return held.kind === needed.kind
  return held.nanos >= needed.nanos
}
