import type { Borrowed } from '../kernel/memory.ts'
import { addBounds, type Bound, NO_COST } from '../kernel/money.ts'
import type { Surface } from '../kernel/surface.ts'
import type { PickedObject } from '../metering/json-place.ts'
import type { JsonScan } from '../metering/json-scan.ts'
import type { Ambiguity, RecordsFound, RequestFacts } from '../metering/request-facts.ts'
import { type RecordWatch, type RequestReader, readerFor } from '../metering/request-reader.ts'
import { ambiguityFor, givenTwice, unreadable } from './ambiguity.ts'
import type { Endpoint } from './endpoint.ts'
import { findEndpoint } from './find-endpoint.ts'
import { ModelNames, readItem, readModels } from './named-models.ts'
import { BATCH, ITEM_CONTENT, isPickedObject, PROMPTS, withItems } from './request-members.ts'
import { SURFACES } from './surfaces.ts'

/** The most requests that a batch may have. */
const ENTRIES_MAX = 100_000
const UNREAD_ENTRY = {
  detail: '"requests" must be a list of objects, each with its request as an object under "params".',
  refuse: 'limited',
} as const
const MORE = `The batch has more than ${ENTRIES_MAX} requests.`
const TOO_MANY = { unknown: MORE, ambiguity: { detail: MORE, refuse: 'limited' }, bound: null } as const

/**
 * The watch over the records inside the body of a request, as the body passes, to know its models and what it can cost;
 * null where there is nothing to look at.
 */
export function watchRecords(
  endpoint: Endpoint | null,
  createEntries: ((surface: Surface) => EntryWatch) | null = null,
): RecordWatch | null {
  if (endpoint === null || endpoint.reads === 'nothing') return null
  if (endpoint.model === 'batch_entries')
    return watchBatch(endpoint.surface, createEntries?.(endpoint.surface) ?? null)
  if (endpoint.billing === 'metered' && endpoint.usage === 'completions') return watchPrompts()
  const items = itemsOf(endpoint)
  return items === null ? null : watchItems(items)
}

/** The member whose items are looked at; null where there is none. */
function itemsOf({ surface, template }: Endpoint): string | null {
  return SURFACES[surface].itemMembers[template] ?? null
}

/** Bounds the requests of a batch as they pass. */
export interface EntryWatch {
  /** The bound of all requests that have ended. */
  readonly bound: Bound
  /** The ambiguity of the first request that has one. */
  readonly ambiguity: Ambiguity | null
  /** The next bytes of the request at hand. */
  write(bytes: Borrowed): void
  /** The request at hand is whole, and for this endpoint. False if the requests before were for another endpoint. */
  endEntry(template: string): boolean
}

function watchBatch(surface: Surface, entries: EntryWatch | null): RecordWatch {
  const names = new ModelNames()
  const [template = ''] = SURFACES[surface].batchEndpoints
  let count = 0
  let isRead = true
  return {
    place: BATCH,
    get isFull() {
      return count > ENTRIES_MAX
    },
    seen: (bytes) => {
      if (count < ENTRIES_MAX) entries?.write(bytes)
    },
    take(entry) {
      count++
      if (count > ENTRIES_MAX) return
      const body = isPickedObject(entry) ? entry['params'] : undefined
      if (isPickedObject(body)) readModels(body, names)
      else names.cannotRead('"requests"')
      if (entries?.endEntry(template) === false) isRead = false
    },
    found(scan) {
      if (count === 0) names.leaveOpen('The batch names no models.')
      const found = summarise(scan, names, { bound: entries?.bound ?? null })
      if (count > ENTRIES_MAX) return { ...found, ...TOO_MANY }
      return { ...found, ambiguity: found.ambiguity ?? entries?.ambiguity ?? (isRead ? null : UNREAD_ENTRY) }
    },
  }
}

function watchItems(name: string): RecordWatch {
  const names = new ModelNames()
  let bringsTools = false
  let refersElsewhere = false
  let compacts = false
  return {
    place: withItems(name),
    take(item) {
      readItem(item, names)
      if (!isPickedObject(item)) return
      bringsTools ||= isGiven(item, 'tools')
      refersElsewhere ||= isReference(item)
      compacts ||= item['type'] === 'compaction_trigger'
    },
    found: (scan) => summarise(scan, names, { bringsTools, refersElsewhere, compacts }),
  }
}

function watchPrompts(): RecordWatch {
  let prompts = 0
  return {
    place: PROMPTS,
    take() {
      prompts++
    },
    found: (scan) => summarise(scan, new ModelNames(), { prompts: Math.max(1, prompts) }),
  }
}

function isGiven(item: PickedObject, name: string): boolean {
  return (item[name] ?? null) !== null
}

/** Items whose content is kept upstream, however much of them is sent along. */
const KEPT_UPSTREAM =
  /^(?:item_reference|image_generation_call|(?:file_search|web_search|code_interpreter)_call)$/
/** Items whose content only upstream can read: such an item carries content only where it has `encrypted_content`. */
const HIDDEN = /^(?:reasoning|compaction)$/

/** Whether an item stands for more than it says: the item is an id and nothing else, or of upstream's own making. */
function isReference(item: PickedObject): boolean {
  const type = item['type'] ?? ''
  if (typeof type !== 'string') return true
  if (KEPT_UPSTREAM.test(type)) return true
  if (!isGiven(item, 'id')) return false
  if (isGiven(item, 'encrypted_content')) return item['encrypted_content'] === ''
  return HIDDEN.test(type) || !ITEM_CONTENT.some((name) => isGiven(item, name))
}

function summarise(scan: JsonScan, names: ModelNames, more: Partial<RecordsFound> = {}): RecordsFound {
  const ambiguity = ambiguityOfScan(scan)
  return {
    models: names.names,
    unknown: ambiguity?.detail ?? names.unknown,
    ambiguity,
    bringsTools: false,
    refersElsewhere: false,
    compacts: false,
    prompts: 1,
    bound: null,
    ...more,
  }
}

function ambiguityOfScan(scan: JsonScan): Ambiguity | null {
  if (scan.kind === 'unreadable') return unreadable(scan.reason)
  const [twice] = scan.picked.duplicates
  return twice === undefined ? null : givenTwice(twice)
}

/** The most that a request inside a batch can cost. */
export type BoundEntry = (endpoint: Endpoint, facts: RequestFacts, bodyBytes: number) => Bound

/** The kind of reader for requests of an endpoint. Endpoints of one kind are read alike. */
function kindOf(endpoint: Endpoint): string {
  if (endpoint.billing === 'metered' && endpoint.usage === 'completions') return 'prompts'
  return itemsOf(endpoint) ?? ''
}

/**
 * Bounds the requests of a batch, one after the other, as their bytes pass. Each is read like a request of its own, with
 * the same members and the same ambiguities. Nothing is kept but the sum.
 */
export class BatchEntries implements EntryWatch {
  readonly #boundEntry: BoundEntry
  /** The endpoints that the entries may be for. A batch has requests for one endpoint; the first entry tells which. */
  #endpoints: readonly Endpoint[]
  /** The readers of the request at hand, one for each kind that it may be of. */
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
    // Entries of a batch have no content coding of their own, so the facts are there at once.
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
