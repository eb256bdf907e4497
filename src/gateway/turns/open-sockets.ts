import type { Clock } from '../../kernel/clock.ts'
import type { Store } from '../../store/store.ts'

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

interface Owner {
  readonly accountId: string
  readonly keyId: string
}

/** Checks the keys of open sockets regularly: no socket may stay open after its key was revoked. */
export class OpenSockets {
  readonly #store: Pick<Store, 'mayCall'>
  readonly #clock: Clock
  readonly #sessions = new Map<OpenSocket, Owner>()
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

  add(session: OpenSocket, owner: Owner): void {
    this.#sessions.set(session, owner)
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
    const byKey = new Map<string, { readonly owner: Owner; readonly sessions: OpenSocket[] }>()
    for (const [session, owner] of this.#sessions) {
      session.checkTimeouts(nowMs)
      const key = byKey.get(owner.keyId) ?? { owner, sessions: [] }
      key.sessions.push(session)
      byKey.set(owner.keyId, key)
    }
    const keys = byKey.values()
    const checkNextKeys = async () => {
      for (const { owner, sessions } of keys) {
        if (await this.#mayCall(owner)) continue
        for (const session of sessions) session.keyRevoked()
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
  async #mayCall({ keyId }: Owner): Promise<boolean> {
    try {
      return await this.#store.mayCall(keyId, this.#clock.nowMs())
    } catch {
      return true
    }
  }
}
