import type { CallEnd } from '../../http/upstream-call.ts'
import { limits } from '../../kernel/limits.ts'
import type { Usage } from '../../kernel/usage.ts'
import { decisionMade, nestedEvent } from '../../providers/live-events.ts'
import type { Delegate, SessionEvent } from '../../providers/realtime-events.ts'
import { responseEvent } from '../../providers/response-events.ts'
import type { PlannedCall } from '../call.ts'
import type { Gateway } from '../gateway.ts'
import { readOnMs } from '../leave.ts'
import { refuseTooManyModels, refuseTooManyTurns } from '../refusals.ts'
import { AdvanceHold, type RefusedHold } from './advance-hold.ts'
import { DelegatedContext, foreseenWork, planDelegates } from './plan-delegates.ts'
import { SeenCounts } from './seen-ids.ts'
import { type Requested, SEEN_MAX, SharedWork, WORK } from './shared-work.ts'
import { SilenceTimer } from './silence-timer.ts'
import { refusedBy, type Verdict } from './socket-meter.ts'
import {
  admitTurn,
  type PlannedTurn,
  refuseTurn,
  type TurnCall,
  type TurnSettlements,
  withoutHold,
} from './turn-call.ts'

type Kind = Delegate['kind']

/** Work of a delegate that has begun. Its events wait until it is admitted. */
interface Delegated {
  readonly delegationId: string | null
  /** How much text the session had when it began. */
  readonly contextBytes: number
  turn: TurnCall | null
  events: Buffer[]
  bytes: number
  end: CallEnd | null
  /** Runs after an error event: the work has failed unless another event of it comes. */
  failing: SilenceTimer | null
}

const COMPLETE: CallEnd = { kind: 'complete', trailers: [] }

/** Stands for the id of a response that upstream gives none. Only the socket that meters the session bills it. */
const UNNAMED = ''

/**
 * The work that a Live session delegates to other models, responses and decisions, each a call. A client requests it, or the
 * session begins it by itself: for that there is a hold in advance, by the dearest delegate that the session was ever set to.
 */
export class DelegatedResponses {
  readonly #handshake: PlannedCall
  readonly #gateway: Gateway
  readonly #settlements: TurnSettlements
  readonly #advance: AdvanceHold
  readonly #onIdle: (settled: Promise<void>) => Promise<unknown>
  readonly #running = new Map<string, Delegated>()
  readonly #context = new DelegatedContext()
  #work = new SharedWork()
  /** How often this socket has seen each decision, which has no id: it may read late what another socket was billed for. */
  #decisions = new SeenCounts(SEEN_MAX)
  /** All delegates that the session was ever set to. */
  #delegates: readonly Delegate[] = []
  #heldFor: readonly Delegate[] = []
  /** A request of the client is being admitted. Meanwhile no hold is acquired in advance: the admission could wait for it. */
  #isAdmitting = false
  /** How much work that was requested here another socket meters. */
  #lent = 0

  /** `onIdle`: no work is left. The hold for the next work is acquired when the returned promise has resolved. */
  constructor(
    handshake: PlannedCall,
    gateway: Gateway,
    settlements: TurnSettlements,
    onRefused: (refused: RefusedHold) => void,
    onIdle: (settled: Promise<void>) => Promise<unknown>,
  ) {
    this.#handshake = handshake
    this.#gateway = gateway
    this.#settlements = settlements
    this.#advance = new AdvanceHold(handshake, gateway, null, onRefused)
    this.#onIdle = onIdle
  }

  get running(): number {
    const expected = this.#requested().filter(({ isRejected, silence }) => !isRejected && !silence.hasExpired)
    return this.#running.size + expected.length
  }

  /** Work has a hold, or is about to get one. Another admission of this socket might wait for that. */
  get isBusy(): boolean {
    return this.#isAdmitting || this.#running.size + this.#requested().length + this.#lent > 0
  }

  /** The hold in advance is being acquired. Messages of the client wait for it. */
  get pending(): Promise<void> | null {
    return this.#advance.pending
  }

  get lateAdmission(): Promise<unknown> | null {
    return this.#advance.lateAdmission
  }

  /** How long upstream is read on for the work that runs, after the client has left. */
  readOnMs(): number {
    const turns = [...this.#running.values()].flatMap(({ turn }) => turn ?? [])
    return Math.max(0, ...turns.map((turn) => readOnMs(turn, turn.call.plan.bill, this.#gateway.onLeave)))
  }

  /** The session has so much more text that delegates may read. */
  addContext(bytes: number): void {
    this.#context.add(bytes)
  }

  paused(isPaused: boolean): void {
    for (const { turn } of this.#running.values()) turn?.paused(isPaused)
  }

  /** Shares with the other sockets of the session from here on. */
  join(session: object): void {
    const work = WORK.get(session) ?? this.#work
    if (work !== this.#work) {
      work.requested.push(...this.#work.requested)
      this.#decisions = work.decisions.copy()
    }
    this.#work = work
    WORK.set(session, work)
  }

  /** A message of the client adds these delegates. Refused, all stays as it was. */
  async change(delegates: readonly Delegate[]): Promise<RefusedHold | null> {
    const all = this.#merge(delegates)
    if (all === this.#delegates) return null
    if (all.length > limits.modelsPerSessionMax) return this.#refuseMore()
    const refused = await this.#advance.requestChange(foreseenWork(() => this.#plan(all)))
    if (refused !== null) return refused
    this.#delegates = all
    // Another socket may have taken the metering over.
    if (this.#advance.foreseen !== null) this.#heldFor = all
    return null
  }

  /** The same where another socket has the hold. */
  async allow(delegates: readonly Delegate[]): Promise<RefusedHold | null> {
    const all = this.#merge(delegates)
    if (all === this.#delegates) return null
    if (all.length > limits.modelsPerSessionMax) return this.#refuseMore()
    const admitted = await admitTurn(this.#handshake, withoutHold(this.#plan(all)), this.#gateway)
    if (admitted.kind === 'refused') return admitted
    if (admitted.kind === 'admitted') await admitted.turn.release()
    return null
  }

  #refuseMore(): RefusedHold {
    const refusal = refuseTooManyModels('session.delegation')
    return refuseTurn(this.#handshake, this.#plan(this.#delegates), refusal, this.#gateway)
  }

  /** Upstream shows that the session has these delegates. */
  applyShown(delegates: readonly Delegate[]): void {
    this.#delegates = this.#merge(delegates)
  }

  /** Acquires the hold for all delegates, if there is none. */
  hold(): void {
    const all = this.#delegates
    if (this.#heldFor === all || all.length === 0 || this.isBusy) return
    this.#heldFor = all
    this.#advance.applyChange(foreseenWork(() => this.#plan(all)))
  }

  /** Another socket meters the session, and has the hold. */
  suspend(): void {
    this.#heldFor = []
    this.#advance.applyChange(null)
  }

  /** Gives the hold back until a smaller admission of this socket is through, which might wait for it. */
  yieldTo(until: Promise<unknown>): Promise<void> {
    return this.#advance.yieldTo(until)
  }

  /** Judges a message that requests work. `model`: the one that the message names. */
  async ask(kind: Kind, model: string | undefined, eventId: string | null): Promise<Verdict> {
    const planned = this.#planOf(
      kind,
      model === undefined ? [] : [{ kind, model, serviceTier: null, imageModels: [] }],
    )
    if (this.#running.size + this.#requested().length >= limits.turnsPerSocketMax)
      return refusedBy(refuseTurn(this.#handshake, planned, refuseTooManyTurns(), this.#gateway), eventId)
    // The hold in advance may be all that is left under the cap: it is given back first.
    while (this.#advance.pending !== null) await this.#advance.pending
    this.#isAdmitting = true
    await this.#advance.take()?.release()
    const admitted = await admitTurn(this.#handshake, planned, this.#gateway)
    if (admitted.kind !== 'admitted') {
      this.#isAdmitting = false
      this.#renewIfIdle(Promise.resolve())
    }
    if (admitted.kind === 'client_left') return { kind: 'dropped' }
    if (admitted.kind === 'refused') return refusedBy(admitted, eventId)
    const { turn } = admitted
    return {
      kind: 'pass',
      sent: () => {
        this.#isAdmitting = false
        this.#work.requested.push(this.#waitFor({ turn, kind, eventId }))
      },
      unsent: () => {
        this.#isAdmitting = false
        void this.#settle(turn.release())
      },
    }
  }

  #waitFor(what: Pick<Requested, 'turn' | 'kind' | 'eventId'>): Requested {
    const silence = new SilenceTimer(() => {
      // The work may wait behind other work that runs.
      if (this.#running.size > 0 && !requested.isRejected) silence.restart()
      // A decision does not tell that it has begun. It keeps its hold, but a socket that is to close no longer waits for it.
      else if (what.kind === 'decisions' && !requested.isRejected) this.#settlements.add(Promise.resolve())
      else if (this.#drop(requested)) void this.#settle(requested.turn.reject(400))
    })
    const onTaken = () => this.#lend(what.turn)
    const requested = { ...what, settlements: this.#settlements, onTaken, silence, isRejected: false }
    return requested
  }

  /** This socket no longer waits for the work. Its hold stands for the key all the same, until it is settled. */
  #lend(turn: TurnCall): void {
    this.#lent += 1
    this.#settlements.add(Promise.resolve())
    void turn.settled.then(() => {
      this.#lent -= 1
      this.#renewIfIdle(Promise.resolve())
    })
  }

  /**
   * Upstream's error may be about requested work: it is, if the work does not begin for a while. An error that names no message
   * may be about any.
   */
  failed(aboutEventId: string | null): void {
    const open = this.#requested().filter(({ isRejected }) => !isRejected)
    const named = open.find(({ eventId }) => eventId === aboutEventId)
    const requested = named ?? (aboutEventId === null ? open[0] : undefined)
    if (requested === undefined) return
    requested.isRejected = true
    requested.silence.restart()
  }

  /** `isMeteredElsewhere`: another socket meters the session. Work that was not requested is billed there. */
  observe({ type, aboutEventId }: SessionEvent, payload: Buffer, isMeteredElsewhere: boolean): void {
    if (type === 'decision.event') this.#decided(payload, aboutEventId, isMeteredElsewhere)
    const nested = type === 'response.event' ? nestedEvent(payload) : null
    const read = nested === null ? null : responseEvent(nested.event)
    if (nested === null || read === null) return
    const { event, delegationId } = nested
    const isWhole = read.kind === 'began' || read.kind === 'ended'
    const id = read.responseId ?? this.#idFor(delegationId) ?? (isWhole ? UNNAMED : null)
    if (id === null) return
    const running = this.#running.get(id)
    if (running === undefined && !this.#isNew(id, isMeteredElsewhere)) return
    const delegated = running ?? this.#begin(id, delegationId, aboutEventId)
    this.#observeEvent(delegated, event)
    delegated.failing?.end()
    if (read.kind === 'failed') delegated.failing = new SilenceTimer(() => this.#end(id, delegated, COMPLETE))
    if (read.kind !== 'ended') return
    this.#context.ended(event, delegated.contextBytes)
    this.#end(id, delegated, COMPLETE)
  }

  end(cut: CallEnd): void {
    for (const [id, delegated] of this.#running) this.#end(id, delegated, cut)
    // A decision may be under way without having told so; other work would have told.
    for (const requested of this.#requested()) {
      if (!this.#drop(requested)) continue
      const { turn, kind, isRejected } = requested
      const mayCost = kind === 'decisions' && !isRejected
      this.#settlements.add(mayCost ? turn.end(cut) : turn.reject(400))
    }
    this.#settlements.add(this.#advance.end())
  }

  #requested(): readonly Requested[] {
    return this.#work.requested.filter(({ settlements }) => settlements === this.#settlements)
  }

  /** False: the work has begun. */
  #drop(requested: Requested): boolean {
    const at = this.#work.requested.indexOf(requested)
    if (at !== -1) this.#work.requested.splice(at, 1)
    requested.silence.end()
    return at !== -1
  }

  /** Adds a settlement. With the last work, the hold for the next is acquired. */
  #settle(settled: Promise<void>): Promise<void> {
    const watched = this.#settlements.add(settled)
    this.#renewIfIdle(watched)
    return watched
  }

  #renewIfIdle(settled: Promise<void>): void {
    if (!this.isBusy) this.#advance.renew(this.#onIdle(settled))
  }

  /** All delegates with these; the same array where none is new. A delegate without a model keeps the one that it had. */
  #merge(delegates: readonly Delegate[]): readonly Delegate[] {
    const news = delegates.flatMap((each) => {
      const alike = this.#delegates.filter(({ kind }) => kind === each.kind)
      const { serviceTier } = each
      const model = each.model ?? alike[0]?.model ?? null
      const isTierKnown = serviceTier === null || alike.some((known) => known.serviceTier === serviceTier)
      const drawing = new Set(alike.flatMap(({ imageModels }) => imageModels))
      const isDrawingKnown = each.imageModels.every((name) => drawing.has(name))
      const isKnown = isTierKnown && isDrawingKnown && alike.some((known) => known.model === model)
      return isKnown ? [] : [{ ...each, model }]
    })
    return news.length === 0 ? this.#delegates : [...this.#delegates, ...news]
  }

  /** Most events name no response, some name its delegation. Of several responses it is the one that began last. */
  #idFor(delegationId: string | null): string | null {
    const all = [...this.#running]
    const own = all.findLast(([, each]) => each.delegationId === delegationId)
    const [id] = own ?? all.findLast(([, each]) => each.delegationId === null || delegationId === null) ?? []
    return id ?? null
  }

  #isNew(id: string, isMeteredElsewhere: boolean): boolean {
    if (this.#work.begunIds.has(id)) return false
    if (!isMeteredElsewhere) return true
    return id !== UNNAMED && this.#work.requested.some(({ kind }) => kind === 'responses')
  }

  #begin(id: string, delegationId: string | null, askedAs: string | null): Delegated {
    const contextBytes = this.#context.bytes
    const waiting = { turn: null, events: [], bytes: 0, end: null, failing: null }
    const delegated: Delegated = { delegationId, contextBytes, ...waiting }
    this.#running.set(id, delegated)
    if (id !== UNNAMED) this.#work.begunIds.add(id)
    const turn = this.#holdFor('responses', askedAs)
    if (turn !== null) start(delegated, turn, id)
    else this.#settlements.add(this.#admit(id, delegated))
    return delegated
  }

  /** The hold of the request with this event id, else of the first request, else the one in advance. */
  #holdFor(kind: Kind, askedAs: string | null): TurnCall | null {
    const alike = this.#work.requested.filter((each) => each.kind === kind)
    const requested = alike.find(({ eventId }) => eventId !== null && eventId === askedAs) ?? alike[0]
    if (requested === undefined) {
      const turn = this.#advance.take(false)
      turn?.startNow(this.#planOf(kind))
      return turn
    }
    this.#drop(requested)
    requested.turn.startNow()
    if (requested.settlements !== this.#settlements) requested.onTaken()
    return requested.turn
  }

  async #holdLate(kind: Kind): Promise<TurnCall | null> {
    while (this.#advance.pending !== null) await this.#advance.pending
    return (
      this.#holdFor(kind, null) ?? (await this.#advance.takeOrAdmit(foreseenWork(() => this.#planOf(kind))))
    )
  }

  async #admit(id: string, delegated: Delegated): Promise<void> {
    const turn = await this.#holdLate('responses')
    if (turn === null) {
      this.#running.delete(id)
      return
    }
    start(delegated, turn, id)
    for (const event of delegated.events.splice(0)) turn.observe(event)
    if (delegated.end !== null) await this.#settle(this.#endTurn(turn, delegated.end))
  }

  /** Events wait for the admission. The last one is kept in any case: it states the usage. */
  #observeEvent(delegated: Delegated, event: Buffer): void {
    if (delegated.turn !== null) {
      delegated.turn.observe(event)
      return
    }
    if (delegated.bytes > limits.unsolicitedBytesMax) delegated.bytes -= delegated.events.pop()?.length ?? 0
    delegated.bytes += event.length
    delegated.events.push(event)
  }

  #end(id: string, delegated: Delegated, end: CallEnd): void {
    delegated.end = end
    delegated.failing?.end()
    this.#running.delete(id)
    if (delegated.turn !== null) void this.#settle(this.#endTurn(delegated.turn, end))
  }

  #endTurn(turn: TurnCall, end: CallEnd): Promise<void> {
    if (end.kind !== 'complete') this.#context.boundCut(turn)
    return turn.end(end)
  }

  #decided(payload: Buffer, askedAs: string | null, isMeteredElsewhere: boolean): void {
    const decision = decisionMade(payload)
    if (decision === null) return
    const { used, digest } = decision
    const times = this.#decisions.add(digest)
    if (isMeteredElsewhere || times <= this.#work.decisions.countOf(digest)) return
    this.#work.decisions.add(digest)
    const turn = this.#holdFor('decisions', askedAs)
    if (turn !== null) void this.#settle(endDecision(turn, used))
    else this.#settlements.add(this.#decideLate(used))
  }

  async #decideLate(used: Usage): Promise<void> {
    const turn = await this.#holdLate('decisions')
    if (turn !== null) await this.#settle(endDecision(turn, used))
  }

  #planOf(kind: Kind, own: readonly Delegate[] = []): PlannedTurn {
    const known = this.#delegates.filter((each) => each.kind === kind)
    return this.#plan(
      known.length + own.length === 0
        ? [{ kind, model: null, serviceTier: null, imageModels: [] }]
        : [...known, ...own],
    )
  }

  #plan(delegates: readonly Delegate[]): PlannedTurn {
    return planDelegates(delegates, this.#handshake, this.#gateway)
  }
}

/** A decision without a model was made by the one that decisions are set to. */
function endDecision(turn: TurnCall, used: Usage): Promise<void> {
  return turn.endWith({ ...used, modelServed: used.modelServed ?? turn.call.plan.modelAsked })
}

function start(delegated: Delegated, turn: TurnCall, id: string): void {
  turn.sent(Buffer.alloc(0), 'responses')
  turn.responseId = id
  delegated.turn = turn
}
