import { BoundedMap } from '../bounded-map.ts'
import { storedSessionsMax } from '../limits.ts'
import { Refusal } from '../refusal.ts'
import type { EventSocket } from './event-socket.ts'
import { LiveSession } from './live-session.ts'

/** The Live sessions that can be attached to, or forked when they are over. */
export class LiveDoor {
  readonly #sessions = new BoundedMap<LiveSession>(storedSessionsMax)
  readonly #onStart = (session: LiveSession): void => this.#sessions.set(session.id, session)

  /** WS /v1/live/sessions */
  readonly begin = (socket: EventSocket): void => {
    new LiveSession(socket, this.#onStart)
  }

  /** WS /v1/live/sessions/{id}/attach */
  readonly attach = (id: string): ((socket: EventSocket) => void) => {
    const session = this.#find(id)
    if (session.isOpen) return (socket) => session.attach(socket)
    throw new Refusal(409, `Live session '${id}' is over.`, { code: 'session_closed' })
  }

  /** WS /v1/live/sessions/{id}/fork */
  readonly fork = (id: string): ((socket: EventSocket) => void) => {
    const { json } = this.#find(id)
    return (socket) => {
      new LiveSession(socket, this.#onStart, json ?? {})
    }
  }

  #find(id: string): LiveSession {
    const session = this.#sessions.get(id)
    if (session !== undefined) return session
    throw new Refusal(404, `Live session '${id}' not found.`, { code: 'session_not_found' })
  }
}
