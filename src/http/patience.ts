import { limits } from '../kernel/limits.ts'

/** Why a connection is to end: it says nothing for too long, a head takes too long, or a reply is not taken. */
export type Impatience = 'rests' | 'head_late' | 'not_taken'

/** How long a client may be silent, and how long it may take nothing of a reply that is over. */
export class Patience {
  /** Since when a head is being waited for; null while one is being answered. */
  #waitingSinceMs: number | null
  #headBegun = false
  /** The first head must come in time; before another one the connection may rest. */
  #isNew = true
  #taken: number | null = null
  #takenSinceMs = 0

  constructor(nowMs: number) {
    this.#waitingSinceMs = nowMs
  }

  /** Of a head something has come, but not all. */
  get headBegun(): boolean {
    return this.#headBegun
  }

  headBegins(nowMs: number): void {
    this.#headBegun = true
    if (!this.#isNew) this.#waitingSinceMs = nowMs
  }

  headCame(): void {
    this.#headBegun = false
    this.#isNew = false
    this.#waitingSinceMs = null
  }

  /** All that was asked is answered. Some of the next head may have come meanwhile. */
  allAnswered(nowMs: number, headBegun: boolean): void {
    this.#waitingSinceMs = nowMs
    this.#headBegun = headBegun
  }

  /** `takenBytes` is how much was taken of a reply that is over and has not left yet; null if there is none. */
  check(nowMs: number, takenBytes: number | null): Impatience | null {
    if (takenBytes === null || takenBytes !== this.#taken) this.#takenSinceMs = nowMs
    this.#taken = takenBytes
    if (nowMs - this.#takenSinceMs >= limits.replyStallTimeoutMs) return 'not_taken'
    if (this.#waitingSinceMs === null) return null
    const waitedMs = nowMs - this.#waitingSinceMs
    // A connection that never sent a byte was opened ahead of need, by a browser or a pool: a 408 on it would be taken for
    // the answer to the request that it is used for next.
    if (!this.#headBegun) {
      return waitedMs >= (this.#isNew ? limits.headTimeoutMs : limits.keepAliveTimeoutMs) ? 'rests' : null
    }
    return waitedMs >= limits.headTimeoutMs ? 'head_late' : null
  }
}
