import {
  type JsonObject,
  listShape,
  objectShape,
  type ReplyDocument,
  SIZE,
  scalars,
  VALUE,
} from '../../metering/json-shape.ts'
import {
  type Delivered,
  NOTHING_SHOWN,
  type Reading,
  type ReplyLayout,
  type ReplyReader,
  type Stage,
} from '../../metering/meter.ts'
import { asList, asName, asObject, bytesWritten } from '../reading.ts'
import { ReplyFacts } from './tokens.ts'

const CALL = objectShape({ arguments: SIZE, input: SIZE })
const MESSAGE = objectShape({
  content: SIZE,
  refusal: SIZE,
  reasoning_content: SIZE,
  audio: objectShape({ transcript: SIZE }),
  function_call: CALL,
  tool_calls: listShape(objectShape({ function: CALL, custom: CALL })),
})
const CHOICE = { ...scalars('index finish_reason'), text: SIZE }
const COMPLETION = { ...scalars('id model service_tier'), usage: VALUE, error: VALUE }

const LAYOUT: ReplyLayout = {
  body: objectShape({ ...COMPLETION, choices: listShape(objectShape({ ...CHOICE, message: MESSAGE })) }),
  event: objectShape({ ...COMPLETION, choices: listShape(objectShape({ ...CHOICE, delta: MESSAGE })) }),
}

const CHOICES_MAX = 128

/** POST /v1/chat/completions and /v1/completions: an object, or its chunks up to `[DONE]`. */
export class ChatReader implements ReplyReader {
  readonly layout = LAYOUT
  /** Usage comes last, the client runs the tools, and reasoning is not mentioned before the usage. */
  readonly shown = NOTHING_SHOWN
  readonly #output: Delivered
  readonly #facts = new ReplyFacts()
  readonly #openChoices = new Set<number>()
  readonly #finishedChoices = new Set<number>()
  /** Whether the usage is final: it came after all choices had finished, or in the last chunk, which has no choices. */
  #isFinal = false
  stage: Stage = 'content'
  #stopReason: string | null = null

  constructor(output: Delivered) {
    this.#output = output
  }

  readDone(): void {
    this.stage = 'over'
    this.#isFinal = true
  }

  readEvent(document: ReplyDocument): void {
    const chunk = asObject(document.value)
    const choices = this.#readChoices(chunk, 'delta')
    // Chunks have usage only if requested, and it is null before the last chunk.
    const hasUsage = this.#facts.readUsage(chunk, document)
    if (hasUsage && (choices.length === 0 || this.stage === 'closing')) {
      this.#isFinal = true
      this.stage = 'closing'
    }
  }

  readBody(document: ReplyDocument): void {
    const completion = asObject(document.value)
    this.#readChoices(completion, 'message')
    this.#facts.readUsage(completion, document)
    this.#isFinal = true
    this.stage = 'over'
  }

  reading(): Reading {
    return this.#facts.reading(this.#isFinal, this.#stopReason)
  }

  #readChoices(reply: JsonObject, member: 'delta' | 'message'): readonly unknown[] {
    const choices = asList(reply['choices'])
    this.#facts.readHead(reply)
    this.#facts.readError(reply)
    for (const value of choices) {
      const choice = asObject(value)
      this.#countText(choice, asObject(choice[member]))
      this.#followChoice(choice)
    }
    return choices
  }

  #countText(choice: JsonObject, message: JsonObject): void {
    const output = this.#output
    output.text +=
      bytesWritten(message['content']) +
      bytesWritten(choice['text']) +
      bytesWritten(message['refusal']) +
      bytesWritten(asObject(message['audio'])['transcript'])
    output.thinking += bytesWritten(message['reasoning_content'])
    output.tool += bytesWritten(asObject(message['function_call'])['arguments'])
    for (const value of asList(message['tool_calls'])) {
      const call = asObject(value)
      output.tool +=
        bytesWritten(asObject(call['function'])['arguments']) +
        bytesWritten(asObject(call['custom'])['input'])
    }
  }

  #followChoice(choice: JsonObject): void {
    const index = indexOf(choice)
    const finishReason = asName(choice['finish_reason'])
    if (finishReason !== null) {
      this.#openChoices.delete(index)
      if (this.#finishedChoices.size < CHOICES_MAX) this.#finishedChoices.add(index)
      if (index === 0 || this.#stopReason === null) this.#stopReason = finishReason
      if (this.#openChoices.size === 0) this.stage = 'closing'
      return
    }
    // The last update of an audio answer comes after its end and has no text.
    if (this.#finishedChoices.has(index)) return
    if (this.#openChoices.size < CHOICES_MAX) this.#openChoices.add(index)
    this.stage = 'content'
  }
}

function indexOf(choice: JsonObject): number {
  return typeof choice['index'] === 'number' ? choice['index'] : 0
}
