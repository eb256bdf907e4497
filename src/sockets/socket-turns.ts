import type { Work } from '../calls/ask.ts'
import type { CallEnding } from '../calls/evidence.ts'
import { readOnMs } from '../http-calls/forward.ts'
import type { Gateway } from '../http-calls/gateway.ts'
import { limits } from '../kernel/limits.ts'
import { FrameMessages, type FramePart } from './frames.ts'
import { type LaneStep, Lanes, type OpenTurn, type ServerEvent } from './lanes.ts'
import { Settlements } from './settlements.ts'
import type { MeteredSocket, RequestedTurn, SocketProtocol } from './socket-protocol.ts'
import type { StandingHold } from './standing-hold.ts'
import type { AdmittedTurn, TurnAdmission, UnadmittedTurn } from './turn-admission.ts'
import type { TurnCall } from './turn-call.ts'

/** Status of a turn that upstream never began, if upstream states none. */
const UNANSWERED = 400

/** What serves the turns of one socket. `standingHold`: null if upstream cannot begin turns. */
export interface TurnParts {
  readonly gateway: Gateway
  readonly socketId: string
  readonly protocol: SocketProtocol
  readonly admission: TurnAdmission
  readonly standingHold: StandingHold | null
}

/** The turns of a metered socket: each is a call, which upstream's events begin, meter and end. */
export class SocketTurns {
  readonly parts: TurnParts
  readonly #messages = new FrameMessages(limits.socketMessageBytesMax)
  readonly #lanes = new Lanes<TurnCall>()
  readonly #settlements: Settlements
  #socket: MeteredSocket | null = null
  #admitting = 0
  /** The admission of a response that upstream began. Its events wait meanwhile. */
  #adoption: { readonly over: Promise<void>; readonly events: Buffer[] } | null = null
  #ended: Promise<void> | null = null

  constructor(parts: TurnParts) {
    this.parts = parts
    this.#settlements = new Settlements(
      () => this.#socket?.turnEnded(),
      (error) => {
        const about = { request: parts.socketId, cause: (error as Error).message }
        parts.gateway.log.error(about, 'a turn of a socket could not be settled')
      },
    )
  }

  /** Whether upstream may begin turns. */
  get upstreamBegins(): boolean {
    return this.parts.standingHold !== null
  }

  get isOver(): boolean {
    return this.#ended !== null
  }

  get count(): number {
    return this.#lanes.open.length
  }

  /** Whether a turn runs that was sent until then. */
  runs(sentUntilMs: number): boolean {
    return this.#lanes.runs(this.#nowMs, sentUntilMs)
  }

  /** Takes the standing hold before the handshake. Null: it has it, or needs none. */
  async open(): Promise<UnadmittedTurn | null> {
    return (await this.parts.standingHold?.open()) ?? null
  }

  start(socket: MeteredSocket): void {
    this.#socket = socket
    this.parts.standingHold?.start(socket)
  }

  /** Resolves when no check of limits and no adoption runs, for which the client's messages wait. */
  async ready(): Promise<void> {
    for (;;) {
      const pending = this.parts.standingHold?.pending ?? this.#adoption?.over ?? null
      if (pending === null) return
      await pending
    }
  }

  /** `sent` or `unsent` must follow. */
  async admit(planned: Work): Promise<AdmittedTurn> {
    const { standingHold, admission } = this.parts
    this.#admitting += 1
    const admitted = (await standingHold?.takeFor(planned)) ?? (await admission.admit(planned))
    if (admitted.kind !== 'admitted') this.#endAdmission()
    return admitted
  }

  sent(turn: TurnCall, { lane, tag }: RequestedTurn, payload: Buffer): void {
    turn.sent(payload, this.parts.protocol.reader)
    this.#lanes.add(turn, lane, tag, this.#nowMs)
    this.#endAdmission()
  }

  unsent(turn: TurnCall): void {
    if (this.parts.standingHold?.putBack(turn) !== true) this.#settlements.add(turn.release())
    this.#endAdmission()
  }

  /** Whether upstream should not be read now. */
  get isBusy(): boolean {
    return this.#adoption !== null
  }

  /** Observes what upstream has sent. Returns false if a message cannot be read: it may have stated usage, or begun a turn. */
  observe(part: FramePart): boolean {
    if (this.isOver) return true
    const message = this.#messages.push(part)
    if (message?.kind === 'message') this.#receive(message.payload)
    return message?.kind !== 'unreadable'
  }

  /** Whether upstream is not read, because the client does not read. */
  paused(isPaused: boolean): void {
    if (!isPaused) this.#lanes.resume(this.#nowMs)
    for (const { turn } of this.#lanes.open) turn.paused(isPaused)
  }

  /** How long to read upstream after the client has left. */
  readOnMs(): number {
    const { protocol, gateway } = this.parts
    const adoptionMs = this.#adoption === null ? 0 : limits.readOnMs
    const turnsMs = this.#lanes.open.map(({ turn }) => {
      if (protocol.reader !== null) return readOnMs(turn, turn.ask.profile, gateway.onLeave)
      return gateway.onLeave === 'finish' ? limits.finishMs : limits.readOnMs
    })
    return Math.max(adoptionMs, ...turnsMs)
  }

  /** Ends turns that an error has probably ended, once their lanes are silent. */
  endSilent(nowMs: number): void {
    for (const { kind, open } of this.#lanes.endSilent(nowMs)) {
      if (kind === 'reject') this.#reject(open, open.doubt)
      else this.#settle(this.#endInDoubt(open))
    }
  }

  /** Ends all turns. `abandoned`: the client left, upstream did not break. Resolves when they are settled. */
  end(abandoned: boolean): Promise<void> {
    this.#messages.clear()
    this.#ended ??= this.#end(abandoned)
    return this.#ended
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end(true)
  }

  async #end(abandoned: boolean): Promise<void> {
    while (this.#adoption !== null) await this.#adoption.over
    for (const { kind, open } of this.#lanes.endAll()) {
      if (kind === 'end') this.#settlements.add(this.#cut(open, abandoned))
      else this.#settlements.add(open.turn.reject(open.doubt?.status ?? UNANSWERED))
    }
    const { standingHold } = this.parts
    if (standingHold !== null) this.#settlements.add(standingHold.end())
    await this.#settlements.all()
  }

  get #nowMs(): number {
    return this.parts.gateway.clock.monotonicMs()
  }

  #endAdmission(): void {
    this.#admitting -= 1
    this.#renewStandingHold()
  }

  #receive(payload: Buffer): void {
    if (this.#adoption === null) this.#hear(payload)
    else this.#adoption.events.push(payload)
  }

  #hear(payload: Buffer): void {
    const event = this.parts.protocol.readServer(payload)
    for (const step of this.#lanes.hear(event, this.#nowMs)) this.#apply(step, event, payload)
    if (event.kind === 'transcribed') this.#transcribed(event)
  }

  #apply(step: LaneStep<TurnCall>, event: ServerEvent, payload: Buffer): void {
    switch (step.kind) {
      case 'adopt':
        this.#adopt(event, payload)
        return
      case 'begin':
        step.open.turn.began(step.open.responseId)
        this.parts.protocol.began(step.open)
        return
      case 'part':
        step.open.turn.observe(payload, event.document)
        return
      case 'end':
        step.open.turn.observe(payload, event.document)
        this.#settle(this.#endWith(step.open, event))
        return
      case 'reject':
        this.#reject(step.open, event.kind === 'failed' ? event : null)
    }
  }

  #endWith(open: OpenTurn<TurnCall>, event: ServerEvent): Promise<unknown> {
    const usage = this.parts.protocol.usageOf(open, event)
    return usage === null ? open.turn.end() : open.turn.endWith(usage)
  }

  /** Ends a turn after an error that named none, or after other responses of its lane. */
  async #endInDoubt(open: OpenTurn<TurnCall>): Promise<void> {
    const { turn, responseId, doubt } = open
    const usage = this.parts.protocol.usageOf(open, null)
    if (doubt?.kind === 'failed') turn.failed(doubt)
    const bill = await (usage === null ? turn.end() : turn.endWith(usage, 'broken'))
    if (bill?.costNanos === 0n) this.#lanes.endedFree(responseId)
  }

  #cut(open: OpenTurn<TurnCall>, abandoned: boolean): Promise<unknown> {
    const { turn, hasBegun, doubt } = open
    const usage = hasBegun || abandoned ? this.parts.protocol.usageOf(open, null) : null
    const cut: CallEnding = abandoned ? 'left' : 'broken'
    if (usage !== null) return turn.endWith(usage, cut)
    // A client could cause an error by another message, and then leave.
    if (doubt?.kind === 'failed' && !abandoned) turn.failed(doubt)
    return turn.end(cut)
  }

  #reject({ turn }: OpenTurn<TurnCall>, error: ServerEvent | null): void {
    if (this.parts.standingHold?.putBack(turn) === true) this.#socket?.turnEnded()
    else this.#settle(turn.reject(error?.status ?? UNANSWERED))
  }

  /** Upstream began a response, which is billed regardless of limits. If it cannot be admitted, its events are ignored. */
  #adopt(event: ServerEvent, payload: Buffer): void {
    const { admission, standingHold, protocol } = this.parts
    const events = [payload]
    const adopt = async () => {
      const turn =
        (await standingHold?.takeBegun()) ?? (await admission.admitBegun(protocol.planUnrequested()))
      if (turn === null) {
        this.#lanes.ignore(event.responseId)
        events.shift()
      } else {
        turn.sent(null, protocol.reader)
        this.#lanes.add(turn, event.lane, null, this.#nowMs)
      }
      this.#adoption = null
      for (const each of events) this.#receive(each)
      this.#socket?.resume()
      if (standingHold === null && event.kind === 'began')
        this.#socket?.close(1008, 'Upstream began a response that nobody requested.')
    }
    this.#adoption = { over: adopt(), events }
  }

  #transcribed(event: ServerEvent): void {
    const { protocol, admission, standingHold } = this.parts
    const found = protocol.transcriptionOf(event)
    if (found === null) return
    const settled = admission.admitBegun(found.planned).then((turn) => turn?.endWith(found.usage))
    this.#settlements.add(settled)
    standingHold?.check(settled)
  }

  #settle(settled: Promise<unknown>): void {
    this.#settlements.add(settled)
    // A turn that ran beside another may have had no hold, so check the limits. If no turn runs, the renewal does that.
    if (this.count > 0) this.parts.standingHold?.check(settled)
    this.#renewStandingHold()
  }

  /** Renews the standing hold if no turn is open or being admitted: the new hold could wait for that turn. */
  #renewStandingHold(): void {
    if (this.count === 0 && this.#admitting === 0) this.parts.standingHold?.renew(this.#settlements.current())
  }
}
