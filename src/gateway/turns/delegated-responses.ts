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
import { AdvanceHold, type RefusedAdvance } from './advance-hold.ts'
import { Patience } from './patience.ts'
import { DelegatedContext, foreseenAs, planDelegates } from './plan-delegates.ts'
import { RecentIds, SeenTimes } from './seen-ids.ts'
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

/** A response of another model that has begun: its events wait until it is admitted. */
interface Delegated {
  readonly delegationId: string | null
  /** How much there was to read when it began. */
  readonly beganBytes: number
  turn: TurnCall | null
  events: Buffer[]
  bytes: number
  end: CallEnd | null
  /** It has failed, unless something more is heard of it. */
  failing: Patience | null
}

/** What a client has asked for and has not begun. */
interface Asked {
  readonly turn: TurnCall
  readonly kind: Kind
  readonly eventId: string | null
  /** Those of the socket that it was asked for on. */
  readonly settlements: TurnSettlements
  /** Until then it may begin. What begins later is what nobody has asked for. */
  readonly patience: Patience
  /** An error may have been about it. */
  isRejected: boolean
}

const COMPLETE: CallEnd = { kind: 'complete', trailers: [] }
const SEEN_MAX = 256

/** What the sockets of a session share: several may be told of the same work, and it is billed once. */
class SharedWork {
  readonly asked: Asked[] = []
  readonly begunIds = new RecentIds(SEEN_MAX)
  readonly decisions = new SeenTimes(SEEN_MAX)
}

const WORK = new WeakMap<object, SharedWork>()

/**
 * What a Live session has other models do, each piece of work a call. A client asks for it, or the session begins it by
 * itself: for that there is a hold in advance, by the dearest model that the session was ever set to.
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
  /** How often this socket has seen each decision, which has no id: one that reads late sees what others were billed for. */
  #decisions = new SeenTimes(SEEN_MAX)
  /** All that were ever named. */
  #delegates: readonly Delegate[] = []
  #heldFor: readonly Delegate[] = []
  /** Nothing is had that what the client asks for would have to wait for. */
  #isAsking = false

  /** `onIdle`: nothing is done any more. What it returns comes before the hold for what may begin next. */
  constructor(
    handshake: PlannedCall,
    gateway: Gateway,
    settlements: TurnSettlements,
    onRefused: (refused: RefusedAdvance) => void,
    onIdle: (settled: Promise<void>) => Promise<unknown>,
  ) {
    this.#handshake = handshake
    this.#gateway = gateway
    this.#settlements = settlements
    this.#advance = new AdvanceHold(handshake, gateway, null, onRefused)
    this.#onIdle = onIdle
  }

  get running(): number {
    const waitedFor = this.#ownAsked().filter(({ isRejected, patience }) => !isRejected && !patience.isLost)
    return this.#running.size + waitedFor.length
  }

  /** Something has a hold, or is about to: another one of this socket might wait for that. */
  get isBusy(): boolean {
    return this.#isAsking || this.#running.size + this.#ownAsked().length > 0
  }

  /** While it is being had, nothing of the client's goes upstream. */
  get pending(): Promise<void> | null {
    return this.#advance.pending
  }

  get late(): Promise<unknown> | null {
    return this.#advance.late
  }

  /** How long what runs is worth to be read on for when the client has left. */
  readOnMs(): number {
    const turns = [...this.#running.values()].flatMap(({ turn }) => turn ?? [])
    return Math.max(0, ...turns.map((turn) => readOnMs(turn, turn.call.plan.bill, this.#gateway.onLeave)))
  }

  /** So much was written that they may read. */
  came(bytes: number): void {
    this.#context.came(bytes)
  }

  paused(isPaused: boolean): void {
    for (const { turn } of this.#running.values()) turn?.paused(isPaused)
  }

  /** It is this session's. */
  join(session: object): void {
    const work = WORK.get(session) ?? this.#work
    if (work !== this.#work) {
      work.asked.push(...this.#work.asked)
      this.#decisions = work.decisions.copy()
    }
    this.#work = work
    WORK.set(session, work)
  }

  /** The session is to have these work too. Refused, all stays as it was. */
  async change(delegates: readonly Delegate[]): Promise<RefusedAdvance | null> {
    const all = this.#with(delegates)
    if (all === this.#delegates) return null
    if (all.length > limits.modelsPerSessionMax) return this.#refuseMore()
    const refused = await this.#advance.change(foreseenAs(() => this.#plan(all)))
    if (refused !== null) return refused
    this.#delegates = all
    // Another socket may have taken the session over.
    if (this.#advance.foreseen !== null) this.#heldFor = all
    return null
  }

  /** The same where another socket holds for them. */
  async allow(delegates: readonly Delegate[]): Promise<RefusedAdvance | null> {
    const all = this.#with(delegates)
    if (all === this.#delegates) return null
    if (all.length > limits.modelsPerSessionMax) return this.#refuseMore()
    const admitted = await admitTurn(this.#handshake, withoutHold(this.#plan(all)), this.#gateway)
    if (admitted.kind === 'refused') return admitted
    if (admitted.kind === 'admitted') await admitted.turn.release()
    return null
  }

  #refuseMore(): RefusedAdvance {
    const refusal = refuseTooManyModels('session.delegation')
    return refuseTurn(this.#handshake, this.#plan(this.#delegates), refusal, this.#gateway)
  }

  /** Upstream shows these. */
  learn(delegates: readonly Delegate[]): void {
    this.#delegates = this.#with(delegates)
  }

  /** Has one for all of them, where there is none. */
  hold(): void {
    const all = this.#delegates
    if (this.#heldFor === all || all.length === 0 || this.isBusy) return
    this.#heldFor = all
    this.#advance.follow(foreseenAs(() => this.#plan(all)))
  }

  /** What they do is metered elsewhere. */
  rest(): void {
    this.#heldFor = []
    this.#advance.follow(null)
  }

  /** Something smaller is had first: behind this hold it might wait for ever. */
  standBack(until: Promise<unknown>): Promise<void> {
    return this.#advance.standBack(until)
  }

  /** Judges a message that asks for one. `model`: its own, if it names one. */
  async ask(kind: Kind, model: string | undefined, eventId: string | null): Promise<Verdict> {
    const planned = this.#planOf(
      kind,
      model === undefined ? [] : [{ kind, model, serviceTier: null, imageModels: [] }],
    )
    if (this.#running.size + this.#ownAsked().length >= limits.turnsPerSocketMax)
      return refusedBy(refuseTurn(this.#handshake, planned, refuseTooManyTurns(), this.#gateway), eventId)
    // It may be all that is left.
    while (this.#advance.pending !== null) await this.#advance.pending
    this.#isAsking = true
    await this.#advance.take()?.release()
    const admitted = await admitTurn(this.#handshake, planned, this.#gateway)
    if (admitted.kind !== 'admitted') {
      this.#isAsking = false
      this.#renewIfIdle(Promise.resolve())
    }
    if (admitted.kind === 'client_left') return { kind: 'dropped' }
    if (admitted.kind === 'refused') return refusedBy(admitted, eventId)
    const { turn } = admitted
    return {
      kind: 'pass',
      sent: () => {
        this.#isAsking = false
        this.#work.asked.push(this.#waitFor({ turn, kind, eventId }))
      },
      unsent: () => {
        this.#isAsking = false
        void this.#settle(turn.release())
      },
    }
  }

  #waitFor(what: Pick<Asked, 'turn' | 'kind' | 'eventId'>): Asked {
    const patience = new Patience(() => {
      // It may be behind what runs.
      if (this.#running.size > 0 && !asked.isRejected) patience.renew()
      // A decision does not tell that it has begun: it keeps its hold, and no socket that is to close waits for it.
      else if (asked.kind === 'decisions' && !asked.isRejected) this.#settlements.add(Promise.resolve())
      else if (this.#drop(asked)) void this.#settle(asked.turn.reject(400))
    })
    const asked: Asked = { ...what, settlements: this.#settlements, patience, isRejected: false }
    return asked
  }

  /**
   * Upstream's error may be about what was asked for: it is so if nothing begins for a while. One that names no message may be
   * about any.
   */
  failed(aboutEventId: string | null): void {
    const open = this.#ownAsked().filter(({ isRejected }) => !isRejected)
    const named = open.find(({ eventId }) => eventId === aboutEventId)
    const asked = named ?? (aboutEventId === null ? open[0] : undefined)
    if (asked === undefined) return
    asked.isRejected = true
    asked.patience.renew()
  }

  /** `isIdle`: another socket meters the session, and what nobody has asked for is billed there. */
  observe({ type, aboutEventId }: SessionEvent, payload: Buffer, isIdle: boolean): void {
    if (type === 'decision.event') this.#decided(payload, aboutEventId, isIdle)
    const nested = type === 'response.event' ? nestedEvent(payload) : null
    const read = nested === null ? null : responseEvent(nested.event)
    if (nested === null || read === null) return
    const { event, delegationId } = nested
    const id = read.responseId ?? this.#idFor(delegationId)
    if (id === null) return
    const running = this.#running.get(id)
    if (running === undefined && !this.#isNew(id, isIdle)) return
    const delegated = running ?? this.#begin(id, delegationId, aboutEventId)
    this.#take(delegated, event)
    delegated.failing?.end()
    if (read.kind === 'failed') delegated.failing = new Patience(() => this.#end(id, delegated, COMPLETE))
    if (read.kind !== 'ended') return
    this.#context.ended(event, delegated.beganBytes)
    this.#end(id, delegated, COMPLETE)
  }

  end(cut: CallEnd): void {
    for (const [id, delegated] of this.#running) this.#end(id, delegated, cut)
    // They were waited for. A decision may be under way.
    for (const asked of this.#ownAsked()) {
      if (!this.#drop(asked)) continue
      const { turn, kind, isRejected } = asked
      const mayCost = kind === 'decisions' && !isRejected
      this.#settlements.add(mayCost ? turn.end(cut) : turn.reject(400))
    }
    this.#settlements.add(this.#advance.end())
  }

  #ownAsked(): readonly Asked[] {
    return this.#work.asked.filter(({ settlements }) => settlements === this.#settlements)
  }

  /** False: it has begun. */
  #drop(asked: Asked): boolean {
    const at = this.#work.asked.indexOf(asked)
    if (at !== -1) this.#work.asked.splice(at, 1)
    asked.patience.end()
    return at !== -1
  }

  /** When nothing runs any more, there is one for what may begin next. */
  #settle(settled: Promise<void>): Promise<void> {
    const watched = this.#settlements.add(settled)
    this.#renewIfIdle(watched)
    return watched
  }

  #renewIfIdle(settled: Promise<void>): void {
    if (!this.isBusy) this.#advance.renew(this.#onIdle(settled))
  }

  /** The same where it is nothing new. One that is not named stays what it was. */
  #with(delegates: readonly Delegate[]): readonly Delegate[] {
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

  /** Most events do not say which response they belong to, but maybe what that is made for. Of several it is the last to begin. */
  #idFor(delegationId: string | null): string | null {
    const all = [...this.#running]
    const own = all.findLast(([, each]) => each.delegationId === delegationId)
    const [id] = own ?? all.findLast(([, each]) => each.delegationId === null || delegationId === null) ?? []
    return id ?? null
  }

  #isNew(id: string, isIdle: boolean): boolean {
    if (this.#work.begunIds.has(id)) return false
    return !isIdle || this.#work.asked.some(({ kind }) => kind === 'responses')
  }

  #begin(id: string, delegationId: string | null, askedAs: string | null): Delegated {
    const beganBytes = this.#context.began()
    const waiting = { turn: null, events: [], bytes: 0, end: null, failing: null }
    const delegated: Delegated = { delegationId, beganBytes, ...waiting }
    this.#running.set(id, delegated)
    this.#work.begunIds.add(id)
    const turn = this.#holdFor('responses', askedAs)
    if (turn !== null) start(delegated, turn, id)
    else this.#settlements.add(this.#admit(id, delegated))
    return delegated
  }

  /** What was asked for under the client's id that upstream gives, else what was asked for first, else what may begin by itself. */
  #holdFor(kind: Kind, askedAs: string | null): TurnCall | null {
    const alike = this.#work.asked.filter((each) => each.kind === kind)
    const asked = alike.find(({ eventId }) => eventId !== null && eventId === askedAs) ?? alike[0]
    if (asked === undefined) {
      const turn = this.#advance.take(false)
      turn?.takenOver(this.#planOf(kind))
      return turn
    }
    this.#drop(asked)
    asked.turn.takenOver()
    // Its own socket has nothing to wait for any more.
    if (asked.settlements !== this.#settlements) asked.settlements.add(Promise.resolve())
    return asked.turn
  }

  async #holdLate(kind: Kind): Promise<TurnCall | null> {
    while (this.#advance.pending !== null) await this.#advance.pending
    return (
      this.#holdFor(kind, null) ?? (await this.#advance.takeOrAdmit(foreseenAs(() => this.#planOf(kind))))
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

  /** Of what waits the last is kept in any case: it tells what was used. */
  #take(delegated: Delegated, event: Buffer): void {
    if (delegated.turn !== null) {
      delegated.turn.observe(event)
      return
    }
    if (delegated.bytes > limits.unaskedBytesMax) delegated.bytes -= delegated.events.pop()?.length ?? 0
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

  #decided(payload: Buffer, askedAs: string | null, isIdle: boolean): void {
    const decision = decisionMade(payload)
    if (decision === null) return
    const { used, digest } = decision
    const times = this.#decisions.see(digest)
    if (isIdle || times <= this.#work.decisions.times(digest)) return
    this.#work.decisions.see(digest)
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

/** One that does not name its model is made by that of decisions. */
function endDecision(turn: TurnCall, used: Usage): Promise<void> {
  return turn.endWith({ ...used, modelServed: used.modelServed ?? turn.call.plan.modelAsked })
}

function start(delegated: Delegated, turn: TurnCall, id: string): void {
  turn.sent(Buffer.alloc(0), 'responses')
  turn.responseId = id
  delegated.turn = turn
}
