import { codingOf } from '../http/raw-headers.ts'
import { addBatchLine, type Bound, NO_COST } from '../kernel/money.ts'
import type { Surface } from '../kernel/vocabulary.ts'
import {
  AMBIGUOUS,
  isObject,
  NameTable,
  objectShape,
  type Skimmed,
  type SkimmedElement,
  UNMARKED_VALUE,
  VALUE,
} from '../metering/json-shape.ts'
import { JsonSkim, skimWhole } from '../metering/json-skim.ts'
import {
  boundaryOf,
  looseName,
  MultipartScanner,
  type PartHead,
  type PartSink,
} from '../metering/multipart-scanner.ts'
import { ambiguityAtEndpoint, findAmbiguity } from './ambiguity.ts'
import { JsonLines } from './batch-results.ts'
import type { Endpoint } from './endpoint.ts'
import { findEndpoint } from './find-endpoint.ts'
import { isFileId, ModelNames, readModels } from './named-models.ts'
import {
  BATCHED_BODY,
  type BodyHead,
  ConversationItems,
  factsOfEntry,
  type ItemReader,
} from './read-request.ts'
import {
  type Ambiguity,
  CONTENT_MARKS,
  type ItemFacts,
  NO_ITEMS,
  type RequestFacts,
} from './request-facts.ts'
import { SURFACES } from './surfaces.ts'

export const ENTRIES_MAX = 100_000

export type BoundEntry = (endpoint: Endpoint, facts: RequestFacts) => Bound

/** Adds up the requests of a batch. Each request is read like a single call; only the sum is stored. */
export class EntrySum {
  readonly #surface: Surface
  readonly #boundEntry: BoundEntry
  readonly names = new ModelNames()
  #template: string | null = null
  bound: Bound = NO_COST
  ambiguity: Ambiguity | null = null

  constructor(surface: Surface, boundEntry: BoundEntry) {
    this.#surface = surface
    this.#boundEntry = boundEntry
  }

  /** False if batches do not support the endpoint, or if it differs from earlier requests. */
  add(template: string, facts: RequestFacts): boolean {
    readModels(facts, this.names)
    const { batchEndpoints } = SURFACES[this.#surface]
    const isKnown = batchEndpoints.includes(template) && (this.#template ?? template) === template
    const endpoint = isKnown ? findEndpoint(this.#surface, 'POST', template) : null
    if (endpoint === null) return false
    this.#template = template
    this.ambiguity ??= ambiguityAtEndpoint(endpoint, facts)
    this.bound = addBatchLine(this.bound, this.#boundEntry(endpoint, facts))
    return true
  }
}

const UNREAD_ENTRY: Ambiguity = {
  detail: '"requests" must be a list of objects, each with its request as an object under "params".',
  refuse: 'limited',
}
const MORE = `The batch has more than ${ENTRIES_MAX} requests. Split it.`
const TOO_MANY: Ambiguity = { detail: MORE, refuse: 'limited' }

export class BatchEntries implements ItemReader {
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
      this.#sum.names.addName(null, '"requests"')
    }
  }

  facts(): ItemFacts {
    const { names, bound, ambiguity } = this.#sum
    if (this.#entries === 0) names.markUnknown('The batch names no models.')
    const models = names.found
    if (this.#entries > ENTRIES_MAX)
      return { ...NO_ITEMS, models: { ...models, unknown: MORE }, ambiguity: TOO_MANY }
    return { ...NO_ITEMS, models, bound, ambiguity: ambiguity ?? (this.#isRead ? null : UNREAD_ENTRY) }
  }
}

const FILE_NAME = new NameTable([['file', 'file']])
const FILE = objectShape({ id: VALUE, object: VALUE })
const LINE = objectShape({ url: UNMARKED_VALUE, body: BATCHED_BODY })

/** Reads an uploaded batch file. `end` is null if parsers could differ: limited keys are then refused. Never throws. */
export class BatchFileScanner {
  readonly #form: MultipartScanner | null
  readonly #lines: JsonLines<JsonSkim>
  readonly #entries: EntrySum
  #items = new ConversationItems()
  #isBounded = true
  #files = 0
  #failed = false

  constructor({ contentType = '', contentEncoding, hasContradictions }: BodyHead, entries: EntrySum) {
    const isPlain = codingOf(contentEncoding) === 'identity' && hasContradictions !== true
    const boundary = isPlain ? boundaryOf(contentType) : null
    this.#entries = entries
    this.#lines = new JsonLines(
      () => new JsonSkim(LINE, { onElement: (item) => this.#items.take(item), marks: CONTENT_MARKS }),
      (line) => this.#endLine(line.end()),
    )
    const sink: PartSink = {
      open: (head) => this.#openPart(head),
      write: (bytes) => {
        this.#lines.write(bytes)
        if (this.#lines.failed) this.#failed = true
      },
    }
    this.#form = boundary === null ? null : new MultipartScanner(boundary, ['purpose'], sink)
  }

  write(chunk: Buffer): void {
    if (this.#failed) return
    try {
      this.#form?.write(chunk)
    } catch {
      this.#failed = true
    }
  }

  /** Returns the result; call it when the whole body has passed. The bound is null if a request is ambiguous. */
  end(): { readonly models: readonly string[]; readonly bound: Bound | null } | null {
    if (this.#failed || this.#form === null) return null
    const form = this.#form.end()
    // The end of the form may complete its last parts.
    if (this.#failed || form.kind === 'unreadable' || form.duplicates.length > 0 || this.#files !== 1)
      return null
    if (form.fields.get('purpose') !== 'batch' || !this.#lines.end()) return null
    const { bound, ambiguity } = this.#entries
    if (ambiguity?.refuse === 'always') return null
    return {
      models: this.#entries.names.found.names,
      bound: this.#isBounded && ambiguity === null ? bound : null,
    }
  }

  #openPart(head: PartHead): boolean {
    const name = looseName(head.name)
    const isFile = head.name === 'file'
    if (isFile) this.#files++
    else if (head.isFile || name === 'file' || FILE_NAME.findText(name) === AMBIGUOUS) this.#failed = true
    if (isFile && !(head.isFile && head.verbatim)) this.#failed = true
    return isFile && !this.#failed
  }

  #endLine(line: Skimmed): boolean {
    const items = this.#items.facts()
    this.#items = new ConversationItems()
    if (line.kind !== 'object' || findAmbiguity(line, null) !== null) return false
    const { url = '', body } = line.value
    if (!isObject(body)) return false
    const isAdded = typeof url === 'string' && this.#entries.add(url, factsOfEntry(body, line, items))
    if (!isAdded) this.#isBounded = false
    return this.#entries.names.unknown === null
  }
}

export const UPLOAD_REPLY_BYTES_MAX = 64 * 1024

/** The file id in the complete, decoded reply to an upload; null if the reply is not a file object. */
export function uploadedFileId(reply: Buffer): string | null {
  if (reply.length > UPLOAD_REPLY_BYTES_MAX) return null
  const skimmed = skimWhole(reply, FILE)
  if (skimmed.kind === 'unreadable' || skimmed.duplicates.length > 0) return null
  const { id, object } = skimmed.value
  return object === 'file' && isFileId(id) ? id : null
}
