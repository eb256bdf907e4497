import { limits } from '../../kernel/limits.ts'

/** The ids that were seen last, as many as `max`. */
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

/** How often messages without an id were seen, by a digest of their content. Beyond `max` digests the oldest is forgotten. */
export class SeenCounts {
  readonly #max: number
  readonly #counts: Map<string, number>

  constructor(max: number, counts: Iterable<readonly [string, number]> = []) {
    this.#max = max
    this.#counts = new Map(counts)
  }

  copy(): SeenCounts {
    return new SeenCounts(this.#max, this.#counts)
  }

  countOf(digest: string): number {
    return this.#counts.get(digest) ?? 0
  }

  /** Returns the count with this one. */
  add(digest: string): number {
    const count = this.countOf(digest) + 1
    this.#counts.delete(digest)
    this.#counts.set(digest, count)
    const [oldest] = this.#counts.keys()
    if (this.#counts.size > this.#max && oldest !== undefined) this.#counts.delete(oldest)
    return count
  }
}

/** The ids that a client gives its messages. An error names one, and a client may provoke an error under the id of another message. */
export class ClientEventIds {
  readonly #counts = new Map<string, number>()

  add(id: string | null): void {
    if (id !== null && this.#counts.size <= limits.clientIdsMax)
      this.#counts.set(id, (this.#counts.get(id) ?? 0) + 1)
  }

  isUnique(id: string | null): boolean {
    return id !== null && this.#counts.size <= limits.clientIdsMax && this.#counts.get(id) === 1
  }
}
