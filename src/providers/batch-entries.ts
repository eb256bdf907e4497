import { addBounds, type Bound, NO_COST } from '../kernel/money.ts'
import type { Borrowed } from '../kernel/read-buffer.ts'
import type { Surface } from '../kernel/surface.ts'
import type { Ambiguity, RequestFacts } from '../metering/request-facts.ts'
import { type RequestReader, readerFor } from '../metering/request-reader.ts'
import { ambiguityFor } from './ambiguity.ts'
import type { Endpoint } from './endpoint.ts'
import { findEndpoint } from './find-endpoint.ts'
import { SURFACES } from './surfaces.ts'
import { type EntryWatch, watchRecords } from './watch-records.ts'

/** The most that a request inside a batch can cost. */
export type BoundEntry = (endpoint: Endpoint, facts: RequestFacts, bodyBytes: number) => Bound

/**
 * Bounds the requests of a batch, one after the other, as their bytes pass. Each is read like a request of its own, with
 * the same words and the same doubts. Nothing is kept but the sum.
 */
export class BatchEntries implements EntryWatch {
  readonly #surface: Surface
  readonly #boundEntry: BoundEntry
  /** Those that the entries may be for. A batch has requests for one of them; the first entry tells which. */
  #templates: readonly string[]
  #readers: ReadonlyMap<string, RequestReader> | null = null
  #bytes = 0
  #bound: Bound = NO_COST
  #ambiguity: Ambiguity | null = null

  constructor(surface: Surface, boundEntry: BoundEntry) {
    this.#surface = surface
    this.#boundEntry = boundEntry
    this.#templates = SURFACES[surface].batchEndpoints
  }

  get bound(): Bound {
    return this.#bound
  }

  get ambiguity(): Ambiguity | null {
    return this.#ambiguity
  }

  write(bytes: Borrowed): void {
    this.#readers ??= new Map(this.#templates.map((template) => [template, this.#readerOf(template)]))
    this.#bytes += bytes.length
    for (const reader of this.#readers.values()) reader.write(bytes)
  }

  endEntry(template: string): boolean {
    const reader = this.#readers?.get(template)
    const endpoint = findEndpoint(this.#surface, 'POST', template)
    const bodyBytes = this.#bytes
    this.#readers = null
    this.#bytes = 0
    if (reader === undefined || endpoint === null) return false
    this.#templates = [template]
    // Nothing that is read here is encoded, so the answer is there at once.
    const facts = reader.end() as RequestFacts
    this.#ambiguity ??= ambiguityFor(endpoint, facts)
    this.#bound = addBounds(this.#bound, this.#boundEntry(endpoint, facts, bodyBytes))
    return true
  }

  #readerOf(template: string): RequestReader {
    return readerFor(
      'application/json',
      undefined,
      watchRecords(findEndpoint(this.#surface, 'POST', template)),
    )
  }
}
