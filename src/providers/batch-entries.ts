import type { Borrowed } from '../kernel/memory.ts'
import { addBounds, type Bound, NO_COST } from '../kernel/money.ts'
import type { Surface } from '../kernel/surface.ts'
import type { Ambiguity, RequestFacts } from '../metering/request-facts.ts'
import { type RequestReader, readerFor } from '../metering/request-reader.ts'
import { ambiguityFor } from './ambiguity.ts'
import type { Endpoint } from './endpoint.ts'
import { findEndpoint } from './find-endpoint.ts'
import { SURFACES } from './surfaces.ts'
import { type EntryWatch, itemsOf, watchRecords } from './watch-records.ts'

/** The most that a request inside a batch can cost. */
export type BoundEntry = (endpoint: Endpoint, facts: RequestFacts, bodyBytes: number) => Bound

/** What requests for an endpoint are read by. Endpoints of one kind are read alike. */
function kindOf(endpoint: Endpoint): string {
  if (endpoint.billing === 'metered' && endpoint.usage === 'completions') return 'prompts'
  return itemsOf(endpoint) ?? ''
}

/**
 * Bounds the requests of a batch, one after the other, as their bytes pass. Each is read like a request of its own, with
 * the same words and the same doubts. Nothing is kept but the sum.
 */
export class BatchEntries implements EntryWatch {
  readonly #boundEntry: BoundEntry
  /** Those that the entries may be for. A batch has requests for one of them; the first entry tells which. */
  #endpoints: readonly Endpoint[]
  /** Of the request at hand, one for each kind that it may be of. */
  #readers: Map<string, RequestReader> | null = null
  #bytes = 0
  #bound: Bound = NO_COST
  #ambiguity: Ambiguity | null = null

  constructor(surface: Surface, boundEntry: BoundEntry) {
    this.#boundEntry = boundEntry
    const templates = SURFACES[surface].batchEndpoints
    this.#endpoints = templates.flatMap((template) => findEndpoint(surface, 'POST', template) ?? [])
  }

  get bound(): Bound {
    return this.#bound
  }

  get ambiguity(): Ambiguity | null {
    return this.#ambiguity
  }

  write(bytes: Borrowed): void {
    this.#readers ??= this.#createReaders()
    this.#bytes += bytes.length
    for (const reader of this.#readers.values()) reader.write(bytes)
  }

  endEntry(template: string): boolean {
    const readers = this.#readers
    const bodyBytes = this.#bytes
    this.#readers = null
    this.#bytes = 0
    const endpoint = this.#endpoints.find((each) => each.template === template)
    const reader = endpoint === undefined ? undefined : readers?.get(kindOf(endpoint))
    if (endpoint === undefined || reader === undefined) return false
    this.#endpoints = [endpoint]
    // Nothing that is read here is encoded, so the answer is there at once.
    const facts = reader.end() as RequestFacts
    this.#ambiguity ??= ambiguityFor(endpoint, facts)
    this.#bound = addBounds(this.#bound, this.#boundEntry(endpoint, facts, bodyBytes))
    return true
  }

  #createReaders(): Map<string, RequestReader> {
    const readers = new Map<string, RequestReader>()
    for (const endpoint of this.#endpoints) {
      const kind = kindOf(endpoint)
      if (!readers.has(kind))
        readers.set(kind, readerFor('application/json', undefined, watchRecords(endpoint)))
    }
    return readers
  }
}
