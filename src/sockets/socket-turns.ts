import type { Work } from '../calls/ask.ts'
import type { CallEnding } from '../calls/evidence.ts'
import { TOO_MANY_TURNS } from '../calls/refusals.ts'
import type { Handshake } from '../http-calls/call.ts'
import { readOnMs } from '../http-calls/forward.ts'
import type { Gateway } from '../http-calls/gateway.ts'
import type { Refusal } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import { RecentEntries } from '../kernel/memory.ts'
import { unreadable } from '../providers/ambiguity.ts'
import { statesTotals } from '../providers/socket-usage.ts'
import type { Message } from './frames.ts'
import {
  type ClientIntent,
  type MeteredSocket,
  type ModelCheck,
  NO_LANE,
  type OpenTurn,
  OTHER_EVENT,
  type RefusedIntent,
  type ServerEvent,
  type SocketProtocol,
  STEER,
  type Verdict,
} from './socket-protocol.ts'
import { StandingHold } from './standing-hold.ts'
import { TurnAdmission, type TurnCall, type UnadmittedTurn } from './turn-call.ts'

export const SILENT_TURN_MS = 10_000
const ENDED_RESPONSES_MIN = 128
const PASS: Verdict = { kind: 'pass' }
const DROPPED: Verdict = { kind: 'dropped' }
/** Status of a turn that upstream never began, if upstream states none. */
const UNANSWERED = 400

/** The turns of a metered socket. Within a lane, upstream answers the oldest waiting turn first. */
export class SocketTurns {
  readonly #handshake: Handshake
  readonly #gateway: Gateway
  readonly #protocol: SocketProtocol
  readonly upstreamBegins: boolean
  readonly #admission: TurnAdmission
  readonly #standingHold: StandingHold | null
  readonly #settling = new Set<Promise<void>>()
  #open: OpenTurn[] = []
  /** Ended responses by id, since upstream may name them again. Not null: the usage of this call may still come. */
  readonly #endedResponses = new RecentEntries<Work | null>(ENDED_RESPONSES_MIN)
  /** The admission of a response that began without a hold. Events wait in the backlog meanwhile. */
  #adopting: Promise<void> | null = null
  #backlog: Buffer[] = []
  #admitting = 0
  /** Whether messages that do not begin a turn were forwarded. An error may refer to one of them. */
  #hasOtherMessages = false
  #socket: MeteredSocket | null = null
  #isRevoked = false
  #isOver = false
  #ended: Promise<void> | null = null

  constructor(handshake: Handshake, gateway: Gateway, protocol: SocketProtocol) {
    this.#handshake = handshake
    this.#gateway = gateway
    this.#protocol = protocol
    this.#admission = new TurnAdmission(handshake, gateway)
    this.upstreamBegins = protocol.upstreamBegins
    this.#standingHold = protocol.upstreamBegins
      ? new StandingHold(this.#admission, protocol, this.#closeRefused)
      : null
  }

  /** The number of open turns. A turn that upstream does not begin stops counting after a while. */
  get running(): number {
    return this.#running().length
  }

  /** Whether a turn runs that was not begun by upstream after the key was revoked. */
  get runsPermittedTurn(): boolean {
    return this.#running().some(({ isAfterRevocation }) => !isAfterRevocation)
  }

  #running(): readonly OpenTurn[] {
    const sinceMs = this.#gateway.clock.monotonicMs() - SILENT_TURN_MS
    const isRunning = ({ likelyEnd, hasBegun, sentMs }: OpenTurn) =>
      !likelyEnd && (hasBegun || sentMs > sinceMs)
    return this.#open.filter(isRunning)
  }

  async open(): Promise<UnadmittedTurn | null> {
    return (await this.#standingHold?.open()) ?? null
  }

  start(socket: MeteredSocket): void {
    this.#socket = socket
  }

  /** Decides whether a client message may go upstream. Call it for one message at a time. */
  async check(message: Message): Promise<Verdict> {
    if (message.kind !== 'message')
      return this.#refuse(this.#protocol.refused(unreadable(message.why).detail))
    const { payload } = message
    const intent = await this.#protocol.readClient(payload)
    while (this.#checking !== null) await this.#checking
    if (this.#isOver) return DROPPED
    if (intent.kind === 'begins') return await this.#decideTurn(intent, payload)
    if (intent.kind === 'refused') return this.#refuse(intent)
    this.#hasOtherMessages = true
    return intent.check === null ? PASS : await this.#decideModels(intent.check)
  }

  /** Observes a forwarded message of upstream. If it returns a promise, wait for it before you read more. */
  observe(payload: Buffer): Promise<void> | null {
    if (this.#isOver) return null
    if (this.#adopting === null) this.#handleEvent(payload)
    else this.#backlog.push(payload)
    return this.#adopting
  }

  keyRevoked(): void {
    this.#isRevoked = true
  }

  paused(isPaused: boolean): void {
    for (const { turn } of this.#open) turn.paused(isPaused)
  }

  readOnMs(): number {
    const { onLeave } = this.#gateway
    const all = this.#open.map(({ turn }) => {
      if (this.#protocol.reader !== null) return readOnMs(turn, turn.ask.profile, onLeave)
      return onLeave === 'finish' ? limits.finishMs : limits.readOnMs
    })
    return Math.max(this.#adopting === null ? 0 : limits.readOnMs, ...all)
  }

  /** Ends turns that an error, or the next response of the lane, probably ended, once they get no event for a while. */
  checkTimeouts(nowMs: number): void {
    for (const open of [...this.#open]) {
      const { likelyEnd, hasBegun, lane } = open
      if (likelyEnd === null || nowMs - likelyEnd.atMs < SILENT_TURN_MS) continue
      if (hasBegun || this.#runningIn(lane) === null) this.#endLikely(open, likelyEnd.event)
    }
  }

  /** Ends the turns. `abandoned`: the client left, upstream did not break. Resolves when all are settled. */
  end(abandoned: boolean): Promise<void> {
    this.#ended ??= this.#end(abandoned)
    return this.#ended
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.end(true)
  }

  async #end(abandoned: boolean): Promise<void> {
    while (this.#adopting !== null) await this.#adopting
    this.#isOver = true
    const cut: CallEnding = abandoned ? 'left' : 'broken'
    const begunIn = new Set<string>()
    for (const open of this.#open.splice(0)) {
      const { turn, lane, likelyEnd, hasBegun } = open
      // Upstream works on one response at a time in each lane.
      const isNext = !begunIn.has(lane) && likelyEnd === null
      const usage = hasBegun || abandoned ? this.#protocol.usageOf(open, null) : null
      if (hasBegun || isNext) begunIn.add(lane)
      if (!hasBegun && !isNext) this.#watch(turn.reject(likelyEnd?.event.status ?? UNANSWERED))
      else if (usage !== null) this.#watch(turn.endWith(usage, cut))
      else this.#watch(turn.end(cut))
    }
    if (this.#standingHold !== null) this.#watch(this.#standingHold.end())
    while (this.#settling.size > 0) await Promise.allSettled(this.#settling)
  }

  /** The running check of limits, or admission of a turn that upstream began. Client messages wait for it. */
  get #checking(): Promise<void> | null {
    return this.#standingHold?.pending ?? this.#adopting
  }

  #refuse({ planned, refusal, lane, tag }: Omit<RefusedIntent, 'kind'>): Verdict {
    return verdictOn(this.#admission.refuse(planned, refusal), lane, tag)
  }

  async #decideModels({ planned, limited, tag }: ModelCheck): Promise<Verdict> {
    const checked = await this.#admission.check(planned)
    if (checked.kind !== 'refused') return checked.kind === 'permitted' ? PASS : DROPPED
    const isLimited = limited !== null && checked.refusal.code === 'endpoint_not_metered'
    return this.#refuse({ planned, refusal: isLimited ? limited : checked.refusal, lane: NO_LANE, tag })
  }

  async #decideTurn(intent: ClientIntent & { readonly kind: 'begins' }, payload: Buffer): Promise<Verdict> {
    const { lane, tag, planned, check } = intent
    const checked = check === null ? PASS : await this.#decideModels(check)
    if (checked.kind !== 'pass') return checked
    if (this.#open.length >= limits.turnsPerSocketMax)
      return this.#refuse({ planned, refusal: TOO_MANY_TURNS, lane, tag })
    this.#admitting += 1
    const admitted = (await this.#standingHold?.takeFor(planned)) ?? (await this.#admission.admit(planned))
    if (admitted.kind !== 'admitted') {
      this.#endAdmission()
      return verdictOn(admitted, lane, tag)
    }
    const { turn } = admitted
    return {
      kind: 'pass',
      sent: () => {
        turn.sent(payload, this.#protocol.reader)
        if (this.#isOver) this.#watch(turn.release())
        else this.#add(turn, lane, tag, false)
        this.#endAdmission()
      },
      unsent: () => {
        if (this.#standingHold?.putBack(turn) !== true) this.#watch(turn.release())
        this.#endAdmission()
      },
    }
  }

  #endAdmission(): void {
    this.#admitting -= 1
    this.#renewStandingHold()
  }

  #add(turn: TurnCall, lane: string, tag: string | null, isAfterRevocation: boolean): OpenTurn {
    const open: OpenTurn = {
      ...{ turn, lane, tag, sentMs: this.#gateway.clock.monotonicMs(), isAfterRevocation },
      ...{ responseId: null, hasBegun: false, likelyEnd: null },
    }
    this.#open.push(open)
    return open
  }

  #handleEvent(payload: Buffer): void {
    const event = this.#protocol.readServer(payload)
    switch (event.kind) {
      case 'part':
        this.#observeTurn(this.#find(event.responseId) ?? this.#runningFor(event.lane), payload, event)
        return
      case 'began':
        this.#observeTurn(this.#turnOf(event, payload), payload, event)
        return
      case 'ended': {
        const open = this.#turnOf(event, payload)
        this.#observeTurn(open, payload, event)
        if (open === null) return
        this.#remove(open)
        this.#noteEnded(open.responseId)
        const usage = this.#protocol.usageOf(open, event)
        this.#settle(usage === null ? open.turn.end() : open.turn.endWith(usage))
        return
      }
      case 'failed':
        this.#onFailed(event)
        return
      case 'transcribed':
        this.#onTranscribed(event)
    }
  }

  #observeTurn(open: OpenTurn | null, payload: Buffer, { document }: ServerEvent): void {
    if (open === null) return
    open.likelyEnd = null
    open.turn.observe(payload, document)
  }

  /** The turn of a response that begins or runs. Null if the response is billed, or is being admitted. */
  #turnOf(event: ServerEvent, payload: Buffer): OpenTurn | null {
    const { responseId, lane } = event
    const known = this.#find(responseId)
    if (known !== null) return known
    const ended = responseId === null ? undefined : this.#endedResponses.get(responseId)
    if (ended !== undefined) {
      const statesUsage = event.kind === 'ended' && statesTotals(event.usage)
      if (ended !== null && statesUsage) this.#billLate(ended, event, payload)
      return null
    }
    const waiting = this.#open.filter((open) => !open.hasBegun && open.lane === lane)
    const next = waiting.find(({ likelyEnd }) => likelyEnd === null) ?? waiting[0]
    // An event without an id belongs to the response that runs.
    const running = responseId === null ? this.#runningFor(lane) : null
    if (running !== null && (next === undefined || event.kind === 'ended')) return running
    if (next === undefined) {
      this.#adopt(event, payload)
      return null
    }
    const before = this.#standingHold === null ? this.#runningIn(lane) : null
    // Only one response runs in a lane at a time, so no more events should come for the previous one.
    if (before !== null) before.likelyEnd ??= { atMs: this.#gateway.clock.monotonicMs(), event: OTHER_EVENT }
    this.#begin(next, responseId)
    if (next.tag !== STEER) return next
    for (const open of waiting.filter((open) => open !== next && open.tag === STEER)) {
      this.#remove(open)
      this.#settle(open.turn.reject(UNANSWERED))
    }
    return next
  }

  #begin(open: OpenTurn, responseId: string | null): void {
    // The error referred to another message, perhaps of another turn.
    const other = this.#open.find((each) => each !== open && !each.hasBegun && each.likelyEnd === null)
    if (open.likelyEnd !== null && other !== undefined) other.likelyEnd = open.likelyEnd
    open.likelyEnd = null
    open.hasBegun = true
    open.responseId = responseId
    open.turn.began(responseId)
    this.#protocol.began?.(open)
  }

  /** Upstream began a response. Without a hold it is billed regardless of limits; if that fails, the socket closes. */
  #adopt({ lane, responseId }: ServerEvent, payload: Buffer): void {
    this.#backlog.push(payload)
    const adopt = async () => {
      const turn =
        (await this.#standingHold?.takeBegun()) ??
        (await this.#admission.admitBegun(this.#protocol.planUnrequested()))
      if (turn === null) {
        this.#noteEnded(responseId)
        this.#backlog.shift()
      } else {
        turn.sent(null, this.#protocol.reader)
        this.#begin(this.#add(turn, lane, null, this.#isRevoked), responseId)
      }
      this.#adopting = null
      for (const event of this.#backlog.splice(0)) this.observe(event)
      if (this.#standingHold === null)
        this.#socket?.close(1008, 'Upstream began a response that nobody requested.')
    }
    this.#adopting = adopt()
  }

  /**
   * An error refers to a waiting message: the one that it names, else the oldest. It ends a response that has begun only
   * if it cannot refer to anything else, because clients can cause errors.
   */
  #onFailed(event: ServerEvent): void {
    const { lane, tag } = event
    const turnsInLane = this.#open.filter((open) => lane === NO_LANE || open.lane === lane)
    const isCertain = turnsInLane.length === 1 && !this.#hasOtherMessages
    const waiting = turnsInLane.filter(({ hasBegun, likelyEnd }) => !hasBegun && likelyEnd === null)
    const about = tag === null ? waiting[0] : waiting.find((open) => open.tag === tag)
    if (about !== undefined) {
      if (this.#standingHold?.putBack(about.turn) === true) this.#remove(about)
      else if (isCertain || tag === STEER) this.#endLikely(about, event)
      else about.likelyEnd = { atMs: this.#gateway.clock.monotonicMs(), event }
    } else if (tag === null && this.#standingHold === null && isCertain) {
      const [running] = turnsInLane
      if (running?.hasBegun) this.#endLikely(running, event)
    }
    this.#socket?.turnEnded()
  }

  /** The turn gets the error only here, because a client could cause an error with another message and then leave. */
  #endLikely(open: OpenTurn, { status, document }: ServerEvent): void {
    const { turn, responseId, hasBegun } = open
    this.#remove(open)
    if (document !== null) turn.observe(NO_BYTES, document)
    this.#settle(hasBegun ? turn.end() : turn.reject(status))
    // The usage of a stored response that an error ended is fetched.
    const isFetched = document !== null && turn.ask.profile.unseen().stored
    this.#noteEnded(responseId, isFetched ? null : turn.ask)
  }

  /** Bills usage that upstream states after the turn of the response was ended without it. */
  #billLate(planned: Work, event: ServerEvent, payload: Buffer): void {
    const { responseId, document } = event
    this.#noteEnded(responseId)
    const billed = this.#admission.admitBegun(planned).then(async (turn) => {
      turn?.sent(null, this.#protocol.reader)
      turn?.began(responseId)
      turn?.observe(payload, document)
      await turn?.end()
    })
    this.#settle(billed)
  }

  #onTranscribed(event: ServerEvent): void {
    const found = this.#protocol.transcriptionOf?.(event)
    if (found === undefined) return
    const billed = this.#admission.admitBegun(found.planned)
    const settled = billed.then((turn) => turn?.endWith(found.usage))
    this.#watch(settled)
    this.#standingHold?.check(settled)
  }

  #find(responseId: string | null): OpenTurn | null {
    if (responseId === null) return null
    return this.#open.find((open) => open.responseId === responseId) ?? null
  }

  /** The response to which an event without an id belongs: the only one that runs, else the latest of the lane. */
  #runningFor(lane: string): OpenTurn | null {
    const first = this.#open.find(hasBegun) ?? null
    return first === this.#open.findLast(hasBegun) ? first : this.#runningIn(lane)
  }

  #runningIn(lane: string): OpenTurn | null {
    return this.#open.findLast((open) => open.hasBegun && open.lane === lane) ?? null
  }

  #noteEnded(responseId: string | null, unbilled: Work | null = null): void {
    if (responseId !== null) this.#endedResponses.set(responseId, unbilled)
  }

  #remove(open: OpenTurn): void {
    this.#open = this.#open.filter((each) => each !== open)
  }

  #settle(settled: Promise<void>): void {
    // A turn that ran beside another may have had no hold, so check the limits. If no turn runs, the renewal does that.
    this.#watch(settled)
    if (this.#open.length > 0) this.#standingHold?.check(settled)
    this.#renewStandingHold()
  }

  #watch(settled: Promise<void>): void {
    const watched = settled
      .catch((error: unknown) => {
        const about = { request: this.#handshake.requestId, cause: (error as Error).message }
        this.#gateway.log.error(about, 'a turn of a socket could not be settled')
      })
      .finally(() => {
        this.#settling.delete(watched)
        this.#socket?.turnEnded()
      })
    this.#settling.add(watched)
  }

  /** Renews the standing hold if no turn is open or being admitted: the new hold could wait for that turn. */
  #renewStandingHold(): void {
    if (this.#open.length === 0 && this.#admitting === 0)
      this.#standingHold?.renew(Promise.allSettled([...this.#settling]))
  }

  /** Closes the socket before more input is forwarded; for a revoked key, after its last turn. */
  readonly #closeRefused = (refusal: Refusal): void => {
    const { requestId } = this.#admission.refuse(this.#protocol.planUnrequested(), refusal)
    this.#socket?.refuse(refusal, { requestId, lane: NO_LANE, tag: null })
    if (refusal.code === 'invalid_api_key') this.#socket?.keyRevoked()
    else this.#socket?.close(1008, refusal.message)
  }
}

const NO_BYTES = Buffer.alloc(0)

const hasBegun = (open: OpenTurn): boolean => open.hasBegun

function verdictOn(unadmitted: UnadmittedTurn, lane: string, tag: string | null): Verdict {
  if (unadmitted.kind !== 'refused') return DROPPED
  const { refusal, requestId } = unadmitted
  return { kind: 'refused', refusal, about: { requestId, lane, tag } }
}
