import { limits } from '../kernel/limits.ts'
import { SOCKET_NAMES } from '../metering/request-facts.ts'
import { readAtOnce } from '../metering/request-reader.ts'
import { findEndpoint } from '../providers/find-endpoint.ts'
import { decisionUsage, nestedEvent } from '../providers/live-events.ts'
import { responseEvent } from '../providers/response-events.ts'
import { AdvanceHold, type Foreseen, holdsMore, type RefusedAdvance } from './advance-hold.ts'
import type { PlannedCall } from './call.ts'
import type { CallEnd } from './forward.ts'
import type { Gateway } from './gateway.ts'
import { planCall } from './plan.ts'
import { refuseTooManyTurns } from './refusals.ts'
import { RecentIds } from './seen-ids.ts'
import { refusedBy, type Verdict } from './socket-meter.ts'
import { admitTurn, type PlannedTurn, refuseTurn, type TurnCall, type TurnSettlements } from './turn-call.ts'

/** A response of another model that has begun: its events wait until it is admitted. */
interface Delegated {
  turn: TurnCall | null
  events: Buffer[]
  bytes: number
  end: CallEnd | null
}

/** What the client has asked for and has not begun. */
interface Asked {
  readonly turn: TurnCall
  readonly type: DelegatingType
  readonly eventId: string | null
  /** An error may have been about it. For a while it may begin all the same. */
  isRejected: boolean
}

export type DelegatingType = 'response.create' | 'decision.create'

/** A message of the client's that has another model begin. */
export function isDelegating(type: string | null): type is DelegatingType {
  return type === 'response.create' || type === 'decision.create'
}

const COMPLETE: CallEnd = { kind: 'complete', trailers: [] }
const PATH = '/v1/responses'
const ENDPOINT = findEndpoint('chat', 'POST', PATH)
const EVENTS_BYTES_MAX = 1024 * 1024
const SETTLED_IDS_MAX = 256

/**
 * What a Live session has other models do, each piece of work a call. The client asks for it, or the session begins it by
 * itself: for that there is a hold in advance, by the dearest model that the session was ever set to.
 */
export class DelegatedResponses {
  readonly #handshake: PlannedCall
  readonly #gateway: Gateway
  readonly #settlements: TurnSettlements
  readonly #advance: AdvanceHold
  readonly #asked: Asked[] = []
  readonly #running = new Map<string, Delegated>()
  readonly #settledIds = new RecentIds(SETTLED_IDS_MAX)
  /** Nothing is had that what the client asks for would have to wait for. */
  #isAsking = false

  constructor(
    handshake: PlannedCall,
    gateway: Gateway,
    settlements: TurnSettlements,
    onRefused: (refused: RefusedAdvance) => void,
  ) {
    this.#handshake = handshake
    this.#gateway = gateway
    this.#settlements = settlements
    const plan = ({ others = [] }: Foreseen) => this.#plan(others)
    this.#advance = new AdvanceHold(handshake, gateway, null, onRefused, plan)
  }

  get running(): number {
    return this.#running.size + this.#asked.filter(({ isRejected }) => !isRejected).length
  }

  /** While it is being had, nothing of the client's goes upstream. */
  get pending(): Promise<void> | null {
    return this.#advance.pending
  }

  get models(): readonly (string | null)[] {
    return this.#advance.foreseen?.others ?? []
  }

  paused(isPaused: boolean): void {
    for (const { turn } of this.#running.values()) turn?.paused(isPaused)
  }

  /** The session is to have these work too. Refused, all stays as it was. */
  async change(models: readonly (string | null)[]): Promise<RefusedAdvance | null> {
    return this.#knows(models) ? null : await this.#advance.change(foreseenWith(this.#with(models)))
  }

  /** Upstream shows these. */
  follow(models: readonly (string | null)[]): void {
    if (!this.#knows(models)) this.#advance.follow(foreseenWith(this.#with(models)))
  }

  /** Something smaller is had first: behind this hold it might wait for ever. */
  async standBack(until: Promise<unknown>): Promise<void> {
    const turn = this.#advance.take(false)
    if (turn === null) return
    const released = turn.release()
    this.#advance.renew(Promise.all([released, until]))
    await released
  }

  /** It is metered elsewhere. */
  rest(): void {
    this.#advance.follow(null)
  }

  /** Judges a message that asks for one. `model`: its own, if it names one. */
  async ask(type: DelegatingType, model: string | null, eventId: string | null): Promise<Verdict> {
    const planned = this.#plan(model === null ? this.models : this.#with([model]))
    if (this.#running.size + this.#asked.length >= limits.turnsPerSocketMax)
      return refusedBy(refuseTurn(this.#handshake, planned, refuseTooManyTurns(), this.#gateway), eventId)
    // It may be all that is left.
    while (this.#advance.pending !== null) await this.#advance.pending
    this.#isAsking = true
    await this.#advance.take()?.release()
    const admitted = await admitTurn(this.#handshake, planned, this.#gateway)
    this.#isAsking = false
    if (admitted.kind !== 'admitted' && this.running === 0) this.#advance.renew()
    if (admitted.kind === 'client_left') return { kind: 'dropped' }
    if (admitted.kind === 'refused') return refusedBy(admitted, eventId)
    const { turn } = admitted
    return {
      kind: 'pass',
      sent: () => {
        this.#asked.push({ turn, type, eventId, isRejected: false })
      },
      unsent: () => void this.#settle(turn.release()),
    }
  }

  /** Upstream's error may be about what was asked for: it is so if nothing begins for a while. */
  failed(aboutEventId: string | null): void {
    const asked = this.#asked.find(({ eventId, isRejected }) => !isRejected && eventId === aboutEventId)
    if (asked === undefined) return
    asked.isRejected = true
    setTimeout(() => {
      const at = this.#asked.indexOf(asked)
      if (at === -1) return
      this.#asked.splice(at, 1)
      void this.#settle(asked.turn.reject(400))
    }, limits.silentTurnMs).unref()
  }

  observe(type: string, payload: Buffer): void {
    if (type === 'decision.event') this.#decided(payload)
    const event = type === 'response.event' ? nestedEvent(payload) : null
    const read = event === null ? null : responseEvent(event)
    if (event === null || read === null) return
    const id = read.responseId ?? this.#onlyId()
    if (id === null || this.#settledIds.has(id)) return
    const delegated = this.#running.get(id) ?? this.#begin(id)
    this.#take(delegated, event)
    if (read.kind === 'ended') this.#end(id, delegated, COMPLETE)
  }

  end(cut: CallEnd): void {
    for (const [id, delegated] of this.#running) this.#end(id, delegated, cut)
    // They were waited for.
    for (const { turn } of this.#asked.splice(0)) this.#settlements.add(turn.reject(400))
    this.#settlements.add(this.#advance.end())
  }

  /** When nothing runs any more, there is one for what may begin next. */
  #settle(settled: Promise<void>): Promise<void> {
    const watched = this.#settlements.add(settled)
    if (this.running === 0 && !this.#isAsking) this.#advance.renew(watched)
    return watched
  }

  #knows(models: readonly (string | null)[]): boolean {
    return models.every((model) => this.models.includes(model))
  }

  #with(models: readonly (string | null)[]): readonly (string | null)[] {
    return [...new Set([...this.models, ...models])]
  }

  /** Most events do not say which response they belong to. */
  #onlyId(): string | null {
    const [id, ...others] = this.#running.keys()
    return others.length > 0 ? null : (id ?? null)
  }

  #begin(id: string): Delegated {
    const delegated: Delegated = { turn: null, events: [], bytes: 0, end: null }
    this.#running.set(id, delegated)
    const turn = this.#holdFor('response.create')
    if (turn !== null) start(delegated, turn, id)
    else this.#settlements.add(this.#admit(id, delegated))
    return delegated
  }

  #holdFor(wanted: DelegatingType): TurnCall | null {
    const at = this.#asked.findIndex(({ type }) => type === wanted)
    const [asked] = at === -1 ? [] : this.#asked.splice(at, 1)
    asked?.turn.takenOver()
    const turn = asked?.turn ?? this.#advance.take()
    return turn
  }

  async #admit(id: string, delegated: Delegated): Promise<void> {
    const turn = await this.#admitBegun()
    if (turn === null) return this.#forget(id)
    start(delegated, turn, id)
    for (const event of delegated.events.splice(0)) turn.observe(event)
    if (delegated.end !== null) await this.#settle(turn.end(delegated.end))
  }

  async #admitBegun(): Promise<TurnCall | null> {
    return await this.#advance.takeOrAdmit(foreseenWith(this.models))
  }

  /** Of what waits the last is kept in any case: it tells what was used. */
  #take(delegated: Delegated, event: Buffer): void {
    if (delegated.turn !== null) {
      delegated.turn.observe(event)
      return
    }
    if (delegated.bytes > EVENTS_BYTES_MAX) delegated.bytes -= delegated.events.pop()?.length ?? 0
    delegated.bytes += event.length
    delegated.events.push(event)
  }

  #end(id: string, delegated: Delegated, end: CallEnd): void {
    delegated.end = end
    this.#forget(id)
    if (delegated.turn !== null) void this.#settle(delegated.turn.end(end))
  }

  #forget(id: string): void {
    this.#running.delete(id)
    this.#settledIds.add(id)
  }

  #decided(payload: Buffer): void {
    const used = decisionUsage(payload)
    if (used === null) return
    const turn = this.#holdFor('decision.create')
    const settled =
      turn === null ? this.#admitBegun().then((begun) => begun?.endWith(used)) : turn.endWith(used)
    void this.#settle(settled)
  }

  /** By the dearest of them, as if it had been asked for by HTTP: it reads what upstream keeps. */
  #plan(models: readonly (string | null)[]): PlannedTurn {
    const [first = this.#planFor(null), ...others] = models.map((model) => this.#planFor(model))
    const dearest = others.reduce((a, b) => (holdsMore(b.plan.bill, a.plan.bill) ? b : a), first)
    const names = [first, ...others].flatMap(({ plan }) => plan.models.names)
    return { ...dearest, plan: { ...dearest.plan, models: { ...dearest.plan.models, names } } }
  }

  #planFor(model: string | null): PlannedTurn {
    const facts = readAtOnce(
      Buffer.from(JSON.stringify({ model, previous_response_id: 'live' })),
      SOCKET_NAMES,
    )
    const read = { kind: 'read', body: { kind: 'none' }, facts, audio: null } as const
    const request = { pieces: null, lengthBytes: 0, isForm: false, audioMs: null, speech: null }
    const exchange = { ...this.#handshake.exchange, method: 'POST' }
    const target = { path: PATH, query: '' }
    const call = { ...this.#handshake, read, request, endpoint: ENDPOINT, exchange, target }
    return { read, request, endpoint: ENDPOINT, plan: planCall(call, null, this.#gateway) }
  }
}

function foreseenWith(models: readonly (string | null)[]): Foreseen {
  return { kind: 'live', model: null, outputTokensMax: null, others: models }
}

function start(delegated: Delegated, turn: TurnCall, id: string): void {
  turn.sent(Buffer.alloc(0), 'responses')
  turn.responseId = id
  delegated.turn = turn
}
