import type { Quantities, UsagePart } from '../../kernel/usage.ts'
import {
  isObject,
  type JsonObject,
  listShape,
  objectShape,
  type ReplyDocument,
  SIZE,
  scalars,
  VALUE,
} from '../../metering/json-shape.ts'
import type {
  Delivered,
  OutputKind,
  Reading,
  ReplyLayout,
  ReplyReader,
  Shown,
  Stage,
} from '../../metering/meter.ts'
import { withToolCalls } from '../../pricing/call-fees.ts'
import { asIndex, asList, asName, asObject, bytesWritten, type Counts, quantitiesOf } from '../reading.ts'
import { imageToolParts, svgParts } from './images.ts'
import { errorNameOf, partOf, ReplyFacts } from './tokens.ts'

const ITEM = {
  ...scalars('id type status size quality container_id'),
  environment: objectShape(scalars('container_id')),
  action: objectShape(scalars('type')),
  svg_usage: VALUE,
}
const ITEM_TEXTS = {
  content: listShape(objectShape({ text: SIZE, refusal: SIZE })),
  summary: listShape(objectShape({ text: SIZE })),
  arguments: SIZE,
  input: SIZE,
  code: SIZE,
}
const RESPONSE = {
  ...scalars('id model service_tier status'),
  tools: listShape(objectShape(scalars('type model size quality'))),
  usage: VALUE,
  tool_usage: VALUE,
  error: VALUE,
}

export const RESPONSE_EVENT = objectShape({
  ...scalars('type code output_index stream_id status'),
  response: objectShape({ ...RESPONSE, output: listShape(objectShape(ITEM)) }),
  item: objectShape(ITEM),
  delta: SIZE,
  error: VALUE,
})

const LAYOUT: ReplyLayout = {
  body: objectShape({ ...RESPONSE, output: listShape(objectShape({ ...ITEM, ...ITEM_TEXTS })) }),
  event: RESPONSE_EVENT,
}

/** Deltas of text that the model wrote. Other deltas are tool results, or not text. */
const DELTAS: ReadonlyMap<string, OutputKind> = new Map([
  ['response.output_text.delta', 'text'],
  ['response.refusal.delta', 'text'],
  ['response.audio.transcript.delta', 'text'],
  ['response.reasoning_text.delta', 'thinking'],
  ['response.reasoning_summary_text.delta', 'thinking'],
  ['response.function_call_arguments.delta', 'tool'],
  ['response.mcp_call_arguments.delta', 'tool'],
  ['response.custom_tool_call_input.delta', 'tool'],
  ['response.code_interpreter_call_code.delta', 'tool'],
  ['response.shell_call_command.delta', 'tool'],
])

/** Calls of tools that the client runs. Upstream runs all others. */
const CLIENT_CALL = /^(?:function|custom_tool|computer|local_shell|apply_patch)_call$/

const OPEN_ITEMS_MAX = 256

/** Reads replies to POST /v1/responses, and to /v1/responses/compact and /v1/decisions, which have the same form. */
export class ResponsesReader implements ReplyReader {
  readonly layout = LAYOUT
  readonly #output: Delivered
  readonly #facts = new ReplyFacts()
  readonly #openItems = new Set<string>()
  /** Items as they were completed, and as the final response lists them. The list is preferred. */
  #tools = new SeenTools()
  #toolsRan = false
  #reasons = false
  #imagesBegun = 0
  #imageParts: readonly UsagePart[] = []
  #webSearches: number | null = null
  stage: Stage = 'content'
  #status: string | null = null

  constructor(output: Delivered) {
    this.#output = output
  }

  get shown(): Shown {
    const { tokens, id: objectId } = this.#facts
    return { inputKnown: tokens.input !== null, toolsRan: this.#toolsRan, reasons: this.#reasons, objectId }
  }

  readEvent(document: ReplyDocument, name: string): void {
    const event = asObject(document.value)
    const type = asName(event['type']) ?? name
    const kind = DELTAS.get(type)
    if (kind !== undefined) {
      this.#output[kind] += bytesWritten(event['delta'])
      return
    }
    switch (type) {
      case 'response.output_item.added':
        if (this.#openItems.size < OPEN_ITEMS_MAX) this.#openItems.add(asIndex(event['output_index']))
        this.#tools.noteContainer(asObject(event['item']), this.#facts.counts)
        this.stage = 'content'
        this.#noteItem(asName(asObject(event['item'])['type']) ?? '')
        break
      case 'response.output_item.done':
        this.#tools.read(asObject(event['item']), this.#facts.counts)
        this.#openItems.delete(asIndex(event['output_index']))
        if (this.#openItems.size === 0) this.stage = 'closing'
        break
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
      case 'response.cancelled':
      case 'response.done':
        this.#readResponse(asObject(event['response']), document)
        this.stage = 'over'
        break
      case 'error':
        this.#facts.error = errorNameOf(isObject(event['error']) ? event['error'] : event)
        break
      default:
        if (isObject(event['response'])) this.#facts.readHead(event['response'])
    }
  }

  readBody(document: ReplyDocument): void {
    const response = asObject(document.value)
    this.#readResponse(response, document)
    for (const item of asList(response['output'])) this.#countItemText(asObject(item))
    this.stage = 'over'
  }

  reading(): Reading {
    const own = withToolCalls([partOf(null, this.#facts.tokens)], this.#tools.calls(this.#webSearches))
    const parts = [...own, ...this.#imageParts, ...this.#tools.svgParts]
    return {
      ...this.#facts.reading(true, this.#status, parts),
      imagesBegun: this.#imagesBegun,
      containerIds: this.#tools.containerIds,
    }
  }

  #noteItem(type: string): void {
    // A compaction is a separate pass, as tool uses are.
    this.#toolsRan ||= /_call$|^mcp_|^compaction/.test(type) && !CLIENT_CALL.test(type)
    this.#reasons ||= type === 'reasoning'
    if (type === 'image_generation_call') this.#imagesBegun++
  }

  #readResponse(response: JsonObject, document: ReplyDocument): void {
    const { counts } = this.#facts
    const { output } = response
    this.#facts.readHead(response)
    this.#status = asName(response['status'])
    this.#facts.readError(response)
    this.#facts.readUsage(response, document)
    // Fees are counted from the items, so an overflow may have lost some.
    if (document.overflow) counts.markSuspect()
    // In production `output` is always empty here.
    if (Array.isArray(output) && output.length > 0) {
      this.#tools = new SeenTools()
      for (const item of output) this.#tools.read(asObject(item), counts)
    }
    const toolUsage = asObject(response['tool_usage'])
    this.#webSearches = counts.read(asObject(toolUsage['web_search'])['num_requests'])
    this.#imageParts = imageToolParts(response, counts)
  }

  #countItemText(item: JsonObject): void {
    const output = this.#output
    const kind = item['type'] === 'reasoning' ? 'thinking' : 'text'
    for (const part of asList(item['content']))
      output[kind] += bytesWritten(asObject(part)['text']) + bytesWritten(asObject(part)['refusal'])
    for (const part of asList(item['summary'])) output.thinking += bytesWritten(asObject(part)['text'])
    for (const name of ['arguments', 'input', 'code']) output.tool += bytesWritten(item[name])
  }
}

const CALLS_MAX = 10_000

/** Tool calls seen as output items. The usage does not contain the fees of most of them. */
class SeenTools {
  readonly #ids = new Set<string>()
  readonly #containers = new Set<string>()
  readonly svgParts: UsagePart[] = []
  #webSearches = 0
  #fileSearches = 0

  read(item: JsonObject, counts: Counts): void {
    this.noteContainer(item, counts)
    const { type } = item
    const id = asName(item['id'])
    if (id !== null && this.#ids.has(id)) return
    addUpTo(this.#ids, id, counts)
    if (type === 'file_search_call') this.#fileSearches++
    // Opening a page and searching for words on it are free.
    if (type === 'web_search_call' && asObject(item['action'])['type'] === 'search') this.#webSearches++
    if (type !== 'image_generation_call') return
    if (this.svgParts.length === CALLS_MAX) counts.markSuspect()
    else this.svgParts.push(...svgParts(item['svg_usage'], counts))
  }

  /** A container is charged once, when it exists, even if its item did not finish. */
  noteContainer(item: JsonObject, counts: Counts): void {
    const id = asName(item['container_id']) ?? asName(asObject(item['environment'])['container_id'])
    addUpTo(this.#containers, id, counts)
  }

  get containerIds(): readonly string[] {
    return [...this.#containers]
  }

  /** The tool calls. Upstream's own count of searches is preferred, because it excludes free searches. */
  calls(webSearches: number | null): Quantities {
    return quantitiesOf({
      web_searches: webSearches ?? this.#webSearches,
      file_searches: this.#fileSearches,
      containers: this.#containers.size,
    })
  }
}

function addUpTo(ids: Set<string>, id: string | null, counts: Counts): void {
  if (id === null || ids.has(id)) return
  if (ids.size === CALLS_MAX) counts.markSuspect()
  else ids.add(id)
}
