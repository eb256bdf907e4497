/** A Live session that was seen here. */
export interface LiveSession {
  /** The socket by which it is metered. Others that look on see the same figures, and are not billed for them. */
  meteredBy: object | null
  settledSeconds: number
}

/** Beyond it the oldest that nobody meters are forgotten. */
const SESSIONS_MAX = 10_000

/** The Live sessions of this node: any number of sockets may be attached to one, and it is paid for once. */
export class LiveSessions {
  readonly #sessions = new Map<string, LiveSession>()

  /** Null: another socket meters it. */
  claim(id: string, socket: object): LiveSession | null {
    const session = this.#sessions.get(id) ?? { meteredBy: null, settledSeconds: 0 }
    if (session.meteredBy !== null && session.meteredBy !== socket) return null
    session.meteredBy = socket
    this.#sessions.set(id, session)
    if (this.#sessions.size > SESSIONS_MAX) this.#forgetOne()
    return session
  }

  #forgetOne(): void {
    for (const [id, { meteredBy }] of this.#sessions) {
      if (meteredBy !== null) continue
      this.#sessions.delete(id)
      return
    }
  }
}
