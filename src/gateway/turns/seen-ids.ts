import { limits } from '../../kernel/limits.ts'

/** Ids that were seen. Beyond so many the oldest is forgotten. */
export class RecentIds {
  readonly #max: number
  readonly #ids = new Set<string>()

  constructor(max: number) {
    this.#max = max
  }

  has(id: string): boolean {
    return this.#ids.has(id)
  }

  add(id: string): void {
    this.#ids.add(id)
    const [oldest] = this.#ids
    if (this.#ids.size > this.#max && oldest !== undefined) this.#ids.delete(oldest)
  }
}

/** How often what has no id was seen, by a digest of what it says. Beyond so many the oldest is forgotten. */
export class SeenTimes {
  readonly #max: number
  readonly #times: Map<string, number>

  constructor(max: number, times: Iterable<readonly [string, number]> = []) {
    this.#max = max
    this.#times = new Map(times)
  }

  copy(): SeenTimes {
    return new SeenTimes(this.#max, this.#times)
  }

  times(digest: string): number {
    return this.#times.get(digest) ?? 0
  }

  /** Once more. How often it is now. */
  see(digest: string): number {
    const times = this.times(digest) + 1
    this.#times.delete(digest)
    this.#times.set(digest, times)
    const [oldest] = this.#times.keys()
    if (this.#times.size > this.#max && oldest !== undefined) this.#times.delete(oldest)
    return times
  }
}

/** The ids that a client gives its messages. An error names one, and clients may provoke errors under the id of another message. */
export class EventIds {
  readonly #times = new Map<string, number>()

  add(id: string | null): void {
    if (id !== null && this.#times.size <= limits.clientIdsMax)
      this.#times.set(id, (this.#times.get(id) ?? 0) + 1)
  }

  isUnique(id: string | null): boolean {
    return id !== null && this.#times.size <= limits.clientIdsMax && this.#times.get(id) === 1
  }
}
