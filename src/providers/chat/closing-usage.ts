import { NO_USAGE, type UsagePart } from '../../kernel/usage.ts'
import {
  glances,
  isObject,
  type JsonObject,
  objectShape,
  type ReplyDocument,
  type Shape,
  SIZE,
  VALUE,
} from '../../metering/json-shape.ts'
import {
  type AudioSeen,
  type Delivered,
  NOTHING_SHOWN,
  type Reading,
  type ReplyLayout,
  type ReplyReader,
  type Stage,
} from '../../metering/meter.ts'
import { bytesWritten, Counts, nameAt, objectAt, quantitiesOf, readingOf } from '../reading.ts'
import { readImageTokens, svgParts } from './images.ts'
import { errorNameOf, partOf, type ReportedTokens, readTokens } from './tokens.ts'

interface ClosingUsage {
  readonly parts: readonly UsagePart[]
  readonly inputKnown: boolean
  readonly outputKnown: boolean
  readonly outputTokens: number
}

/** A kind of reply that states its usage once, at the end: in the body, or in the closing event. */
interface ClosingKind {
  readonly layout: ReplyLayout
  readonly closingEvents: readonly string[]
  /** The event type with text in `delta`, and the body member with the text. */
  readonly textEvent?: string
  readonly textMember?: string
  readonly namesModel?: true
  readonly durationMember?: string
  /** True: several closing events are several results, each with its own usage. Otherwise one result was stated twice. */
  readonly closesEachResult?: true
  readUsage(usage: JsonObject, object: JsonObject, counts: Counts): ClosingUsage
}

function layoutOf(members: Readonly<Record<string, Shape>>, dullTypes: readonly string[] = []): ReplyLayout {
  const shape = objectShape({ ...members, usage: VALUE, error: VALUE })
  return {
    body: shape,
    event: shape,
    dullEvents: dullTypes.map((type) => Buffer.from(`{"type":"${type}"`)),
  }
}

function usageOf(tokens: ReportedTokens, otherParts: readonly UsagePart[] = []): ClosingUsage {
  return {
    parts: [partOf(null, tokens), ...otherParts],
    inputKnown: tokens.input !== null,
    outputKnown: tokens.output !== null,
    outputTokens: tokens.output?.total ?? 0,
  }
}

const NO_OUTPUT = { total: 0, quantities: {} }

const CLOSING_KINDS = {
  /** POST /v1/embeddings: input only. The vectors, megabytes of numbers, are skipped. */
  embeddings: {
    layout: layoutOf(glances('model')),
    namesModel: true,
    closingEvents: [],
    readUsage(usage, _body, counts) {
      return usageOf({ input: readTokens(usage, counts).input, output: NO_OUTPUT })
    },
  },
  /** POST /v1/images/generations and /v1/images/edits. The reply does not name the model. */
  images: {
    layout: layoutOf({ ...glances('type code'), svg_usage: VALUE }, [
      'image_generation.partial_image',
      'image_edit.partial_image',
    ]),
    closingEvents: ['image_generation.completed', 'image_edit.completed'],
    closesEachResult: true,
    readUsage(usage, object, counts) {
      return usageOf(readImageTokens(usage, counts), svgParts(object['svg_usage'], counts))
    },
  },
  /** POST /v1/audio/speech. Only an event stream states usage; plain audio does not. */
  speech: {
    layout: layoutOf(glances('type code'), ['speech.audio.delta']),
    closingEvents: ['speech.audio.done'],
    readUsage(usage, _object, counts) {
      const { input, output } = readTokens(usage, counts)
      if (output === null) return usageOf({ input, output })
      const { total } = output
      return usageOf({ input, output: { total, quantities: quantitiesOf({ audio_output_tokens: total }) } })
    },
  },
  /** POST /v1/audio/transcriptions. Plain text and subtitles state no usage. */
  transcription: {
    layout: layoutOf({ ...glances('type code duration'), text: SIZE, delta: SIZE }),
    closingEvents: ['transcript.text.done'],
    textEvent: 'transcript.text.delta',
    textMember: 'text',
    durationMember: 'duration',
    readUsage: (usage, _object, counts) => readTranscription(usage, counts),
  },
} as const satisfies Record<string, ClosingKind>

export function readTranscription(usage: JsonObject, counts: Counts): ClosingUsage {
  return usage['type'] === 'duration' ? readDuration(usage, counts) : readAudioTokens(usage, counts)
}

function readDuration(usage: JsonObject, counts: Counts): ClosingUsage {
  const milliseconds = counts.readSeconds(usage['seconds'])
  const quantities = quantitiesOf({ audio_input_milliseconds: milliseconds })
  return {
    parts: [{ model: null, quantities, promptTokens: 0 }],
    inputKnown: milliseconds !== null,
    outputKnown: true,
    outputTokens: 0,
  }
}

/** Input tokens without details are audio. */
function readAudioTokens(usage: JsonObject, counts: Counts): ClosingUsage {
  const { input, output } = readTokens(usage, counts)
  if (input === null || isObject(usage['input_token_details'])) return usageOf({ input, output })
  const { total } = input
  return usageOf({ input: { total, quantities: quantitiesOf({ audio_input_tokens: total }) }, output })
}

const SECONDS_MAX = 365 * 24 * 60 * 60

const RESULTS_MAX = 16

export class ClosingUsageReader implements ReplyReader {
  readonly layout: ReplyLayout
  readonly shown = NOTHING_SHOWN
  readonly #kind: ClosingKind
  readonly #output: Delivered
  readonly #counts = new Counts()
  #usages: readonly ClosingUsage[] = []
  stage: Stage = 'content'
  #model: string | null = null
  #audio: AudioSeen | null = null
  #error: string | null = null

  constructor(kind: keyof typeof CLOSING_KINDS, output: Delivered) {
    this.#kind = CLOSING_KINDS[kind]
    this.layout = this.#kind.layout
    this.#output = output
  }

  readDone(): void {}

  readEvent(document: ReplyDocument, name: string): void {
    const event = objectAt(document.value)
    const type = nameAt(event['type']) ?? name
    if (type === 'error' || isObject(event['error'])) this.#readError(event)
    if (this.#kind.closingEvents.includes(type)) {
      this.#readUsage(event, document)
      this.stage = 'over'
    }
    if (type === this.#kind.textEvent) this.#output.text += bytesWritten(event['delta'])
  }

  readBody(document: ReplyDocument): void {
    const body = objectAt(document.value)
    if (this.#kind.namesModel) this.#model = nameAt(body['model'])
    if (isObject(body['error'])) this.#readError(body)
    if (this.#kind.durationMember !== undefined) this.#audio = audioOf(body[this.#kind.durationMember])
    this.#readUsage(body, document)
    const { textMember } = this.#kind
    if (textMember !== undefined) this.#output.text += bytesWritten(body[textMember])
    this.stage = 'over'
  }

  reading(): Reading {
    const usages = this.#usages
    const reading = readingOf({
      parts: usages.flatMap((usage) => usage.parts),
      inputKnown: usages.length > 0 && usages.every((usage) => usage.inputKnown),
      outputKnown: usages.length > 0 && usages.every((usage) => usage.outputKnown),
      outputTokensSeen: usages.reduce((sum, usage) => sum + usage.outputTokens, 0),
      usage: { ...NO_USAGE, modelServed: this.#model },
      suspect: this.#counts.suspect,
      error: this.#error,
    })
    return this.#audio === null ? reading : { ...reading, audio: this.#audio }
  }

  #readUsage(object: JsonObject, document: ReplyDocument): void {
    const { usage } = object
    if (usage === null || usage === undefined) return
    if (!isObject(usage) || document.repeatsNames()) this.#counts.doubt()
    if (!isObject(usage)) return
    if (usage['type'] === 'duration') this.#audio = audioOf(usage['seconds']) ?? this.#audio
    this.#usages = this.#addUsage(this.#kind.readUsage(usage, object, this.#counts))
  }

  /** If usage is stated twice instead of once, the larger one counts. */
  #addUsage(usage: ClosingUsage): readonly ClosingUsage[] {
    const { closesEachResult } = this.#kind
    if (this.#usages.length < (closesEachResult ? RESULTS_MAX : 1)) return [...this.#usages, usage]
    this.#counts.doubt()
    if (closesEachResult) return this.#usages
    return [...this.#usages, usage].sort((a, b) => sizeOf(b) - sizeOf(a)).slice(0, 1)
  }

  #readError(object: JsonObject): void {
    this.#error = errorNameOf(isObject(object['error']) ? object['error'] : object)
  }
}

/** The duration is a number; older documentation says string. Implausible durations are ignored. */
function audioOf(stated: unknown): AudioSeen | null {
  const seconds = typeof stated === 'string' && stated !== '' ? Number(stated) : stated
  if (typeof seconds !== 'number' || !(seconds >= 0 && seconds <= SECONDS_MAX)) return null
  return { milliseconds: Math.round(seconds * 1_000), leastMilliseconds: 0, bytes: 0 }
}

const sizeOf = (usage: ClosingUsage): number =>
  usage.parts.flatMap((part) => Object.values(part.quantities)).reduce((sum, count) => sum + count, 0)
