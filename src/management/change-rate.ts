const MINUTE_MS = 60_000

/** Counts the changes of each name in the current minute (UTC), or in a longer window, on this node. */
export class ChangeRate {
  readonly #max: number
  readonly #windowMs: number
  readonly #counts = new Map<string, number>()
  #window = 0

  constructor(max: number, windowMs = MINUTE_MS) {
    this.#max = max
    this.#windowMs = windowMs
  }

  /** Null: the change counts. Otherwise the maximum is reached, and there are so many seconds to the next window. */
  admit(name: string, atMs: number): number | null {
    const seconds = this.secondsToWait(name, atMs)
    if (seconds === null) this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1)
    return seconds
  }

  /** As `admit`, but counts nothing. */
  secondsToWait(name: string, atMs: number): number | null {
    const window = Math.trunc(atMs / this.#windowMs)
    if (window !== this.#window) this.#counts.clear()
    this.#window = window
    if ((this.#counts.get(name) ?? 0) < this.#max) return null
    return Math.ceil((this.#windowMs - (atMs % this.#windowMs)) / 1_000)
  }
}
