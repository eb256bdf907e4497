import { addLine, type Bound, NO_COST } from '../kernel/money.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import type { SkimmedElement } from '../metering/json-shape.ts'
import { type Ambiguity, type ItemFacts, NO_ITEMS, type RequestFacts } from '../metering/request-facts.ts'
import { ambiguityFor } from './ambiguity.ts'
import type { Endpoint } from './endpoint.ts'
import { findEndpoint } from './find-endpoint.ts'
import { ModelNames, readModels } from './named-models.ts'
import { factsOfEntry, type ItemWatch } from './read-request.ts'
import { isObject } from './request-members.ts'
import { SURFACES } from './surfaces.ts'

/** The most requests that a batch may have. */
export const ENTRIES_MAX = 100_000

/** The most that a request inside a batch can cost. */
export type BoundEntry = (endpoint: Endpoint, facts: RequestFacts) => Bound

/** Adds up the requests of a batch. Each is read like a request of its own; nothing is kept but the sum. */
export class EntrySum {
  readonly #surface: Surface
  readonly #boundEntry: BoundEntry
  readonly names = new ModelNames()
  /** A batch has requests for one endpoint; the first entry names it. */
  #template: string | null = null
  bound: Bound = NO_COST
  /** The ambiguity of the first request that has one. */
  ambiguity: Ambiguity | null = null

  constructor(surface: Surface, boundEntry: BoundEntry) {
    this.#surface = surface
    this.#boundEntry = boundEntry
  }

  /** False if the request is for an endpoint that batches do not have, or for another one than those before. */
  add(template: string, facts: RequestFacts): boolean {
    readModels(facts, this.names)
    if (facts.items.unknown !== null) this.names.leaveOpen(facts.items.unknown)
    for (const model of facts.items.models) this.names.name(model, '"tools"')
    const { batchEndpoints } = SURFACES[this.#surface]
    const isKnown = batchEndpoints.includes(template) && (this.#template ?? template) === template
    const endpoint = isKnown ? findEndpoint(this.#surface, 'POST', template) : null
    if (endpoint === null) return false
    this.#template = template
    this.ambiguity ??= ambiguityFor(endpoint, facts)
    this.bound = addLine(this.bound, this.#boundEntry(endpoint, facts))
    return true
  }
}

const UNREAD_ENTRY: Ambiguity = {
  detail: '"requests" must be a list of objects, each with its request as an object under "params".',
  refuse: 'limited',
}
const MORE = `The batch has more than ${ENTRIES_MAX} requests.`
const TOO_MANY = { unknown: MORE, ambiguity: { detail: MORE, refuse: 'limited' }, bound: null } as const

/** The entries of a Messages batch, as they pass. */
export class BatchEntries implements ItemWatch {
  readonly #sum: EntrySum
  readonly #template: string
  #entries = 0
  #isRead = true

  constructor(surface: Surface, boundEntry: BoundEntry) {
    this.#sum = new EntrySum(surface, boundEntry)
    this.#template = SURFACES[surface].batchEndpoints[0] ?? ''
  }

  take(element: SkimmedElement): void {
    this.#entries++
    if (this.#entries > ENTRIES_MAX) return
    const body = isObject(element.value) ? element.value['params'] : undefined
    if (isObject(body)) this.#sum.add(this.#template, factsOfEntry(body, element))
    else {
      this.#isRead = false
      this.#sum.names.cannotRead('"requests"')
    }
  }

  found(): ItemFacts {
    const { names, bound, ambiguity } = this.#sum
    if (this.#entries === 0) names.leaveOpen('The batch names no models.')
    const found = { ...NO_ITEMS, models: names.names, unknown: names.unknown, bound }
    if (this.#entries > ENTRIES_MAX) return { ...found, ...TOO_MANY }
    return { ...found, ambiguity: ambiguity ?? (this.#isRead ? null : UNREAD_ENTRY) }
  }
}
