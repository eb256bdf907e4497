import type { UsagePart } from '../../kernel/usage.ts'
import type { TextPlace } from '../../metering/event-template.ts'
import type { JsonDocument } from '../../metering/json-document.ts'
import {
  type AudioSeen,
  NOTHING_SHOWN,
  type Reading,
  type ReplyLayout,
  type ReplyReader,
  type Stage,
} from '../../metering/meter.ts'
import type { OutputText } from '../../metering/output-text.ts'
import { Counts } from './counts.ts'
import { keepKnownSides } from './known-sides.ts'
import { isObject, nameAt, objectAt, textAt, type WireObject } from './wire-value.ts'

/** What one usage object says, ready to be priced. */
export interface ClosingUsage {
  readonly parts: readonly UsagePart[]
  readonly inputKnown: boolean
  readonly outputKnown: boolean
  readonly outputTokens: number
}

/** A kind of reply that says its usage once, at its end: as a member of the body, or in the event that closes it. */
export interface ClosingKind {
  readonly layout: ReplyLayout
  /** The types of the events that have usage. */
  readonly closingEvents: ReadonlySet<string>
  /** The type of the events that have a piece of text in `delta`, and the member that a body has the text in. */
  readonly textEvent: string | null
  readonly textMember: string | null
  /** The member in which a body states how long the audio is, in seconds. */
  readonly durationMember?: string
  /** Whether several closing events are several results, each with its own usage, or one said twice. */
  readonly closesEachResult: boolean
  /** `object` is the body or the closing event, `usage` the object in it. */
  readUsage(usage: WireObject, object: WireObject, counts: Counts): ClosingUsage
}

/** A year, of which no recording is. */
const SECONDS_MAX = 365 * 24 * 60 * 60

/** A call makes ten images at most. */
const RESULTS_MAX = 16

/** Reads replies of a closing kind. */
export class ClosingUsageReader implements ReplyReader {
  readonly layout: ReplyLayout
  readonly shown = NOTHING_SHOWN
  readonly #kind: ClosingKind
  readonly #output: OutputText
  readonly #counts = new Counts()
  #usages: readonly ClosingUsage[] = []
  #stage: Stage = 'content'
  #model: string | null = null
  #audio: AudioSeen | null = null
  #error: string | null = null

  constructor(kind: ClosingKind, output: OutputText) {
    this.layout = kind.layout
    this.#kind = kind
    this.#output = output
  }

  get stage(): Stage {
    return this.#stage
  }

  readDone(): void {}

  readEvent(document: JsonDocument, name: string): TextPlace | null {
    const event = objectAt(document.value)
    const type = nameAt(event['type']) ?? name
    if (type === 'error' || isObject(event['error'])) this.#readError(event)
    if (this.#kind.closingEvents.has(type)) {
      this.#readUsage(event, document)
      this.#stage = 'over'
    }
    const text = event['delta']
    if (type !== this.#kind.textEvent || typeof text !== 'string') return null
    const channel = this.#output.channel('text', 0)
    channel.append(text)
    return { path: ['delta'], text, channel }
  }

  readBody(document: JsonDocument): void {
    const body = objectAt(document.value)
    this.#model = nameAt(body['model'])
    if (isObject(body['error'])) this.#readError(body)
    this.#audio = this.#readDuration(body)
    this.#readUsage(body, document)
    this.#stage = 'over'
  }

  readText(document: JsonDocument): void {
    const { textMember } = this.#kind
    if (textMember === null) return
    this.#output.channel('text', 0).append(textAt(objectAt(document.value)[textMember]))
  }

  reading(): Reading {
    const usages = this.#usages
    const inputKnown = usages.length > 0 && usages.every((usage) => usage.inputKnown)
    const outputKnown = usages.length > 0 && usages.every((usage) => usage.outputKnown)
    const parts = usages.flatMap((usage) => usage.parts)
    return {
      usage: {
        parts: keepKnownSides(parts, inputKnown, outputKnown),
        modelServed: this.#model,
        serviceTier: null,
        speed: null,
        geography: null,
        stopReason: null,
        freeRefusal: false,
        suspect: this.#counts.suspect,
      },
      inputKnown,
      outputKnown,
      outputTokensSeen: usages.reduce((sum, usage) => sum + usage.outputTokens, 0),
      error: this.#error,
      objectId: null,
      imagesBegun: 0,
      ...(this.#audio === null ? {} : { audio: this.#audio }),
    }
  }

  /** A number, which the documents of some years call a string. What cannot be true is not taken. */
  #readDuration(body: WireObject): AudioSeen | null {
    const { durationMember } = this.#kind
    const stated = durationMember === undefined ? undefined : body[durationMember]
    const seconds = typeof stated === 'string' && stated !== '' ? Number(stated) : stated
    if (typeof seconds !== 'number' || !(seconds >= 0 && seconds <= SECONDS_MAX)) return null
    return { milliseconds: Math.round(seconds * 1_000), leastMilliseconds: 0, bytes: 0 }
  }

  #readUsage(object: WireObject, document: JsonDocument): void {
    const { usage } = object
    if (usage === null || usage === undefined) return
    if (!isObject(usage) || document.repeatsNames()) this.#counts.doubt()
    if (!isObject(usage)) return
    this.#usages = this.#addUsage(this.#kind.readUsage(usage, object, this.#counts))
  }

  /** What is said twice and should be said once counts once, and it is the larger that counts. */
  #addUsage(usage: ClosingUsage): readonly ClosingUsage[] {
    const { closesEachResult } = this.#kind
    if (this.#usages.length < (closesEachResult ? RESULTS_MAX : 1)) return [...this.#usages, usage]
    this.#counts.doubt()
    if (closesEachResult) return this.#usages
    return [...this.#usages, usage].sort((a, b) => sizeOf(b) - sizeOf(a)).slice(0, 1)
  }

  #readError(object: WireObject): void {
    const error = isObject(object['error']) ? object['error'] : object
    this.#error = nameAt(error['code']) ?? nameAt(error['type']) ?? 'error'
  }
}

const sizeOf = (usage: ClosingUsage): number =>
  usage.parts.flatMap((part) => Object.values(part.quantities)).reduce((sum, count) => sum + count, 0)
