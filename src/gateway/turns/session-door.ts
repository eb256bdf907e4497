import type { CallEnd } from '../../http/upstream-call.ts'
import { refuse } from '../../kernel/errors.ts'
import { limits } from '../../kernel/limits.ts'
import { ambiguityOf } from '../../providers/ambiguity.ts'
import { type SessionMessage, sessionMessage } from '../../providers/realtime-events.ts'
import type { Message } from '../../sockets/message-reader.ts'
import { checkKey } from '../admit.ts'
import type { PlannedCall } from '../call.ts'
import type { Gateway } from '../gateway.ts'
import { explainThrown } from '../refusals.ts'
import { type Foreseen, planForeseen, type RefusedAdvance } from './advance-hold.ts'
import { type MeteredSocket, refusedBy, type Verdict } from './socket-meter.ts'
import { refuseTurn } from './turn-call.ts'

export type ClientEvent = SessionMessage & { readonly kind: 'event' }

/** Messages that bring sound and nothing else. */
const SOUND_ONLY = /(?:^|\.)input_audio(?:_buffer)?\.append$/

/** Of what a message brings, all that is not sound. */
export function wordBytes({ type, audioBytes }: ClientEvent, payload: Buffer): number {
  return SOUND_ONLY.test(type ?? '') ? 0 : payload.length - audioBytes
}

/** How a session ends: it was us who stopped, or upstream. */
export type Cut = CallEnd & { readonly kind: 'abandoned' | 'cut' }

interface SessionParts {
  /** While it is being had, nothing of the client's goes upstream. */
  pending(): Promise<unknown> | null
  /** What is refused is recorded as this. */
  foreseen(): Foreseen
  decide(event: ClientEvent, payload: Buffer): Verdict | Promise<Verdict>
}

/** What messages of a session pass on their way upstream: Realtime, Live and translations have it in common. */
export class SessionDoor {
  readonly #handshake: PlannedCall
  readonly #gateway: Gateway
  readonly #parts: SessionParts
  #socket: MeteredSocket | null = null
  #isRefused = false
  #isOver = false

  constructor(handshake: PlannedCall, gateway: Gateway, parts: SessionParts) {
    this.#handshake = handshake
    this.#gateway = gateway
    this.#parts = parts
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** The client is gone, or is being told to go. */
  get isLeft(): boolean {
    return this.#socket?.isLeft() === true
  }

  start(socket: MeteredSocket): void {
    this.#socket = socket
  }

  turnEnded(): void {
    this.#socket?.turnEnded()
  }

  judge(message: Message): Verdict | Promise<Verdict> {
    if (message.kind !== 'message')
      return this.#refuseUnread(ambiguityOf({ kind: 'unreadable', reason: message.why })?.detail ?? '')
    const { payload } = message
    const read = sessionMessage(payload)
    if (read instanceof Promise || this.#parts.pending() !== null) return this.#decideLater(read, payload)
    return this.#decide(read, payload)
  }

  /** Nothing more can be held. What runs with a key that was revoked goes to its end. */
  close({ refusal, requestId }: RefusedAdvance): void {
    if (!this.#isRefused) this.#socket?.refuse(refusal, { requestId, streamId: null, eventId: null })
    this.#isRefused = true
    if (refusal.code === 'invalid_api_key') this.#socket?.revoked()
    else this.#socket?.close(1008, refusal.message)
  }

  /** Null: the key is in force and, where it is asked for, has something left to pay with. */
  async refuseKey(paid: boolean): Promise<RefusedAdvance | null> {
    const { digest, exchange } = this.#handshake
    const { requestId } = exchange
    try {
      const denial = await checkKey(digest, paid, exchange, this.#gateway)
      return denial && { kind: 'refused', requestId, ...denial }
    } catch (error) {
      const refusal = explainThrown(error, requestId, this.#gateway.log)
      return { kind: 'refused', requestId, refusal, balanceNanos: null }
    }
  }

  /** `mayCost`: though nothing runs, upstream may say what something has cost. */
  readOnMs(running: number, mayCost = false): number {
    if (running > 0 && this.#gateway.onLeave === 'finish') return limits.finishMs
    return running > 0 || mayCost ? limits.readOnMs : 0
  }

  /** Null: it has ended before. */
  end(abandoned: boolean): Cut | null {
    if (this.#isOver) return null
    this.#isOver = true
    if (abandoned) return { kind: 'abandoned', sent: true }
    return { kind: 'cut', error: new Error('upstream closed the socket') }
  }

  async #decideLater(read: SessionMessage | Promise<SessionMessage>, payload: Buffer): Promise<Verdict> {
    const event = await read
    const { pending } = this.#parts
    // What ends something need not wait.
    const ends = event.kind === 'event' && event.type === 'response.cancel'
    for (let had = pending(); had !== null && !ends; had = pending()) await had.catch(() => {})
    return this.#isOver ? { kind: 'dropped' } : await this.#decide(event, payload)
  }

  #decide(event: SessionMessage, payload: Buffer): Verdict | Promise<Verdict> {
    return event.kind === 'event' ? this.#parts.decide(event, payload) : this.#refuseUnread(event.detail)
  }

  #refuseUnread(detail: string): Verdict {
    const planned = planForeseen(this.#parts.foreseen(), this.#gateway)
    return refusedBy(refuseTurn(this.#handshake, planned, refuse('bad_request', detail), this.#gateway), null)
  }
}
