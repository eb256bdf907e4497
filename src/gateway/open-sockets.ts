import type { Clock } from '../kernel/clock.ts'
import { limits } from '../kernel/limits.ts'
import type { KeyLookupStore } from '../keys/credential.ts'
import type { SocketSession } from './socket-session.ts'

/** The WebSockets that are open on this node. Each of its keys is asked about now and then: none may outlive its key. */
export class OpenSockets {
  readonly #store: KeyLookupStore
  readonly #clock: Clock
  readonly #sessions = new Map<SocketSession, Buffer>()
  #sweep: NodeJS.Timeout | null = null
  #isDraining = false

  constructor(store: KeyLookupStore, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  get count(): number {
    return this.#sessions.size
  }

  add(session: SocketSession, digest: Buffer): void {
    this.#sessions.set(session, digest)
    session.ended.then(() => {
      this.#sessions.delete(session)
      if (this.#sessions.size > 0 || this.#sweep === null) return
      clearInterval(this.#sweep)
      this.#sweep = null
    })
    this.#sweep ??= setInterval(() => this.#look(), limits.socketKeyLookMs).unref()
    if (this.#isDraining) session.drain()
  }

  /** From here on sockets close with their last turn. */
  drain(): void {
    this.#isDraining = true
    for (const session of this.#sessions.keys()) session.drain()
  }

  #look(): void {
    const nowMs = this.#clock.monotonicMs()
    const byKey = new Map<string, SocketSession[]>()
    for (const [session, digest] of this.#sessions) {
      session.checkTime(nowMs)
      const name = digest.toString('latin1')
      byKey.set(name, [...(byKey.get(name) ?? []), session])
    }
    for (const [name, sessions] of byKey) this.#lookAtKey(Buffer.from(name, 'latin1'), sessions)
  }

  /** A store that cannot be asked admits no turn either. */
  #lookAtKey(digest: Buffer, sessions: readonly SocketSession[]): void {
    this.#store.lookUpKey(digest, this.#clock.nowMs()).then(
      (caller) => {
        if (caller.kind !== 'api_key') for (const session of sessions) session.revoked()
      },
      () => {},
    )
  }
}
