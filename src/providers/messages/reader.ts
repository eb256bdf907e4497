import {
  isObject,
  type JsonObject,
  listShape,
  objectShape,
  type ReplyDocument,
  SCALAR,
  SIZE,
  Sized,
  scalars,
  VALUE,
} from '../../metering/json-shape.ts'
import {
  type Delivered,
  NOTHING_STATED,
  type OutputKind,
  type Reading,
  type ReplyLayout,
  type ReplyReader,
  type Shown,
  type Stage,
} from '../../metering/meter.ts'
import { withToolCalls } from '../../pricing/call-fees.ts'
import { asIndex, asList, asName, asObject, bytesWritten } from '../reading.ts'
import { MessageUsage } from './usage.ts'

const MESSAGE = {
  ...scalars('id model stop_reason'),
  container: objectShape({}),
  usage: VALUE,
}
const BLOCK = {
  ...scalars('type name'),
  from: objectShape({ model: SCALAR }),
  to: objectShape({ model: SCALAR }),
}
const TEXTS = { text: SIZE, thinking: SIZE, partial_json: SIZE, content: SIZE }
const ERROR = { type: SCALAR, error: VALUE }

const LAYOUT: ReplyLayout = {
  body: objectShape({
    ...ERROR,
    ...MESSAGE,
    content: listShape(objectShape({ ...BLOCK, ...TEXTS, input: SIZE })),
  }),
  event: objectShape({
    ...ERROR,
    message: objectShape(MESSAGE),
    usage: VALUE,
    index: SCALAR,
    content_block: objectShape(BLOCK),
    delta: objectShape({ ...TEXTS, ...scalars('type stop_reason'), container: objectShape({}) }),
  }),
}

/** Deltas with text that the model wrote, and the member with the text. */
const DELTAS: ReadonlyMap<unknown, readonly [kind: OutputKind, member: string]> = new Map([
  ['text_delta', ['text', 'text']],
  ['thinking_delta', ['thinking', 'thinking']],
  ['input_json_delta', ['tool', 'partial_json']],
  ['compaction_delta', ['text', 'content']],
])

const SERVER_TOOL = /^(?:server_tool_use|mcp_tool_use|.+_tool_result)$/

/** Tools with which upstream runs code, and the types of their result blocks. */
const CODE = /^(?:bash_|text_editor_)?code_execution(?:_tool_result)?$/

const OPEN_BLOCKS_MAX = 64

/** Reads replies to POST /v1/messages: a message, or its event stream. */
export class MessagesReader implements ReplyReader {
  readonly layout = LAYOUT
  readonly #output: Delivered
  readonly #usage = new MessageUsage()
  readonly #openBlocks = new Set<string>()
  stage: Stage = 'content'
  #id: string | null = null
  #model: string | null = null
  /** The model before a fallback. The first one is the requested model. */
  #modelAsked: string | null = null
  #stopReason: string | null = null
  readonly #seen = { content: false, tools: false, reasoning: false, code: false }
  #error: string | null = null

  constructor(output: Delivered) {
    this.#output = output
  }

  /** `message_start` has the input, unless tools add to it later. */
  get shown(): Shown {
    const { inputKnown } = this.#usage
    return { inputKnown, toolsRan: this.#seen.tools, reasons: this.#seen.reasoning, objectId: null }
  }

  readEvent(document: ReplyDocument, name: string): void {
    const event = asObject(document.value)
    switch (asName(event['type']) ?? name) {
      case 'content_block_delta':
        this.#readDelta(asObject(event['delta']))
        break
      case 'content_block_start':
        if (this.#openBlocks.size < OPEN_BLOCKS_MAX) this.#openBlocks.add(asIndex(event['index']))
        this.stage = 'content'
        this.#noteBlock(asObject(event['content_block']))
        break
      case 'content_block_stop':
        this.#openBlocks.delete(asIndex(event['index']))
        if (this.#openBlocks.size === 0) this.stage = 'closing'
        break
      case 'message_start':
        this.#readMessage(asObject(event['message']), document, 'start')
        break
      case 'message_delta':
        this.#readEnd(event, document)
        break
      case 'message_stop':
        this.stage = 'over'
        this.#usage.noteEnd()
        break
      case 'error':
        this.#readError(event)
        break
      default:
    }
  }

  readBody(document: ReplyDocument): void {
    const message = asObject(document.value)
    this.stage = 'over'
    if (message['type'] === 'error') this.#readError(message)
    this.#readMessage(message, document, 'whole')
    for (const value of asList(message['content'])) {
      const block = asObject(value)
      this.#noteBlock(block)
      for (const [kind, member] of DELTAS.values()) this.#output[kind] += bytesWritten(block[member])
      this.#output.tool += inputBytes(block['input'])
    }
  }

  reading(): Reading {
    const isRefusal = this.#stopReason === 'refusal'
    const modelServed = this.#usage.fallbackModel() ?? this.#model
    const { parts, calls, inputKnown, outputKnown } = this.#usage.result({
      modelServed,
      modelAsked: this.#modelAsked,
      isRefusal,
    })
    const { stated, outputTokensSeen, suspect } = this.#usage
    const freeRefusal = isRefusal && !this.#seen.content
    const fees = this.#seen.code ? { ...calls, code_executions: 1 } : calls
    const stopReason = this.#stopReason
    return {
      ...NOTHING_STATED,
      usage: { ...stated, parts: withToolCalls(parts, fees), modelServed, stopReason, freeRefusal, suspect },
      inputKnown,
      outputKnown,
      outputTokensSeen,
      error: this.#error,
      objectId: this.#id,
    }
  }

  #readMessage(message: JsonObject, document: ReplyDocument, when: 'start' | 'whole'): void {
    this.#id = asName(message['id'])
    this.#model = asName(message['model'])
    this.#stopReason = asName(message['stop_reason'])
    this.#noteContainer(message)
    this.#usage.read(message['usage'], when, document)
  }

  #readEnd(event: JsonObject, document: ReplyDocument): void {
    const delta = asObject(event['delta'])
    const stopReason = asName(delta['stop_reason'])
    this.#noteContainer(delta)
    this.#usage.read(event['usage'], stopReason === null ? 'running' : 'final', document)
    if (stopReason === null) return
    this.#stopReason = stopReason
    this.stage = 'closing'
  }

  #noteBlock(block: JsonObject): void {
    const type = asName(block['type']) ?? ''
    if (type !== 'fallback') {
      this.#seen.content = true
      // A compaction is a separate pass, as tool uses are.
      this.#seen.tools ||= type === 'compaction' || SERVER_TOOL.test(type)
      this.#seen.code ||= CODE.test(type === 'server_tool_use' ? (asName(block['name']) ?? '') : type)
      this.#seen.reasoning ||= type === 'thinking' || type === 'redacted_thinking'
      return
    }
    this.#modelAsked ??= asName(asObject(block['from'])['model'])
    this.#model = asName(asObject(block['to'])['model']) ?? this.#model
    this.#usage.noteFallback()
  }

  /** A message has a container as soon as code may run or files are provided. */
  #noteContainer(owner: JsonObject): void {
    if (isObject(owner['container'])) this.#seen.code = true
  }

  #readDelta(delta: JsonObject): void {
    const [kind, member] = DELTAS.get(delta['type']) ?? [null, '']
    if (kind !== null) this.#output[kind] += bytesWritten(delta[member])
  }

  #readError(event: JsonObject): void {
    this.#error = asName(asObject(event['error'])['type']) ?? 'error'
  }
}

function inputBytes(input: unknown): number {
  if (input instanceof Sized) return input.bytes
  if (!isObject(input)) return bytesWritten(input)
  try {
    return Buffer.byteLength(JSON.stringify(input))
  } catch {
    // The input of a tool may be nested too deeply for the stack.
    return 0
  }
}
