/** Sessions of people who signed in with an admin key. The browser has a token, the store its digest. */

export interface NewSession {
  readonly digest: Uint8Array
  readonly adminKeyId: string
  readonly atMs: number
  readonly lifeMs: number
  /** Sessions of one admin key. Beyond it the oldest end. */
  readonly sessionsMax: number
}

export interface SessionRecord {
  readonly adminKeyId: string
  readonly accountId: string
  readonly expiresAtMs: number
}

/** Nothing about a session is remembered between requests: each one asks, as each does about its key. */
export interface SessionStore {
  /** Null if the admin key is not in force. */
  openSession(session: NewSession): Promise<SessionRecord | null>
  /** Null if there is none, if it has expired, or if its admin key is not in force any more. */
  findSession(digest: Uint8Array, atMs: number): Promise<SessionRecord | null>
  endSession(digest: Uint8Array): Promise<void>
}
