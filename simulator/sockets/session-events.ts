import { failureOf } from '../answer-request.ts'
import { chatErrorJson } from '../chat/chat-error.ts'
import type { Identity } from '../identity.ts'
import { asText, type JsonObject } from '../json.ts'
import type { Refusal } from '../refusal.ts'
import type { EventSocket } from './event-socket.ts'

/** The events of a session: every event has an id of its own, and an error names the event that it is about. */
export class SessionEvents {
  readonly socket: EventSocket
  readonly identity: Identity

  constructor(socket: EventSocket) {
    this.socket = socket
    this.identity = socket.identityOf(-1, Buffer.alloc(0))
  }

  readonly stamp = (event: JsonObject): JsonObject => {
    const { type, ...rest } = event
    return { type, event_id: `event_${this.identity.base62(21)}`, ...rest }
  }

  send(type: string, fields: JsonObject = {}): void {
    void this.socket.send(this.stamp({ type, ...fields }))
  }

  readonly refuse = (refusal: Refusal, about: JsonObject): void => {
    this.send('error', { error: { ...chatErrorJson(refusal), event_id: asText(about['event_id']) || null } })
  }

  /** The event that ends a turn which fails. */
  failure(): JsonObject {
    return { type: 'error', error: { ...chatErrorJson(failureOf('chat', 500)), event_id: null } }
  }

  /** Refuses a session that cannot be: the client is told why, and the socket is closed. */
  refuseSession(refusal: Refusal): void {
    this.refuse(refusal, {})
    const { type, code } = chatErrorJson(refusal)
    this.socket.close(4_000, `${type}.${code}`)
  }

  newId(prefix: string): string {
    return `${prefix}_${this.identity.base62(21)}`
  }

  /** An hour from now, in seconds. */
  expiry(): number {
    return Math.floor(this.identity.now().getTime() / 1_000) + 3_600
  }
}
