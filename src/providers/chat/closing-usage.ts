import type { UsagePart } from '../../kernel/usage.ts'
import {
  isObject,
  type JsonObject,
  objectShape,
  type ReplyDocument,
  SIZE,
  scalars,
  VALUE,
} from '../../metering/json-shape.ts'
import {
  type AudioSeen,
  type Delivered,
  NO_AUDIO,
  NOTHING_SHOWN,
  type Reading,
  type ReplyLayout,
  type ReplyReader,
  type Stage,
} from '../../metering/meter.ts'
import { asName, asObject, bytesWritten, type Counts, quantitiesOf } from '../reading.ts'
import { readImageTokens, svgParts } from './images.ts'
import { partOf, ReplyFacts, type ReportedTokens, readTokens, type TokenSide } from './tokens.ts'

/** A kind of reply that states its usage once: in the body, or in the closing event of a stream. */
interface ClosingKind {
  readonly closingEvents: readonly string[]
  /** Whether each closing event is a result with its own usage. If not, all of them state the same result. */
  readonly closesEachResult?: true
  readonly readUsage: (usage: JsonObject, counts: Counts) => ReportedTokens
}

const NO_OUTPUT: TokenSide = { total: 0, quantities: {} }

const CLOSING_KINDS = {
  /** POST /v1/embeddings: input only. The vectors are megabytes of numbers and are not read. */
  embeddings: {
    closingEvents: [],
    readUsage: (usage, counts) => ({ ...readTokens(usage, counts), output: NO_OUTPUT }),
  },
  /** POST /v1/images/generations and /v1/images/edits. The reply does not name the model. */
  images: {
    closingEvents: ['image_generation.completed', 'image_edit.completed'],
    closesEachResult: true,
    readUsage: readImageTokens,
  },
  /** POST /v1/audio/speech. Only an event stream states usage; plain audio does not. */
  speech: {
    closingEvents: ['speech.audio.done'],
    readUsage(usage, counts) {
      const { input, output } = readTokens(usage, counts)
      if (output === null) return { input, output }
      const { total } = output
      return { input, output: { total, quantities: quantitiesOf({ audio_output_tokens: total }) } }
    },
  },
  /** POST /v1/audio/transcriptions. Plain text and subtitles state no usage. */
  transcription: {
    closingEvents: ['transcript.text.done'],
    readUsage: readTranscription,
  },
} as const satisfies Record<string, ClosingKind>

/** A transcription states the length of the recording, or tokens: without details they are those of the recording. */
export function readTranscription(usage: JsonObject, counts: Counts): ReportedTokens {
  if (usage['type'] !== 'duration') return readTokens(usage, counts, { input: 'audio_input_tokens' })
  const milliseconds = counts.readSecondsAsMs(usage['seconds'])
  const quantities = quantitiesOf({ audio_input_milliseconds: milliseconds })
  return { input: milliseconds === null ? null : { total: 0, quantities }, output: NO_OUTPUT }
}

const MEMBERS = objectShape({
  ...scalars('type code model duration'),
  text: SIZE,
  delta: SIZE,
  usage: VALUE,
  svg_usage: VALUE,
  error: VALUE,
})

const LAYOUT: ReplyLayout = { body: MEMBERS, event: MEMBERS }

const SECONDS_MAX = 365 * 24 * 60 * 60

const RESULTS_MAX = 16

export class ClosingUsageReader implements ReplyReader {
  readonly layout = LAYOUT
  readonly shown = NOTHING_SHOWN
  readonly #kind: ClosingKind
  readonly #output: Delivered
  readonly #facts = new ReplyFacts()
  readonly #results: ReportedTokens[] = []
  readonly #svgParts: UsagePart[] = []
  stage: Stage = 'content'
  #audio: AudioSeen | null = null

  constructor(kind: keyof typeof CLOSING_KINDS, output: Delivered) {
    this.#kind = CLOSING_KINDS[kind]
    this.#output = output
  }

  readEvent(document: ReplyDocument, name: string): void {
    const event = asObject(document.value)
    const type = asName(event['type']) ?? name
    this.#facts.readError(type === 'error' && !isObject(event['error']) ? { error: event } : event)
    if (this.#kind.closingEvents.includes(type)) {
      this.#readUsage(event, document)
      this.stage = 'over'
    }
    if (type === 'transcript.text.delta') this.#output.text += bytesWritten(event['delta'])
  }

  readBody(document: ReplyDocument): void {
    const body = asObject(document.value)
    this.#facts.readHead({ model: body['model'] })
    this.#facts.readError(body)
    this.#audio = audioOf(body['duration'])
    this.#readUsage(body, document)
    this.#output.text += bytesWritten(body['text'])
    this.stage = 'over'
  }

  reading(): Reading {
    const results = this.#results
    const parts = results.map((tokens) => partOf(null, tokens))
    const reading = this.#facts.reading(true, null, [...parts, ...this.#svgParts])
    return {
      ...reading,
      inputKnown: results.length > 0 && results.every(({ input }) => input !== null),
      outputKnown: results.length > 0 && results.every(({ output }) => output !== null),
      outputTokensSeen: results.reduce((sum, { output }) => sum + (output?.total ?? 0), 0),
      audio: this.#audio,
    }
  }

  #readUsage(object: JsonObject, document: ReplyDocument): void {
    const { usage } = object
    const { counts } = this.#facts
    if (usage === null || usage === undefined) return
    if (!isObject(usage) || document.repeatsNames()) counts.markSuspect()
    if (!isObject(usage)) return
    if (usage['type'] === 'duration') this.#audio = audioOf(usage['seconds']) ?? this.#audio
    const result = this.#kind.readUsage(usage, counts)
    if (this.#results.length < (this.#kind.closesEachResult ? RESULTS_MAX : 1)) this.#results.push(result)
    else {
      counts.markSuspect()
      const last = this.#results.pop() ?? result
      this.#results.push(unitsIn(result) > unitsIn(last) ? result : last)
    }
    if (this.#svgParts.length < RESULTS_MAX) this.#svgParts.push(...svgParts(object['svg_usage'], counts))
  }
}

function unitsIn({ input, output }: ReportedTokens): number {
  const counts = [input, output].flatMap((side) => Object.values(side?.quantities ?? {}))
  return counts.reduce((sum, count) => sum + count, 0)
}

/** A number, or a string according to older documentation. Implausible durations are ignored. */
function audioOf(stated: unknown): AudioSeen | null {
  const seconds = typeof stated === 'string' && stated !== '' ? Number(stated) : stated
  if (typeof seconds !== 'number' || !(seconds >= 0 && seconds <= SECONDS_MAX)) return null
  return { ...NO_AUDIO, milliseconds: Math.round(seconds * 1_000) }
}
