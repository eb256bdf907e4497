import { limits } from '../kernel/limits.ts'
import { SOCKET_NAMES } from '../metering/request-facts.ts'
import { readerFor } from '../metering/request-reader.ts'
import { findEndpoint } from '../providers/find-endpoint.ts'
import { decisionUsage, nestedEvent } from '../providers/live-events.ts'
import { responseEvent } from '../providers/response-events.ts'
import { admitLate, type RefusedAdvance } from './advance-hold.ts'
import type { PlannedCall } from './call.ts'
import type { CallEnd } from './forward.ts'
import type { Gateway } from './gateway.ts'
import { planCall } from './plan.ts'
import { RecentIds } from './seen-ids.ts'
import type { PlannedTurn, TurnCall, TurnSettlements } from './turn-call.ts'

/** A response of another model that has begun: its events wait until it is admitted. */
interface Delegated {
  turn: TurnCall | null
  events: Buffer[]
  bytes: number
  end: CallEnd | null
}

/** One that the client has asked for, and that has not begun. */
interface Asked {
  readonly turn: TurnCall
  readonly type: string
  readonly eventId: string | null
  /** An error may have been about it. For a while it may begin all the same. */
  isRejected: boolean
}

const COMPLETE: CallEnd = { kind: 'complete', trailers: [] }
const PATHS = { 'response.create': '/v1/responses', 'decision.create': '/v1/decisions' } as const
export type DelegatingType = keyof typeof PATHS

const EVENTS_BYTES_MAX = 1024 * 1024
const SETTLED_IDS_MAX = 256

/** What a Live session has other models do. Upstream begins it by itself or is asked to, and each piece of work is a call. */
export class DelegatedResponses {
  readonly #handshake: PlannedCall
  readonly #gateway: Gateway
  readonly #settlements: TurnSettlements
  readonly #onRefused: (refused: RefusedAdvance) => void
  readonly #asked: Asked[] = []
  readonly #running = new Map<string, Delegated>()
  readonly #settledIds = new RecentIds(SETTLED_IDS_MAX)
  #admitting: Promise<void> | null = null
  #isOver = false

  constructor(
    handshake: PlannedCall,
    gateway: Gateway,
    settlements: TurnSettlements,
    onRefused: (refused: RefusedAdvance) => void,
  ) {
    this.#handshake = handshake
    this.#gateway = gateway
    this.#settlements = settlements
    this.#onRefused = onRefused
  }

  get running(): number {
    return this.#running.size + this.#asked.filter(({ isRejected }) => !isRejected).length
  }

  /** While what upstream has begun is being admitted, nothing of the client's goes. */
  get pending(): Promise<void> | null {
    return this.#admitting
  }

  /** Whether a message of the client's begins one. */
  isCreate(type: string | null): type is DelegatingType {
    return type !== null && Object.hasOwn(PATHS, type)
  }

  planFor(type: DelegatingType, model: string | null): Promise<PlannedTurn> {
    return this.#plan(PATHS[type], model)
  }

  /** The message that asks for it has gone. */
  asked(turn: TurnCall, type: DelegatingType, eventId: string | null): void {
    this.#asked.push({ turn, type, eventId, isRejected: false })
  }

  failed(aboutEventId: string | null): void {
    const asked = this.#asked.find(({ eventId, isRejected }) => !isRejected && eventId === aboutEventId)
    if (asked === undefined) return
    asked.isRejected = true
    setTimeout(() => {
      const at = this.#asked.indexOf(asked)
      if (at === -1) return
      this.#asked.splice(at, 1)
      this.#settlements.add(asked.turn.reject(400))
    }, limits.silentTurnMs).unref()
  }

  paused(isPaused: boolean): void {
    for (const { turn } of this.#running.values()) turn?.paused(isPaused)
  }

  /** `model`: as the session names it. */
  observe(type: string, payload: Buffer, model: string | null): void {
    if (type === 'decision.event') this.#decided(payload, model)
    const event = type === 'response.event' ? nestedEvent(payload) : null
    const read = event === null ? null : responseEvent(event)
    if (event === null || read === null) return
    const id = read.responseId ?? this.#onlyId()
    if (id === null || this.#settledIds.has(id)) return
    const delegated = this.#running.get(id) ?? this.#begin(id, model)
    this.#take(delegated, event)
    if (read.kind === 'ended') this.#end(id, delegated, COMPLETE)
  }

  end(cut: CallEnd): void {
    this.#isOver = true
    for (const [id, delegated] of this.#running) this.#end(id, delegated, cut)
    for (const { turn, isRejected } of this.#asked.splice(0))
      this.#settlements.add(isRejected ? turn.reject(400) : turn.end(cut))
  }

  #takeAsked(wanted: DelegatingType): TurnCall | null {
    const at = this.#asked.findIndex(({ type }) => type === wanted)
    const [asked] = at === -1 ? [] : this.#asked.splice(at, 1)
    asked?.turn.takenOver()
    return asked?.turn ?? null
  }

  /** Most events do not say which response they belong to. */
  #onlyId(): string | null {
    const [id, ...others] = this.#running.keys()
    return others.length > 0 ? null : (id ?? null)
  }

  #begin(id: string, model: string | null): Delegated {
    const delegated: Delegated = { turn: null, events: [], bytes: 0, end: null }
    this.#running.set(id, delegated)
    const asked = this.#takeAsked('response.create')
    if (asked !== null) this.#start(id, delegated, asked)
    else this.#settlements.add(this.#admit(id, delegated, model))
    return delegated
  }

  #start(id: string, delegated: Delegated, turn: TurnCall): void {
    turn.sent(Buffer.alloc(0), 'responses')
    turn.responseId = id
    delegated.turn = turn
  }

  async #admit(id: string, delegated: Delegated, model: string | null): Promise<void> {
    const planned = await this.#plan('/v1/responses', model)
    const turn = await this.#admitLate(planned)
    if (turn === null) return this.#forget(id)
    this.#start(id, delegated, turn)
    for (const event of delegated.events.splice(0)) turn.observe(event)
    if (delegated.end !== null) await turn.end(delegated.end)
  }

  #take(delegated: Delegated, event: Buffer): void {
    if (delegated.turn !== null) delegated.turn.observe(event)
    else if (delegated.bytes + event.length <= EVENTS_BYTES_MAX) {
      delegated.bytes += event.length
      delegated.events.push(event)
    }
  }

  #end(id: string, delegated: Delegated, end: CallEnd): void {
    delegated.end = end
    this.#forget(id)
    if (delegated.turn !== null) this.#settlements.add(delegated.turn.end(end))
  }

  #forget(id: string): void {
    this.#running.delete(id)
    this.#settledIds.add(id)
  }

  #decided(payload: Buffer, model: string | null): void {
    const used = decisionUsage(payload)
    if (used === null) return
    const asked = this.#takeAsked('decision.create')
    if (asked !== null) {
      this.#settlements.add(asked.endWith(used))
      return
    }
    const settled = this.#plan('/v1/decisions', model)
      .then((planned) => this.#admitLate(planned))
      .then((turn) => turn?.endWith(used))
    this.#settlements.add(settled)
  }

  #admitLate(planned: PlannedTurn): Promise<TurnCall | null> {
    const onRefused = this.#isOver ? null : this.#onRefused
    const admitted = admitLate(this.#handshake, planned, this.#gateway, onRefused)
    const admitting = admitted.then(() => {
      if (this.#admitting === admitting) this.#admitting = null
    })
    this.#admitting = admitting
    return admitted
  }

  /** As if it had been asked for by HTTP: it reads what upstream keeps. */
  async #plan(path: string, model: string | null): Promise<PlannedTurn> {
    const reader = readerFor('application/json', undefined, null, { names: SOCKET_NAMES })
    await reader.write(Buffer.from(JSON.stringify({ model, previous_response_id: 'live' })))
    const facts = await reader.end()
    const endpoint = findEndpoint('chat', 'POST', path)
    const read = { kind: 'read', body: { kind: 'none' }, facts, audio: null } as const
    const request = { pieces: null, lengthBytes: 0, isForm: false, audioMs: null, speech: null }
    const exchange = { ...this.#handshake.exchange, method: 'POST' }
    const call = { ...this.#handshake, read, request, endpoint, exchange, target: { path, query: '' } }
    return { read, request, endpoint, plan: planCall(call, null, this.#gateway) }
  }
}
