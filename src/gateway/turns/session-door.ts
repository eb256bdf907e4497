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
import { type Foreseen, planForeseen, type RefusedHold } from './advance-hold.ts'
import { type MeteredSocket, refusedBy, type Verdict } from './socket-meter.ts'
import { refuseTurn } from './turn-call.ts'

export type ClientEvent = SessionMessage & { readonly kind: 'event' }

/** Messages that contain audio and nothing else. */
const SOUND_ONLY = /(?:^|\.)input_audio(?:_buffer)?\.append$/

/** All bytes of a message that are not audio. */
export function textBytesOf({ type, audioBytes }: ClientEvent, payload: Buffer): number {
  return SOUND_ONLY.test(type ?? '') ? 0 : payload.length - audioBytes
}

/** How a session ends: the gateway has stopped to read, or upstream to send. */
export type Cut = CallEnd & { readonly kind: 'abandoned' | 'cut' }

interface SessionParts {
  /** What messages of the client have to wait for. */
  pending(): Promise<unknown> | null
  /** A message that is refused is recorded as this turn. */
  foreseen(): Foreseen
  decide(event: ClientEvent, payload: Buffer): Verdict | Promise<Verdict>
}

/** Judges the messages of a session on their way upstream, as far as Realtime, Live and translations have it in common. */
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

  /** The client has left, or is being closed. */
  get hasClientLeft(): boolean {
    return this.#socket?.hasClientLeft() === true
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

  /** There can be no hold any more, so the socket closes; with a revoked key when its last turn has ended. */
  close({ refusal, requestId }: RefusedHold): void {
    if (!this.#isRefused) this.#socket?.refuse(refusal, { requestId, streamId: null, eventId: null })
    this.#isRefused = true
    if (refusal.code === 'invalid_api_key') this.#socket?.revoked()
    else this.#socket?.close(1008, refusal.message)
  }

  /** Null: the key is in force, and where `paid`, has something left to pay with. */
  async refuseKey(paid: boolean): Promise<RefusedHold | null> {
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

  /** `mayCost`: though no turn runs, upstream may still state a usage. */
  readOnMs(running: number, mayCost = false): number {
    if (running > 0 && this.#gateway.onLeave === 'finish') return limits.finishMs
    return running > 0 || mayCost ? limits.readOnMs : 0
  }

  /** Null: the session has ended before. */
  end(abandoned: boolean): Cut | null {
    if (this.#isOver) return null
    this.#isOver = true
    if (abandoned) return { kind: 'abandoned', sent: true }
    return { kind: 'cut', error: new Error('upstream closed the socket') }
  }

  async #decideLater(read: SessionMessage | Promise<SessionMessage>, payload: Buffer): Promise<Verdict> {
    const event = await read
    const { pending } = this.#parts
    // A cancel need not wait: it begins nothing.
    const ends = event.kind === 'event' && event.type === 'response.cancel'
    for (let wait = pending(); wait !== null && !ends; wait = pending()) await wait.catch(() => {})
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
