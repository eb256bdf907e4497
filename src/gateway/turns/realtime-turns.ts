import type { CallEnd } from '../../http/upstream-call.ts'
import { limits } from '../../kernel/limits.ts'
import type { Usage } from '../../kernel/usage.ts'
import { PCM_BYTES_PER_MS } from '../../metering/audio-clock.ts'
import {
  isSound,
  type SessionEvent,
  type SessionSettings,
  sessionEvent,
  soundMs,
} from '../../providers/realtime-events.ts'
import type { Message } from '../../sockets/message-reader.ts'
import type { PlannedCall } from '../call.ts'
import type { Gateway } from '../gateway.ts'
import type { BillPlan } from '../pricer.ts'
import { refuseTooManyTurns } from '../refusals.ts'
import {
  AdvanceHold,
  type Foreseen,
  goesBy,
  mayBeMore,
  mayGoBy,
  planForeseen,
  type RefusedAdvance,
} from './advance-hold.ts'
import { type Asked, AskedResponses } from './asked-responses.ts'
import { InputTranscripts } from './input-transcripts.ts'
import { type BegunResponse, type Came, promptTokens, ResponseUsages } from './response-usages.ts'
import { EventIds, RecentIds } from './seen-ids.ts'
import { type ClientEvent, type Cut, SessionDoor, wordBytes } from './session-door.ts'
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
  /** Null while it is being admitted, because upstream began it and nothing was held for it. */
  turn: TurnCall | null
  /** If it has ended meanwhile: what it has used, and how. */
  ended: { readonly used: Usage; readonly end: CallEnd | undefined } | null
  /** Nobody asked for it, and the client had left when it began. */
  readonly isUnheard: boolean
  /** It is beside the conversation, and leaves that what came for it. */
  readonly isBeside: boolean
}

const PASS: Verdict = { kind: 'pass' }
const NOTHING_CAME: Came = { heardMs: 0, readBytes: 0 }

/**
 * The turns of a socket of `/v1/realtime`. A response may begin because the client asks for one or because upstream has
 * heard it speak, so that there is always a hold in advance, which whatever begins takes over.
 */
export class RealtimeTurns implements SocketMeter {
  readonly beginsByItself = true
  readonly #handshake: PlannedCall
  readonly #gateway: Gateway
  readonly #door: SessionDoor
  readonly #responses: AdvanceHold
  readonly #transcripts: InputTranscripts
  readonly #settlements: TurnSettlements
  readonly #asked: AskedResponses
  readonly #running = new Map<string, Running>()
  /** What is told of these again is not billed again. */
  readonly #settledIds = new RecentIds(limits.endedIdsMax)
  readonly #usages = new ResponseUsages()
  readonly #eventIds = new EventIds()
  /** The client asks for a response, which waits for its hold or to be sent. */
  #isAsking = false
  /** As upstream shows it. */
  #modelShown: string | null = null
  #bytesPerMs = PCM_BYTES_PER_MS
  /** What came since the last response began. */
  #heardMs = 0
  #readBytes = 0

  /** `model`: of the query. Null: the session will show it, or it only writes down what it hears. */
  constructor(handshake: PlannedCall, gateway: Gateway, model: string | null, onlyTranscribes: boolean) {
    this.#handshake = handshake
    this.#gateway = gateway
    this.#door = new SessionDoor(handshake, gateway, {
      pending: () => {
        const { advance } = this.#transcripts
        return this.#responses.pending ?? advance.pending ?? this.#responses.late ?? advance.late
      },
      foreseen: () => this.#foreseen,
      decide: (event, payload) => this.#decide(event, payload),
    })
    const closing = (refused: RefusedAdvance) => this.#door.close(refused)
    const foreseen: Foreseen = { kind: 'realtime', model, outputTokensMax: null }
    this.#responses = new AdvanceHold(handshake, gateway, onlyTranscribes ? null : foreseen, closing)
    const onEach = () => this.#door.turnEnded()
    this.#settlements = new TurnSettlements(handshake.exchange.requestId, gateway, onEach)
    this.#asked = new AskedResponses(onEach, (asked) => {
      if (!this.#responses.giveBack(asked.turn)) this.#settlements.add(asked.turn.reject(400))
    })
    // What it waits for may be the larger hold of this very socket.
    const onHeld = (admitted: Promise<unknown>) => void this.#responses.standBack(admitted)
    const events = { onRefused: closing, onHeld, onEnded: onEach }
    this.#transcripts = new InputTranscripts(handshake, gateway, this.#settlements, onlyTranscribes, events)
  }

  get running(): number {
    const heard = [...this.#running.values()].filter(({ isUnheard }) => !isUnheard)
    return this.#asked.running + heard.length + this.#transcripts.running
  }

  /** With those that are waited for no more. */
  get #open(): number {
    return this.#asked.open + this.#running.size + this.#transcripts.open
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
    if (event.session !== null) this.#shown(event.session)
    this.#transcripts.observe(event)
    if (event.type === 'error') this.#failed(event)
    else if (event.type === 'response.created') {
      // Only what ran when the client left is worth reading for.
      if (this.#began(event, payload)?.isUnheard === true) this.#door.turnEnded()
    } else if (event.type === 'response.done') this.#ended(event, payload)
    else if (event.responseId !== null) this.#said(event, payload)
  }

  paused(isPaused: boolean): void {
    for (const { turn } of this.#running.values()) turn?.paused(isPaused)
  }

  readOnMs(): number {
    return this.#door.readOnMs(this.running, this.#open > 0 || this.#asked.mayBegin)
  }

  async end(abandoned: boolean): Promise<void> {
    const cut = this.#door.end(abandoned)
    if (cut !== null) {
      for (const [id, running] of this.#running) this.#use(id, running, this.#estimate(running), cut)
      const { unanswered, rejected } = this.#asked.end()
      for (const asked of unanswered) this.#settlements.add(this.#endUnanswered(asked, cut))
      for (const { turn } of rejected) this.#settlements.add(turn.reject(400))
      this.#transcripts.end(abandoned, cut)
      this.#settlements.add(this.#responses.end())
    }
    await this.#settlements.done()
  }

  /** Upstream has broken off before it said a word, or was not let. */
  #endUnanswered(asked: Asked, cut: Cut): Promise<void> {
    const { turn } = asked
    if (cut.kind === 'cut') return turn.end({ kind: 'failed', error: cut.error, sent: true, whole: true })
    return turn.endWith(this.#estimate(this.#begin(turn, asked)), cut)
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
    const came = this.#cameWith(event, payload)
    this.#read(came)
    if (isAppend) this.#transcripts.hear(came.heardMs)
    return PASS
  }

  /** How much of it is heard. All else is words. */
  #cameWith(event: ClientEvent, payload: Buffer): Came {
    return {
      heardMs: soundMs(event.audioBytes, this.#bytesPerMs),
      readBytes: wordBytes(event, payload),
    }
  }

  #read({ heardMs, readBytes }: Came): void {
    this.#heardMs += heardMs
    this.#readBytes += readBytes
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

  /** It goes when there is a hold for what it makes possible. */
  #decideUpdate(event: ClientEvent, session: SessionSettings, payload: Buffer): Verdict | Promise<Verdict> {
    const before = this.#foreseen
    const { model = before.model, outputTokensMax = before.outputTokensMax } = session
    const wanted = mayGoBy(before, model)
    const isMore = wanted !== before || mayBeMore(outputTokensMax, before.outputTokensMax)
    const next = isMore ? { ...wanted, outputTokensMax } : null
    const transcription = this.#transcripts.changedBy(session)
    // Until upstream shows it, the longer reading counts.
    this.#bytesPerMs = Math.min(this.#bytesPerMs, session.bytesPerMs ?? this.#bytesPerMs)
    this.#read(this.#cameWith(event, payload))
    if (next === null && transcription === undefined) return PASS
    return this.#update(event, next, transcription)
  }

  async #update(
    { eventId }: ClientEvent,
    next: Foreseen | null,
    transcription: Foreseen | null | undefined,
  ): Promise<Verdict> {
    const before = this.#responses.foreseen
    const first = next === null ? null : await this.#responses.change(next)
    if (first !== null) return refusedBy(first, eventId)
    const refused = transcription === undefined ? null : await this.#transcripts.advance.change(transcription)
    if (refused === null) return PASS
    if (next !== null) this.#responses.follow(before)
    await this.#responses.pending
    return refusedBy(refused, eventId)
  }

  async #decideCreate(event: ClientEvent, payload: Buffer): Promise<Verdict> {
    const { eventId, response, isBeside } = event
    const { model, outputTokensMax = this.#foreseen.outputTokensMax } = response
    const foreseen = model === undefined ? this.#foreseen : goesBy(this.#foreseen, model)
    const planned = planForeseen({ ...foreseen, outputTokensMax }, this.#gateway)
    if (this.#open >= limits.turnsPerSocketMax) return this.#refuseMore({ eventId }, planned)
    this.#isAsking = true
    const turn = await this.#holdFor(planned)
    if (!('call' in turn)) {
      this.#isAsking = false
      this.#renew()
      if (turn.kind !== 'refused') return { kind: 'dropped' }
      return refusedBy(turn, eventId)
    }
    return {
      kind: 'pass',
      sent: () => {
        this.#isAsking = false
        turn.sent(payload, null)
        const came = this.#cameWith(event, payload)
        if (!isBeside) this.#read(came)
        this.#asked.add({ turn, eventId, model, isBeside, own: isBeside ? came : NOTHING_CAME })
      },
      unsent: () => {
        this.#isAsking = false
        this.#giveBack(turn)
      },
    }
  }

  /** What was held in advance, if that is enough and the key is still in force; else it is a turn like any other. */
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

  #shown(session: SessionSettings): void {
    const { model, outputTokensMax, transcription } = session
    this.#modelShown = model ?? this.#modelShown
    this.#bytesPerMs = session.bytesPerMs ?? this.#bytesPerMs
    this.#usages.spokenBytesPerMs = session.spokenBytesPerMs ?? this.#usages.spokenBytesPerMs
    const { foreseen } = this.#responses
    if (foreseen !== null && model !== undefined) {
      const isOther = foreseen.model === null || foreseen.instead?.includes(model) === true
      if (isOther) this.#responses.follow(goesBy(foreseen, model))
    }
    if (outputTokensMax !== undefined) this.#responses.limit(outputTokensMax)
    this.#transcripts.shown(transcription)
  }

  #failed({ aboutEventId }: SessionEvent): void {
    const asked = this.#asked.failed(aboutEventId)
    if (asked === null) return
    if (!this.#eventIds.isUnique(aboutEventId)) this.#asked.keepRejected(asked)
    else if (!this.#responses.giveBack(asked.turn)) this.#settlements.add(asked.turn.reject(400))
    this.#door.turnEnded()
  }

  #began({ responseId }: SessionEvent, payload: Buffer): Running | null {
    const id = responseId ?? ''
    const known = this.#running.get(id)
    if (known !== undefined || this.#settledIds.has(id)) return known ?? null
    const asked = this.#asked.takeNext()
    const turn = asked?.turn ?? this.#responses.take()
    const isUnheard = asked === null && this.#door.isLeft
    const isBeside = asked?.isBeside === true
    const running = { ...this.#begin(turn, asked), isUnheard, isBeside }
    if (!isBeside) {
      this.#heardMs = 0
      this.#readBytes = 0
    }
    this.#running.set(id, running)
    if (turn === null) this.#settlements.add(this.#adopt(id, running))
    else turn.responseId = responseId
    turn?.observe(payload)
    return running
  }

  #begin(turn: TurnCall | null, asked: Asked | null): Running {
    const model = this.#modelShown ?? this.#foreseen.model
    const models = asked?.model === undefined ? [model] : [model, asked.model]
    const { heardMs, readBytes } = asked?.own ?? NOTHING_CAME
    const came = { heardMs: this.#heardMs + heardMs, readBytes: this.#readBytes + readBytes }
    return {
      turn,
      ended: null,
      isUnheard: false,
      isBeside: false,
      models,
      soundBytes: 0,
      writtenBytes: 0,
      ...came,
    }
  }

  /** Upstream has begun what nothing was held for. It is admitted now, or billed all the same and the socket closed. */
  async #adopt(id: string, running: Running): Promise<void> {
    const turn = await this.#responses.takeOrAdmit(this.#foreseen)
    if (turn === null) {
      this.#running.delete(id)
      this.#renew()
      return
    }
    turn.responseId = id
    running.turn = turn
    const { ended } = running
    if (ended !== null) this.#use(id, running, ended.used, ended.end)
  }

  #said({ type, responseId, deltaBytes }: SessionEvent, payload: Buffer): void {
    const running = this.#running.get(responseId ?? '')
    if (running === undefined) return
    running.turn?.observe(payload)
    if (isSound(type)) running.soundBytes += deltaBytes
    else running.writtenBytes += deltaBytes
  }

  #ended(event: SessionEvent, payload: Buffer): void {
    const running = this.#began(event, payload)
    if (running === null) return
    running.turn?.observe(payload)
    const used = this.#usages.ended(running, event, this.#billOf(running))
    // It was cancelled or failed before it has read anything: what came for it is the next one's.
    if (!running.isBeside && promptTokens(used) === 0) this.#read(running)
    this.#use(event.responseId ?? '', running, used)
  }

  #billOf({ turn }: Running): BillPlan {
    return (turn?.call.plan ?? this.#plan().plan).bill
  }

  #estimate(running: Running): Usage {
    return this.#usages.cut(running, this.#billOf(running))
  }

  /** Settles it, and has the next hold for what may begin. */
  #use(id: string, running: Running, used: Usage, end?: CallEnd): void {
    running.ended = { used, end }
    const { turn } = running
    if (turn === null) return
    this.#running.delete(id)
    if (id !== '') this.#settledIds.add(id)
    this.#renew(this.#settlements.add(turn.endWith(used, end)))
  }

  /** Where a response runs, or may begin with a hold of its own, the next would wait for that, and the client for both. */
  #renew(settled?: Promise<void>): void {
    if (this.#isAsking || this.#asked.mayBegin || this.#running.size > 0) return
    this.#responses.renew(settled)
  }
}

/** Whether it is for the same model and holds enough. */
function covers(had: PlannedTurn['plan'], wanted: PlannedTurn['plan']): boolean {
  const [held, needed] = [had.bill.hold, wanted.bill.hold]
  if (had.modelAsked !== wanted.modelAsked) return false
  if (held.kind !== 'bound' || needed.kind !== 'bound') return held.kind === needed.kind
  return held.nanos >= needed.nanos
}
