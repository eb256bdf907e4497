import { NO_USAGE, type Usage } from '../kernel/usage.ts'
import type { MeterFault, ReplyDocument, Shape } from './json-shape.ts'
import { ReplyJson, readJson } from './reply-json.ts'
import { EVENT_BYTES_MAX, type EventCut, type EventSink, SseEvents } from './sse-events.ts'

/**
 * The progress of a reply.
 * - `content`: more content is expected.
 * - `closing`: the content may be complete, but the final figures have not come. Another block or item makes it
 *   `content` again.
 * - `over`: nothing relevant follows. A client that leaves now ends the call normally.
 */
export type Stage = 'content' | 'closing' | 'over'

/** What a reply has shown so far. Decides how the call is handled if the client leaves now. */
export interface Shown {
  readonly inputKnown: boolean
  /** Tools have run upstream. The model reads their results, and some charge per use. */
  readonly toolsRan: boolean
  readonly reasons: boolean
  readonly objectId?: string | null
}

export const NOTHING_SHOWN: Shown = { inputKnown: false, toolsRan: false, reasons: false }

/** Reads the usage in a reply from views of its chunks. Never throws, retains no chunk. */
export interface Meter {
  readonly stage: Stage
  readonly shown: Shown
  readonly hasBegun: boolean
  /** Bytes of the answer that a stream has shown, without thinking. */
  readonly visibleBytes: number
  /**
   * The next decoded bytes of the reply. Returns the bytes for the client, which differ only if a stream removes
   * injected usage.
   */
  readonly write: (chunk: Buffer) => Buffer | null
  rest?(): Buffer | null
  /** The reply ended: `whole`, or cut by upstream or the client. Call once. */
  end(whole: boolean): Metered
}

/** UTF-8 bytes that the model wrote: text and refusals, visible thinking, and tool input. */
export interface Delivered {
  text: number
  thinking: number
  tool: number
}

export type OutputKind = keyof Delivered

export function nothingDelivered(): Delivered {
  return { text: 0, thinking: 0, tool: 0 }
}

export interface AudioSeen {
  readonly milliseconds: number | null
  /** The audio is at least this long, by the last timestamp of subtitles. */
  readonly leastMilliseconds: number
  /** Size of the audio in the reply, and its first bytes, which may state the bit rate. */
  readonly bytes: number
  readonly head?: Buffer
}

export interface Reading {
  /** As stated by upstream, without the units of an unknown side. The first part is then the response's own model. */
  readonly usage: Usage
  /** Upstream stated a plausible amount of input. If not, it is estimated. */
  readonly inputKnown: boolean
  /** Upstream stated a plausible final amount of output. If not, it is estimated. */
  readonly outputKnown: boolean
  /** The last amount of output that upstream stated, final or not: a lower bound. */
  readonly outputTokensSeen: number
  readonly error: string | null
  /** Id of the message, completion or response, which a later GET of the object shows too. */
  readonly objectId: string | null
  /** Images that a tool has begun. Their tokens appear only in the final usage. */
  readonly imagesBegun: number
  readonly reasoningTokens: number | null
  readonly containerIds: readonly string[]
  readonly audio?: AudioSeen
  /** Only for a batch: its results file, if it has one. */
  readonly resultsFile?: string | null
  /** Only for a batch: the endpoint of its requests, if stated. */
  readonly requestsFor?: string | null
}

/** The reading of a reply that states nothing about usage. */
export const NOTHING_STATED: Reading = {
  usage: NO_USAGE,
  inputKnown: false,
  outputKnown: false,
  outputTokensSeen: 0,
  error: null,
  objectId: null,
  imagesBegun: 0,
  reasoningTokens: null,
  containerIds: [],
}

export interface Metered extends Reading {
  readonly stage: Stage
  readonly shown: Shown
  readonly output: Delivered
  readonly faults: readonly MeterFault[]
}

export interface ReplyLayout {
  /** The parts to read of a body or event that is too long to be parsed whole. */
  readonly body: Shape
  readonly event: Shape
  /** Events whose data begins like this carry no usage and may be large. */
  readonly dullEvents: readonly Buffer[]
}

/** Interprets one kind of reply. Each call has its own reader. */
export interface ReplyReader {
  readonly layout: ReplyLayout
  readonly stage: Stage
  readonly shown: Shown
  readEvent(document: ReplyDocument, name: string): void
  /** The marker `[DONE]`, which is not JSON. */
  readDone(): void
  readBody(document: ReplyDocument): void
  reading(): Reading
}

/** The meter of a reply without usage: audio, text, an error. */
export class SilentMeter implements Meter {
  readonly stage: Stage = 'content'
  readonly shown: Shown = NOTHING_SHOWN
  readonly hasBegun: boolean = false
  readonly visibleBytes = 0

  write(chunk: Buffer): Buffer {
    return chunk
  }

  end(whole: boolean): Metered {
    return {
      ...NOTHING_STATED,
      stage: whole ? 'over' : 'content',
      shown: NOTHING_SHOWN,
      output: nothingDelivered(),
      faults: [],
    }
  }
}

/**
 * Isolates a meter: after its first failure it is not called again, and the fault is reported at the end. The reply is
 * not affected.
 */
export class GuardedMeter implements Meter {
  #inner: Meter
  #failed = false

  constructor(inner: Meter) {
    this.#inner = inner
  }

  get stage(): Stage {
    return this.#inner.stage
  }

  get shown(): Shown {
    return this.#inner.shown
  }

  get hasBegun(): boolean {
    return this.#inner.hasBegun
  }

  get visibleBytes(): number {
    return this.#inner.visibleBytes
  }

  write(chunk: Buffer): Buffer | null {
    try {
      return this.#inner.write(chunk)
    } catch {
      this.#fail()
      return chunk
    }
  }

  rest(): Buffer | null {
    return this.#inner.rest?.() ?? null
  }

  end(whole: boolean): Metered {
    try {
      const metered = this.#inner.end(whole)
      return this.#failed ? { ...metered, faults: ['failed'] } : metered
    } catch {
      this.#fail()
      return { ...this.#inner.end(whole), faults: ['failed'] }
    }
  }

  #fail(): void {
    this.#failed = true
    this.#inner = new SilentMeter()
  }
}

/** The meter of a reply that has a reader. */
class ReaderMeter {
  protected readonly reader: ReplyReader
  protected readonly output: Delivered
  hasBegun = false

  constructor(reader: ReplyReader, output: Delivered) {
    this.reader = reader
    this.output = output
  }

  get stage(): Stage {
    return this.reader.stage
  }

  get shown(): Shown {
    return this.reader.shown
  }

  get visibleBytes(): number {
    return this.output.text + this.output.tool
  }

  protected metered(faults: readonly MeterFault[]): Metered {
    return meteredBy(this.reader, this.output, faults)
  }
}

function meteredBy(reader: ReplyReader, output: Delivered, faults: readonly MeterFault[]): Metered {
  const { stage, shown } = reader
  return { ...reader.reading(), stage, shown, output, faults }
}

export function meterDocument(reader: ReplyReader, output: Delivered, document: ReplyDocument): Metered {
  reader.readBody(document)
  return meteredBy(reader, output, document.overflow ? ['too_large'] : [])
}

/** The meter of a JSON reply. Nothing is known before its end. */
export class BodyMeter extends ReaderMeter implements Meter {
  readonly #json = new ReplyJson(this.reader.layout.body)

  write(chunk: Buffer): Buffer {
    this.#json.write(chunk)
    return chunk
  }

  end(whole: boolean): Metered {
    const document = this.#json.end()
    if (typeof document !== 'string') return meterDocument(this.reader, this.output, document)
    return this.metered(whole ? [document] : [])
  }
}

/** Decides which part of an event the client gets. `document` is null if the data is not JSON. */
export type CutEvent = (document: ReplyDocument | null, data: Buffer, isLast: boolean) => EventCut

const DONE = Buffer.from('[DONE]')

/** Shorter events are always parsed. */
const DULL_BYTES_MIN = 4 * 1024

/** The meter of an event stream. It splits and parses once; removing injected usage shares the result. */
export class StreamMeter extends ReaderMeter implements Meter, EventSink {
  readonly #cut: CutEvent | null
  readonly #events = new SseEvents(this)
  readonly #faults = new Set<MeterFault>()
  #long: ReplyJson | null = null
  #isCutOff = false
  #rest: Buffer | null = null

  constructor(reader: ReplyReader, output: Delivered, cut: CutEvent | null = null) {
    super(reader, output)
    this.#cut = cut
  }

  write(chunk: Buffer): Buffer | null {
    const kept = this.#events.write(chunk)
    return this.#cut === null ? chunk : kept
  }

  rest(): Buffer | null {
    return this.#rest
  }

  end(whole: boolean): Metered {
    this.#isCutOff = !whole
    const kept = this.#events.end()
    if (this.#cut !== null) this.#rest = kept
    return this.metered([...this.#faults])
  }

  event(name: string, data: Buffer, isLast: boolean): EventCut {
    this.hasBegun = true
    if (data.equals(DONE)) {
      this.reader.readDone()
      return 'pass'
    }
    if (data.length >= DULL_BYTES_MIN && this.#isDull(data)) return 'pass'
    const read = data.length === 0 ? 'not_json' : readJson(this.reader.layout.event, data)
    const document = typeof read === 'string' ? null : read
    if (document !== null) this.#read(document, name)
    else if (data.length > 0 && !(isLast && this.#isCutOff)) this.#faults.add(read as MeterFault)
    return this.#cut === null || data.length > EVENT_BYTES_MAX ? 'pass' : this.#cut(document, data, isLast)
  }

  longData(bytes: Buffer): void {
    this.#long ??= new ReplyJson(this.reader.layout.event)
    this.#long.write(bytes)
  }

  longEvent(name: string): void {
    this.hasBegun = true
    const read = this.#long?.end() ?? 'not_json'
    this.#long = null
    if (typeof read !== 'string') this.#read(read, name)
    else if (!this.#isCutOff) this.#faults.add(read)
  }

  #isDull(data: Buffer): boolean {
    return this.reader.layout.dullEvents.some((start) => data.subarray(0, start.length).equals(start))
  }

  /** A defect in a reader must neither fail nor change the stream. */
  #read(document: ReplyDocument, name: string): void {
    if (document.overflow) this.#faults.add('too_large')
    try {
      this.reader.readEvent(document, name)
    } catch {
      this.#faults.add('failed')
    }
  }
}
