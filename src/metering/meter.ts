import { NO_USAGE, type Usage } from '../kernel/usage.ts'
import type { MeterFault, ReplyDocument, Shape } from './json-shape.ts'
import { ReplyJson, readJson } from './reply-json.ts'
import { EVENT_BYTES_MAX, type EventCut, type EventSink, SseEvents } from './sse-events.ts'

/**
 * How far a reply has come.
 * - `content`: more of the content that the client asked for is to come, as far as can be seen.
 * - `closing`: the content may be complete, the final figures are still to come. A further block or item makes it
 *   `content` again.
 * - `over`: nothing that matters is to come. A client that leaves now makes a normal end.
 */
export type Stage = 'content' | 'closing' | 'over'

/** Facts that a reply has shown so far. They decide what becomes of the call if the client leaves now. */
export interface Shown {
  readonly inputKnown: boolean
  /** Tools have run upstream: the model reads their results, and some cost by the call. */
  readonly toolsRan: boolean
  readonly reasons: boolean
  readonly objectId?: string | null
}

export const NOTHING_SHOWN: Shown = { inputKnown: false, toolsRan: false, reasons: false }

/** Reads the usage in a reply from views of its chunks. A meter never throws and retains no chunk. */
export interface Meter {
  readonly stage: Stage
  readonly shown: Shown
  readonly hasBegun: boolean
  /** Bytes of the model's answer, as far as a stream has shown it. Thinking is not among them. */
  readonly visibleBytes: number
  /** The reply's next bytes, without their content coding. Returns the bytes for the client, which only a stream cuts. */
  readonly write: (chunk: Buffer) => Buffer | null
  rest?(): Buffer | null
  /** The reply ended: `whole`, or cut by upstream or the client. To be called once. */
  end(whole: boolean): Metered
}

/** UTF-8 bytes that the model wrote: prose and refusals, thinking as far as it is shown, and the input of tools. */
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
  /** The audio is at least so long: the last time stamp of subtitles. */
  readonly leastMilliseconds: number
  /** Bytes of the audio that came with the reply, and the first of them, which may state their bit rate. */
  readonly bytes: number
  readonly head?: Buffer
}

export interface Reading {
  /**
   * As upstream stated it, without the units of a side that is not known; the first part is then the response's own
   * model.
   */
  readonly usage: Usage
  /** Upstream said how much input there was, and that can be true. Else the input has to be counted. */
  readonly inputKnown: boolean
  /** Upstream said finally how much output there was, and that can be true. Else the output has to be counted. */
  readonly outputKnown: boolean
  /** The output that upstream last spoke of, finally or not: there was at least so much. */
  readonly outputTokensSeen: number
  readonly error: string | null
  /** The id of the message, completion or response, which a later GET of the same object names too. */
  readonly objectId: string | null
  /** Images that a tool has begun to draw. Their tokens stand in the final usage alone. */
  readonly imagesBegun: number
  readonly reasoningTokens: number | null
  readonly containerIds: readonly string[]
  readonly audio?: AudioSeen
  /** Only for a batch: the file that has its results, where they are in a file. */
  readonly resultsFile?: string | null
  /** Only for a batch: the endpoint that its requests are for, where it says so. */
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
  /** The parts of a body, and of an event's data, that are read where it is too long to be parsed whole. */
  readonly body: Shape
  readonly event: Shape
  /** An event whose data begins with these bytes says nothing, and may be large. */
  readonly dullEvents: readonly Buffer[]
}

/** Knows what one kind of reply means. Each call gets a reader of its own. */
export interface ReplyReader {
  readonly layout: ReplyLayout
  readonly stage: Stage
  readonly shown: Shown
  readEvent(document: ReplyDocument, name: string): void
  /** The mark `[DONE]`, which is no JSON. */
  readDone(): void
  readBody(document: ReplyDocument): void
  reading(): Reading
}

/** The meter of a reply that says nothing about usage: audio, text, an error. */
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

/** A meter that fails once is not asked again, and the fault is reported at the end: no reply breaks for it. */
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

/** The meter of a reply that is one JSON document. Its usage is known when the document is whole. */
export class BodyMeter implements Meter {
  readonly #reader: ReplyReader
  readonly #output: Delivered
  readonly #json: ReplyJson

  constructor(reader: ReplyReader, output: Delivered) {
    this.#reader = reader
    this.#output = output
    this.#json = new ReplyJson(reader.layout.body)
  }

  get stage(): Stage {
    return this.#reader.stage
  }

  get shown(): Shown {
    return this.#reader.shown
  }

  /** A document shows nothing before it is whole. */
  readonly hasBegun = false
  readonly visibleBytes = 0

  write(chunk: Buffer): Buffer {
    this.#json.write(chunk)
    return chunk
  }

  end(whole: boolean): Metered {
    const document = this.#json.end()
    if (typeof document !== 'string') return meterDocument(this.#reader, this.#output, document)
    const { stage, shown } = this
    const faults = whole ? [document] : []
    return { ...this.#reader.reading(), stage, shown, output: this.#output, faults }
  }
}

export function meterDocument(reader: ReplyReader, output: Delivered, document: ReplyDocument): Metered {
  reader.readBody(document)
  const { stage, shown } = reader
  return { ...reader.reading(), stage, shown, output, faults: document.overflow ? ['too_large'] : [] }
}

/** Decides what the client gets of an event. `document` is null where the data is not JSON. */
export type CutEvent = (document: ReplyDocument | null, data: Buffer, isLast: boolean) => EventCut

const DONE = Buffer.from('[DONE]')

/** Events that are shorter are parsed, dull or not. */
const DULL_BYTES_MIN = 4 * 1024

/** The meter of a reply of server-sent events: one split and one parse, which the cutter of injected usage shares. */
export class StreamMeter implements Meter, EventSink {
  readonly #reader: ReplyReader
  readonly #output: Delivered
  readonly #cut: CutEvent | null
  readonly #events = new SseEvents(this)
  readonly #faults = new Set<MeterFault>()
  #long: ReplyJson | null = null
  #isCutOff = false
  #rest: Buffer | null = null
  hasBegun = false

  constructor(reader: ReplyReader, output: Delivered, cut: CutEvent | null = null) {
    this.#reader = reader
    this.#output = output
    this.#cut = cut
  }

  get stage(): Stage {
    return this.#reader.stage
  }

  get shown(): Shown {
    return this.#reader.shown
  }

  get visibleBytes(): number {
    return this.#output.text + this.#output.tool
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
    const { stage, shown } = this
    return {
      ...this.#reader.reading(),
      stage,
      shown,
      output: this.#output,
      faults: [...this.#faults],
    }
  }

  event(name: string, data: Buffer, isLast: boolean): EventCut {
    this.hasBegun = true
    if (data.equals(DONE)) {
      this.#reader.readDone()
      return 'pass'
    }
    if (data.length >= DULL_BYTES_MIN && this.#isDull(data)) return 'pass'
    const read = data.length === 0 ? 'not_json' : readJson(this.#reader.layout.event, data)
    const document = typeof read === 'string' ? null : read
    if (document !== null) this.#read(document, name)
    else if (data.length > 0 && !(isLast && this.#isCutOff)) this.#faults.add(read as MeterFault)
    return this.#cut === null || data.length > EVENT_BYTES_MAX ? 'pass' : this.#cut(document, data, isLast)
  }

  longData(bytes: Buffer): void {
    this.#long ??= new ReplyJson(this.#reader.layout.event)
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
    return this.#reader.layout.dullEvents.some((start) => data.subarray(0, start.length).equals(start))
  }

  /** A defect in a reader must neither fail nor change the stream. */
  #read(document: ReplyDocument, name: string): void {
    if (document.overflow) this.#faults.add('too_large')
    try {
      this.#reader.readEvent(document, name)
    } catch {
      this.#faults.add('failed')
    }
  }
}
