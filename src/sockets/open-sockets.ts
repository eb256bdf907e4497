import type { Clock } from '../kernel/clock.ts'
import type { Store } from '../store/store.ts'

/** How many keys of open sockets are checked at once, and how often. */
const SOCKET_KEYS_AT_ONCE = 16

export const SOCKET_KEY_POLL_MS = 2_000

/** How long before the end of the drain time sockets are closed, so that their close frames are sent. */
const CLOSE_BEFORE_MS = 250

interface OpenSocket {
  readonly ended: Promise<void>
  drain(): void
  closeForRestart(): number
  keyRevoked(): void
  checkTimeouts(nowMs: number): void
}

/** Checks the keys of open sockets regularly: no socket may stay open after its key was revoked. */
export class OpenSockets {
  readonly #store: Pick<Store, 'mayCall'>
  readonly #clock: Clock
  /** The sockets with the ids of their keys. */
  readonly #sessions = new Map<OpenSocket, string>()
  #sweep: NodeJS.Timeout | null = null
  #isDraining = false
  turnsCut = 0

  constructor(store: Pick<Store, 'mayCall'>, clock: Clock) {
    this.#store = store
    this.#clock = clock
  }

  get count(): number {
    return this.#sessions.size
  }

  add(session: OpenSocket, { keyId }: { readonly keyId: string }): void {
    this.#sessions.set(session, keyId)
    session.ended.then(() => this.#sessions.delete(session))
    if (this.#sweep === null) this.#scheduleSweep()
    if (this.#isDraining) session.drain()
  }

  /** Begins the shutdown: each socket closes after its last turn, or shortly before the drain time ends. */
  drain(drainMs: number): void {
    this.#isDraining = true
    for (const session of this.#sessions.keys()) session.drain()
    setTimeout(
      () => {
        for (const session of this.#sessions.keys()) this.turnsCut += session.closeForRestart()
      },
      Math.max(0, drainMs - CLOSE_BEFORE_MS),
    ).unref()
  }

  /** Checks the keys, a few at a time. Checking all at once would delay calls that wait for the database. */
  async #checkKeys(): Promise<void> {
    const nowMs = this.#clock.monotonicMs()
    for (const session of this.#sessions.keys()) session.checkTimeouts(nowMs)
    const keys = Map.groupBy(this.#sessions, ([, keyId]) => keyId).entries()
    const checkNextKeys = async () => {
      for (const [keyId, sockets] of keys) {
        if (await this.#mayCall(keyId)) continue
        for (const [session] of sockets) session.keyRevoked()
      }
    }
    await Promise.all(Array.from({ length: SOCKET_KEYS_AT_ONCE }, checkNextKeys))
    if (this.#sessions.size > 0) this.#scheduleSweep()
    else this.#sweep = null
  }

  #scheduleSweep(): void {
    this.#sweep = setTimeout(() => this.#checkKeys(), SOCKET_KEY_POLL_MS).unref()
  }

  /** While the database is unavailable, sockets stay open. No turn is admitted without the database. */
  async #mayCall(keyId: string): Promise<boolean> {
    try {
      return await this.#store.mayCall(keyId, this.#clock.nowMs())
    } catch {
      return true
    }
  }
}
