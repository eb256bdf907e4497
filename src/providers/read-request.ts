import { codingOf, type RawHeaders, valuesOf } from '../http/raw-headers.ts'
import { limits } from '../kernel/limits.ts'
import { type Coding, CopyDecoder } from '../metering/decode-copy.ts'
import {
  eachShape,
  isObject,
  type JsonObject,
  objectShape,
  SCALAR,
  type Shape,
  type SkimmedElement,
  UNMARKED_VALUE,
  UNREAD,
  VALUE,
} from '../metering/json-shape.ts'
import { JsonSkim } from '../metering/json-skim.ts'
import { boundaryOf, FOREIGN_CHARSET, MultipartScanner } from '../metering/multipart-scanner.ts'
import { ReadingPace } from '../metering/reading-pace.ts'
import { ambiguousInnerName, findAmbiguity, unreadableFacts } from './ambiguity.ts'
import type { Endpoint } from './endpoint.ts'
import { ModelNames, otherModels, readToolModels } from './named-models.ts'
import {
  CONTENT_MARKS,
  type ItemFacts,
  isGiven,
  NO_ITEMS,
  NOT_READ,
  REQUEST_MEMBERS,
  type RequestFacts,
} from './request-facts.ts'
import { toolList } from './request-tools.ts'
import { SURFACES } from './surfaces.ts'

/** The content members of a conversation item, besides its tools. */
const ITEM_CONTENT = ['content', 'arguments', 'output', 'input', 'action', 'operation'] as const

const ITEM: Shape = objectShape({
  tools: UNMARKED_VALUE,
  type: SCALAR,
  id: SCALAR,
  encrypted_content: SCALAR,
  ...Object.fromEntries(ITEM_CONTENT.map((name) => [name, SCALAR])),
})

const MEMBERS: Readonly<Record<string, Shape>> = {
  ...Object.fromEntries(REQUEST_MEMBERS.map((name) => [name, VALUE])),
  tools: UNMARKED_VALUE,
}

/** Socket messages have a `type`, and in `stream_id` the lane of the answer. */
const SOCKET_MEMBERS = { type: VALUE, stream_id: VALUE }

export const BATCHED_BODY: Shape = objectShape({ ...MEMBERS, input: eachShape(ITEM) })
const ENTRY: Shape = objectShape({ params: objectShape(MEMBERS) })

/** Creating a shape takes as long as reading 10 kB, so each is cached. */
const shapes = new WeakMap<Endpoint, Shape>()

function shapeOf(endpoint: Endpoint): Shape {
  const shape = shapes.get(endpoint) ?? objectShape({ ...MEMBERS, ...ownMembers(endpoint) })
  shapes.set(endpoint, shape)
  return shape
}

function ownMembers(endpoint: Endpoint): Readonly<Record<string, Shape>> {
  if (endpoint.model === 'batch_entries') return { requests: eachShape(ENTRY) }
  if (endpoint.model === 'batch_file') return { endpoint: VALUE }
  if (endpoint.billing === 'metered' && endpoint.usage === 'speech')
    return { input: VALUE, response_format: VALUE }
  const items = SURFACES[endpoint.surface].itemMembers[endpoint.template]
  const messages = endpoint.method === 'WS' || endpoint.template === '/v1/responses' ? SOCKET_MEMBERS : {}
  return items === undefined ? messages : { ...messages, [items]: eachShape(ITEM) }
}

/** The fields of a form. SDKs write each member of an object as a separate field. */
const FIELDS = [
  ...REQUEST_MEMBERS,
  ...['type', 'threshold', 'prefix_padding_ms', 'silence_duration_ms'].map(
    (name) => `chunking_strategy[${name}]`,
  ),
]

export interface ItemReader {
  take(element: SkimmedElement): void
  facts(): ItemFacts
}

export interface BodyHead {
  readonly contentType: string | undefined
  readonly contentEncoding: string | undefined
  /** Whether header lines contradict each other: the gateway would use the first, and upstream may use the last. */
  readonly hasContradictions?: boolean
}

export function bodyHeadOf(headers: RawHeaders): BodyHead {
  const [types, encodings] = [valuesOf(headers, 'content-type'), valuesOf(headers, 'content-encoding')]
  const [[contentType], [contentEncoding]] = [types, encodings]
  const hasContradictions =
    types.some((type) => type !== contentType) || encodings.some((encoding) => encoding !== contentEncoding)
  return { contentType, contentEncoding, hasContradictions }
}

export const PLAIN_JSON: BodyHead = { contentType: 'application/json', contentEncoding: undefined }

const TOKENS_ALWAYS_ALLOWED = 10_000

/** Field separators of a form. Some parsers still accept the semicolon. */
const [AMPERSAND, SEMICOLON] = [0x26, 0x3b]

/** Reads a body as it passes, and cannot change or stop it. `watch` reads conversation items or batch requests. */
export class RequestReader {
  readonly #watch: ItemReader
  /** Null if the body is unreadable. */
  readonly #scanner: JsonSkim | MultipartScanner | null
  readonly #decoder: CopyDecoder | null
  readonly #isUrlencoded: boolean
  readonly #pace: ReadingPace
  #sentBytes = 0
  #unreadable: string | null
  #ambiguity: string | null

  constructor(
    endpoint: Endpoint,
    head: BodyHead,
    watch: ItemReader = new ConversationItems(),
    pace = new ReadingPace(),
  ) {
    const { contentType = '', contentEncoding } = head
    const boundary = /multipart/i.test(contentType) ? boundaryOf(contentType) : null
    const coding = codingOf(contentEncoding)
    this.#watch = watch
    this.#pace = pace
    this.#isUrlencoded = /urlencoded/i.test(contentType)
    this.#unreadable = whyUnreadable(head)
    this.#ambiguity = whyAmbiguous(head)
    if (this.#unreadable !== null) this.#scanner = null
    else if (boundary !== null) this.#scanner = new MultipartScanner(boundary, FIELDS)
    else
      this.#scanner = new JsonSkim(shapeOf(endpoint), {
        onElement: (element) => watch.take(element),
        marks: CONTENT_MARKS,
      })
    this.#decoder = coding === 'identity' || coding === 'unknown' ? null : this.#decode(coding)
  }

  /** Reads a chunk. If it returns a promise, the decoded copy lags behind: wait for it before the next chunk. */
  write(chunk: Buffer): Promise<void> | null {
    this.#sentBytes += chunk.length
    if (this.#decoder !== null) return this.#decoder.write(chunk)
    this.#scan(chunk)
    return null
  }

  end(): RequestFacts | Promise<RequestFacts> {
    if (this.#decoder === null) return this.#pace.read(() => this.#facts())
    return this.#decoder.end().then((state) => {
      if (state !== 'whole') this.#unreadable = state
      return this.#pace.read(() => this.#facts())
    })
  }

  #decode(coding: Coding): CopyDecoder {
    const { decodedBodyBytesMax, decodedRatioMax: ratioMax } = limits
    const scan = (bytes: Buffer) => {
      this.#scan(bytes)
      return this.#hasTooManyTokens ? false : this.#pace.pause()
    }
    return new CopyDecoder(coding, decodedBodyBytesMax, scan, { ratioMax })
  }

  /** Compressed tokens cost the client next to nothing, and the gateway up to 0.5 µs each. */
  get #hasTooManyTokens(): boolean {
    if (!(this.#scanner instanceof JsonSkim)) return false
    return this.#scanner.tokens > TOKENS_ALWAYS_ALLOWED + this.#sentBytes * limits.decodedTokensPerByteMax
  }

  /** curl sends `urlencoded` with every -d. JSON without `&` or `;` is a single form field, so it is safe to read. */
  #scan(bytes: Buffer): void {
    if (this.#isUrlencoded && (bytes.includes(AMPERSAND) || bytes.includes(SEMICOLON)))
      this.#ambiguity = 'may_be_form'
    this.#pace.read(() => this.#scanner?.write(bytes))
  }

  #facts(): RequestFacts {
    const scanned = this.#scanner?.end()
    if (this.#unreadable !== null || scanned === undefined)
      return unreadableFacts(this.#unreadable ?? 'empty')
    const ambiguity = findAmbiguity(scanned, this.#ambiguity)
    switch (scanned.kind) {
      case 'unreadable':
        return { ...NOT_READ, kind: 'unreadable', ambiguity }
      case 'form': {
        const form = { ...NOT_READ, kind: 'form', bytes: scanned.lengthBytes, ambiguity } as const
        return requestOf(bodyOfForm(scanned.fields), form)
      }
      case 'object': {
        const items = this.#watch.facts()
        const { value, spans, objectEnd, marks, bytes } = scanned
        const doubt = ambiguity ?? items.ambiguity
        return requestOf(value, { kind: 'json', spans, objectEnd, marks, bytes, items, ambiguity: doubt })
      }
    }
  }
}

function whyUnreadable({
  contentType = '',
  contentEncoding,
  hasContradictions = false,
}: BodyHead): string | null {
  if (hasContradictions) return 'two_content_types'
  if (codingOf(contentEncoding) === 'unknown') return 'unknown_content_encoding'
  return /multipart/i.test(contentType) && boundaryOf(contentType) === null ? 'ambiguous_content_type' : null
}

/** Why upstream may read the body differently, even if the gateway can read it; null if there is no doubt. */
function whyAmbiguous({ contentType = '', contentEncoding }: BodyHead): string | null {
  if (codingOf(contentEncoding) === 'deflate') return 'deflate'
  return FOREIGN_CHARSET.test(contentType) ? 'foreign_charset' : null
}

type FoundFacts = Omit<RequestFacts, 'body' | 'tools' | 'others'>

function requestOf(body: JsonObject, found: FoundFacts): RequestFacts {
  const tools = toolList(body['tools'])
  const ambiguity = found.ambiguity ?? ambiguousInnerName({ body, tools })
  return { ...found, body, tools, others: otherModels(body, tools), ambiguity }
}

/** Fields are text. A field that spells a number or boolean is converted. */
function bodyOfForm(fields: ReadonlyMap<string, string | null>): JsonObject {
  return Object.fromEntries(
    Array.from(fields, ([name, text]) => [name, text === null ? UNREAD : fieldValue(name, text)]),
  )
}

function fieldValue(name: string, text: string): unknown {
  if (name === 'n' || name === 'best_of') return /^\d+$/.test(text) ? Number(text) : text
  if (name !== 'stream' && name !== 'background') return text
  // Python clients write `True` and `False`.
  const word = text.toLowerCase()
  if (word === 'true' || word === 'false') return word === 'true'
  return word === 'null' || word === '' ? null : text
}

/** Types of items whose content is stored upstream. */
const STORED_UPSTREAM =
  /^(?:item_reference|image_generation_call|(?:file_search|web_search|code_interpreter)_call)$/
/** Types of items whose content only upstream can read. A request can include it only as `encrypted_content`. */
const HIDDEN = /^(?:reasoning|compaction)$/

export class ConversationItems implements ItemReader {
  readonly #names = new ModelNames()
  #bringsTools = false
  #refersElsewhere = false
  #compacts = false
  #isEmpty = true

  take({ value: item }: SkimmedElement): void {
    if (!isObject(item)) return
    this.#isEmpty = false
    readToolModels(toolList(item['tools']), this.#names)
    this.#bringsTools ||= isGiven(item['tools'])
    this.#refersElsewhere ||= isReference(item)
    this.#compacts ||= item['type'] === 'compaction_trigger'
  }

  facts(): ItemFacts {
    if (this.#isEmpty) return NO_ITEMS
    return {
      models: this.#names.found,
      bringsTools: this.#bringsTools,
      refersElsewhere: this.#refersElsewhere,
      compacts: this.#compacts,
      bound: null,
      ambiguity: null,
    }
  }
}

/** Whether an item refers to stored content: it is only an id, or was created by upstream. */
function isReference(item: JsonObject): boolean {
  const type = item['type'] ?? ''
  if (typeof type !== 'string') return true
  if (STORED_UPSTREAM.test(type)) return true
  if (!isGiven(item['id'])) return false
  if (isGiven(item['encrypted_content'])) return item['encrypted_content'] === ''
  return HIDDEN.test(type) || !ITEM_CONTENT.some((name) => isGiven(item[name]))
}

export function factsOfEntry(
  body: JsonObject,
  { bytes, marks }: Pick<SkimmedElement, 'bytes' | 'marks'>,
  items: ItemFacts = NO_ITEMS,
): RequestFacts {
  return requestOf(body, { ...NOT_READ, kind: 'json', bytes, marks, items })
}
