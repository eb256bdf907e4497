import { limits } from '../kernel/limits.ts'

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
