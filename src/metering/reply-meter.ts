import { type Borrowed, viewOf } from '../kernel/read-buffer.ts'
import { type EventTemplate, learnTemplate } from './event-template.ts'
import { JsonCondenser } from './json-condenser.ts'
import {
  type Condensed,
  type CondenseRules,
  type JsonDocument,
  readDocument,
  readSmall,
  type SmallDocument,
} from './json-document.ts'
import type { Meter, Metered, MeterFault, ReplyReader, Shown, Stage } from './meter.ts'
import { type DeliveredOutput, LateOutput, type OutputText } from './output-text.ts'
import { SseScanner, type SseSink } from './sse-scanner.ts'

/** The meter of a reply that is one JSON document. Nothing is known of it before it is whole. */
export class BodyMeter implements Meter {
  readonly #reader: ReplyReader
  readonly #output: OutputText
  readonly #rules: CondenseRules
  /** Null before the first chunk, and as long as the small document is all there is. */
  #condenser: JsonCondenser | null = null
  #small: SmallDocument | null = null

  constructor(reader: ReplyReader, output: OutputText) {
    this.#reader = reader
    this.#output = output
    this.#rules = { keep: reader.layout.members, drop: reader.layout.ignored }
  }

  get stage(): Stage {
    return this.#reader.stage
  }

  get shown(): Shown {
    return this.#reader.shown
  }

  /** A document is seen when it is whole. */
  readonly visibleBytes = 0

  write(chunk: Borrowed): void {
    const bytes = viewOf(chunk)
    if (this.#condenser === null && this.#small === null) {
      this.#small = readSmall(bytes, this.#rules)
      if (this.#small !== null) return
    }
    this.#condense().write(bytes, 0, bytes.length)
  }

  end(whole: boolean): Metered {
    if (this.#small !== null) return this.#read(this.#small.document, this.#small.document)
    const { brief, whole: all } = this.#condense().takeTwo()
    const document = readDocument(brief)
    if (typeof document === 'string') return this.#metered(whole ? [document] : [], this.#output.delivered())
    return this.#read(document, all)
  }

  /** Where there is more than the small document, all of it has to be condensed, from its beginning. */
  #condense(): JsonCondenser {
    if (this.#condenser !== null) return this.#condenser
    const condenser = new JsonCondenser(this.#rules)
    if (this.#small !== null) {
      const bytes = Buffer.from(this.#small.text)
      condenser.write(bytes, 0, bytes.length)
      this.#small = null
    }
    this.#condenser = condenser
    return condenser
  }

  /** What the model wrote is looked for when it is asked for, in the document itself or in the copy that has all of it. */
  #read(document: JsonDocument, source: JsonDocument | Condensed): Metered {
    this.#reader.readBody(document)
    const output = new LateOutput(() => {
      const withText = 'kind' in source ? readDocument(source) : source
      if (typeof withText !== 'string') this.#reader.readText(withText)
      return this.#output.delivered()
    })
    return this.#metered(document.overflow ? ['too_large'] : [], output)
  }

  #metered(faults: readonly MeterFault[], output: DeliveredOutput): Metered {
    return { ...this.#reader.reading(), stage: this.stage, shown: this.shown, output, faults }
  }
}

const DONE = '[DONE]'

/** After so many templates in a row that fitted nothing, this stream is not of the kind that has them. */
const FRUITLESS_MAX = 8

/** The meter of a reply of server-sent events. */
export class StreamMeter implements Meter, SseSink {
  readonly #reader: ReplyReader
  readonly #output: OutputText
  readonly #condenser: JsonCondenser
  readonly #scanner = new SseScanner(this)
  readonly #faults = new Set<MeterFault>()
  /**
   * The event that was read last, if all that may follow it and differs from it in nothing but its text means
   * nothing else. It holds until another event comes, since that may change what the like of it means.
   */
  #template: EventTemplate | null = null
  #fruitless = 0
  /** The first bytes of the event's data, until it is decided whether it is a dull one. */
  readonly #start: Buffer
  #startLength = 0
  #isDull = false
  /** The event at hand may be cut off, so that it need not be JSON. */
  #isLast = false

  constructor(reader: ReplyReader, output: OutputText) {
    const { members, ignored, dullEvents } = reader.layout
    this.#reader = reader
    this.#start = Buffer.alloc(Math.max(0, ...dullEvents.map((start) => start.length)))
    this.#output = output
    this.#condenser = new JsonCondenser({ keep: members, drop: ignored })
  }

  get stage(): Stage {
    return this.#reader.stage
  }

  get shown(): Shown {
    return this.#reader.shown
  }

  get visibleBytes(): number {
    return this.#output.answerBytes
  }

  write(chunk: Borrowed): void {
    this.#scanner.write(chunk)
  }

  end(whole: boolean): Metered {
    this.#isLast = !whole
    this.#scanner.end()
    return {
      ...this.#reader.reading(),
      stage: this.stage,
      shown: this.shown,
      output: this.#output.delivered(),
      faults: [...this.#faults],
    }
  }

  recognise(chunk: Buffer, words: DataView, from: number): number {
    if (this.#template === null) return from
    const behind = this.#template.take(chunk, words, from)
    if (behind < 0) return from
    this.#fruitless = 0
    return behind
  }

  data(chunk: Buffer, from: number, to: number): void {
    if (this.#startLength < this.#start.length) this.#readStart(chunk, from, to)
    if (!this.#isDull) this.#condenser.write(chunk, from, to)
  }

  event(name: string, raw: Buffer | null): void {
    const isDull = this.#isDull
    this.#startLength = 0
    this.#isDull = false
    if (!isDull) this.#readEvent(name, raw)
  }

  #readStart(chunk: Buffer, from: number, to: number): void {
    this.#startLength += chunk.copy(this.#start, this.#startLength, from, to)
    const start = this.#start.subarray(0, this.#startLength)
    this.#isDull = this.#reader.layout.dullEvents.some((dull) => start.subarray(0, dull.length).equals(dull))
    // What came before this piece was not known to be dull yet.
    if (this.#isDull) this.#condenser.take()
  }

  #readEvent(name: string, raw: Buffer | null): void {
    this.#template = null
    const condensed = this.#condenser.take()
    if (condensed.kind === 'json' && (condensed.text === '' || condensed.text === DONE)) {
      if (condensed.text === DONE) this.#reader.readDone()
      return
    }
    const document = readDocument(condensed)
    if (typeof document === 'string') {
      if (!this.#isLast) this.#faults.add(document)
      return
    }
    if (document.overflow) this.#faults.add('too_large')
    const place = this.#reader.readEvent(document, name)
    if (place === null || raw === null || this.#fruitless === FRUITLESS_MAX) return
    this.#fruitless++
    this.#template = learnTemplate(raw, place, this.#reader.layout.noise)
  }
}
