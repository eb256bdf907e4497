import {
  eachShape,
  GLANCE,
  isObject,
  type JsonObject,
  objectShape,
  type Shape,
  type SkimmedElement,
  UNMARKED_VALUE,
  UNREAD,
  VALUE,
} from '../metering/json-shape.ts'
import {
  type BytesReader,
  type ItemFacts,
  NO_ITEMS,
  NOT_READ,
  type ReadBytes,
  type Reads,
  type RequestFacts,
  readerFor,
  unreadable,
} from '../metering/request-reader.ts'
import { ambiguityOfBytes } from './ambiguity.ts'
import type { Endpoint } from './endpoint.ts'
import { ModelNames, otherModels, readToolModels } from './named-models.ts'
import { isGiven, REQUEST_MEMBERS, toolList } from './request-members.ts'
import { SURFACES } from './surfaces.ts'

/** The content members of a conversation item, besides its tools. */
const ITEM_CONTENT = ['content', 'arguments', 'output', 'input', 'action', 'operation'] as const

const ITEM: Shape = objectShape({
  tools: UNMARKED_VALUE,
  type: GLANCE,
  id: GLANCE,
  encrypted_content: GLANCE,
  ...Object.fromEntries(ITEM_CONTENT.map((name) => [name, GLANCE])),
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

export interface RequestReader {
  readonly write: (chunk: Buffer) => Promise<void> | null
  end(): RequestFacts | Promise<RequestFacts>
}

export interface ItemWatch {
  take(element: SkimmedElement): void
  found(): ItemFacts
}

export interface BodyHead {
  readonly contentType: string | undefined
  readonly contentEncoding: string | undefined
  /** Header lines disagree: we would use the first, and upstream may use the last. */
  readonly isDoubtful?: boolean
}

export const PLAIN_JSON: BodyHead = { contentType: 'application/json', contentEncoding: undefined }

/** `watch` receives the items of the body: conversation items, or a batch's requests. */
export function createRequestReader(
  endpoint: Endpoint,
  { contentType, contentEncoding, isDoubtful }: BodyHead,
  watch: ItemWatch = new ConversationItems(),
): RequestReader {
  const reads: Reads = {
    shape: shapeOf(endpoint),
    onElement: (element) => watch.take(element),
    fields: FIELDS,
  }
  const reader: BytesReader =
    isDoubtful === true ? unreadable('two_content_types') : readerFor(contentType, contentEncoding, reads)
  return {
    write: reader.write,
    end() {
      const read = reader.end()
      return read instanceof Promise ? read.then((bytes) => factsOf(bytes, watch)) : factsOf(read, watch)
    },
  }
}

function factsOf(read: ReadBytes, watch: ItemWatch): RequestFacts {
  const ambiguity = ambiguityOfBytes(read)
  switch (read.kind) {
    case 'unreadable':
      return { ...NOT_READ, kind: 'unreadable', ambiguity }
    case 'form':
      return requestOf(bodyOfForm(read.form.fields), {
        kind: 'form',
        bytes: read.form.lengthBytes,
        ambiguity,
      })
    case 'json': {
      const items = watch.found()
      const { value, spans, objectEnd, marks, bytes } = read.skimmed
      const found = { spans, objectEnd, marks, bytes, items, ambiguity: ambiguity ?? items.ambiguity }
      return requestOf(value, { kind: 'json', ...found })
    }
  }
}

function requestOf(body: JsonObject, found: Partial<RequestFacts>): RequestFacts {
  const tools = toolList(body['tools'])
  return { ...NOT_READ, ...found, body, tools, others: otherModels(body, tools) }
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

/** Items whose content is stored upstream, whatever else they contain. */
const KEPT_UPSTREAM =
  /^(?:item_reference|image_generation_call|(?:file_search|web_search|code_interpreter)_call)$/
/** Items whose content only upstream can read; it is included only as `encrypted_content`. */
const HIDDEN = /^(?:reasoning|compaction)$/

export class ConversationItems implements ItemWatch {
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

  found(): ItemFacts {
    if (this.#isEmpty) return NO_ITEMS
    return {
      models: this.#names.names,
      unknown: this.#names.unknown,
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
  if (KEPT_UPSTREAM.test(type)) return true
  if (!isGiven(item['id'])) return false
  if (isGiven(item['encrypted_content'])) return item['encrypted_content'] === ''
  return HIDDEN.test(type) || !ITEM_CONTENT.some((name) => isGiven(item[name]))
}

export function factsOfEntry(
  body: JsonObject,
  { bytes, marks }: Pick<SkimmedElement, 'bytes' | 'marks'>,
  items: ItemFacts = NO_ITEMS,
): RequestFacts {
  return requestOf(body, { kind: 'json', bytes, marks, items })
}
