import type { TextPlace } from '../../metering/event-template.ts'
import { arrayOf, OUTPUT, objectOf, scalars } from '../../metering/json-place.ts'
import {
  NOTHING_SHOWN,
  type Reading,
  type ReplyDocument,
  type ReplyLayout,
  type ReplyReader,
  type Stage,
} from '../../metering/meter.ts'
import type { OutputKind, OutputText } from '../../metering/output-text.ts'
import { listAt, nameAt, objectAt, takeText, type WireObject } from '../usage/reading.ts'
import { ERROR, ReplyFacts, TOKEN_MEMBERS } from './tokens.ts'

const MESSAGE = objectOf({
  content: OUTPUT,
  refusal: OUTPUT,
  reasoning_content: OUTPUT,
  audio: objectOf({ transcript: OUTPUT }),
  function_call: objectOf({ arguments: OUTPUT }),
  tool_calls: arrayOf(
    objectOf({ function: objectOf({ arguments: OUTPUT }), custom: objectOf({ input: OUTPUT }) }),
  ),
})
const CHOICE = { ...scalars('index finish_reason'), text: OUTPUT }
const COMPLETION = { ...scalars('id model service_tier'), usage: objectOf(TOKEN_MEMBERS), error: ERROR }

const LAYOUT: ReplyLayout = {
  body: objectOf({ ...COMPLETION, choices: arrayOf(objectOf({ ...CHOICE, message: MESSAGE })) }),
  event: objectOf({ ...COMPLETION, choices: arrayOf(objectOf({ ...CHOICE, delta: MESSAGE })) }),
  noise: new Set(['obfuscation']),
  dullEvents: [],
}

type Path = readonly (string | number)[]

/** The places of a choice's texts: below `delta` in a stream and `message` in a body; `text` is read in either. */
const TEXTS: readonly (readonly [kind: OutputKind, ...path: string[]])[] = [
  ['text', 'content'],
  ['text', 'refusal'],
  ['text', 'audio', 'transcript'],
  ['thinking', 'reasoning_content'],
  ['tool', 'function_call', 'arguments'],
]

/** More choices than a call can ask for are not told apart. */
const CHOICES_MAX = 128

/** POST /v1/chat/completions and /v1/completions: an object, or chunks of it up to `[DONE]`. */
export class ChatReader implements ReplyReader {
  readonly layout = LAYOUT
  /** Usage comes last, tools are the client's, and reasoning is never mentioned before the usage. */
  readonly shown = NOTHING_SHOWN
  readonly #output: OutputText
  readonly #facts = new ReplyFacts()
  readonly #openChoices = new Set<number>()
  readonly #finishedChoices = new Set<number>()
  /** The usage came with all choices finished, or in the chunk that has no choices because it comes last. */
  #isFinal = false
  stage: Stage = 'content'
  #stopReason: string | null = null

  constructor(output: OutputText) {
    this.#output = output
  }

  readDone(): void {
    this.stage = 'over'
    this.#isFinal = true
  }

  readEvent(document: ReplyDocument): TextPlace | null {
    const chunk = objectAt(document.value)
    const choices = listAt(chunk['choices'])
    this.#facts.readHead(chunk)
    this.#facts.readError(chunk)
    let place: TextPlace | null = null
    for (const [i, value] of choices.entries()) {
      const choice = objectAt(value)
      const texts = this.#readTexts(choice, objectAt(choice['delta']), ['choices', i, 'delta'])
      this.#followChoice(choice)
      place =
        choices.length === 1 && texts.length === 1 && choice['finish_reason'] == null
          ? (texts[0] ?? null)
          : null
    }
    // A chunk has no usage unless it was asked for, and before the last chunk the usage is null.
    const hasUsage = this.#facts.readUsage(chunk, document)
    if (hasUsage && (choices.length === 0 || this.stage === 'closing')) {
      this.#isFinal = true
      if (choices.length === 0) this.stage = 'over'
    }
    return hasUsage ? null : place
  }

  readBody(document: ReplyDocument): void {
    const completion = objectAt(document.value)
    this.#facts.readHead(completion)
    this.#facts.readError(completion)
    for (const choice of listAt(completion['choices'])) this.#followChoice(objectAt(choice))
    this.#facts.readUsage(completion, document)
    this.#isFinal = true
    this.stage = 'over'
  }

  readText(document: ReplyDocument): void {
    for (const value of listAt(objectAt(document.value)['choices'])) {
      const choice = objectAt(value)
      this.#readTexts(choice, objectAt(choice['message']), [])
    }
  }

  reading(): Reading {
    return this.#facts.reading(this.#isFinal, this.#stopReason)
  }

  /** Takes the texts of a choice and says where they were. */
  #readTexts(choice: WireObject, message: WireObject, path: Path): TextPlace[] {
    const index = indexOf(choice)
    const places: TextPlace[] = []
    const take = (kind: OutputKind, text: unknown, where: Path): void => {
      const place = takeText(this.#output, kind, index, text, where)
      if (place !== null) places.push(place)
    }
    take('text', choice['text'], [...path.slice(0, -1), 'text'])
    for (const [kind, ...names] of TEXTS) {
      take(
        kind,
        names.reduce<unknown>((at, name) => objectAt(at)[name], message),
        [...path, ...names],
      )
    }
    for (const [i, value] of listAt(message['tool_calls']).entries()) {
      const call = objectAt(value)
      take('tool', objectAt(call['function'])['arguments'], [
        ...path,
        'tool_calls',
        i,
        'function',
        'arguments',
      ])
      take('tool', objectAt(call['custom'])['input'], [...path, 'tool_calls', i, 'custom', 'input'])
    }
    return places
  }

  #followChoice(choice: WireObject): void {
    const index = indexOf(choice)
    const finishReason = nameAt(choice['finish_reason'])
    if (finishReason !== null) {
      this.#openChoices.delete(index)
      if (this.#finishedChoices.size < CHOICES_MAX) this.#finishedChoices.add(index)
      if (index === 0 || this.#stopReason === null) this.#stopReason = finishReason
      if (this.#openChoices.size === 0) this.stage = 'closing'
      return
    }
    // The last update of an audio answer comes after its end and has no text any more.
    if (this.#finishedChoices.has(index)) return
    if (this.#openChoices.size < CHOICES_MAX) this.#openChoices.add(index)
    this.stage = 'content'
  }
}

function indexOf(choice: WireObject): number {
  return typeof choice['index'] === 'number' ? choice['index'] : 0
}
