const MINUTE_MS = 60_000

/** Counts the changes of each account in the current UTC minute, on this node. */
export class ChangeRate {
  readonly #max: number
  readonly #counts = new Map<string, number>()
  #minute = 0

  constructor(max: number) {
    this.#max = max
  }

  /** False: the account has made its changes of this minute. */
  admit(accountId: string, atMs: number): boolean {
    const minute = Math.trunc(atMs / MINUTE_MS)
    if (minute !== this.#minute) this.#counts.clear()
    this.#minute = minute
    const count = (this.#counts.get(accountId) ?? 0) + 1
    if (count > this.#max) return false
    this.#counts.set(accountId, count)
    return true
  }
}

export function secondsToNextMinute(atMs: number): number {
  return Math.ceil((MINUTE_MS - (atMs % MINUTE_MS)) / 1_000)
}
