import type { Borrowed } from '../kernel/memory.ts'
import { NO_USAGE, type Usage } from '../kernel/usage.ts'
import type { TextPlace } from './event-template.ts'
import type { Place } from './json-place.ts'
import { type DeliveredOutput, OutputText } from './output-text.ts'

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
  /** Upstream has said how much input there was. */
  readonly inputKnown: boolean
  /** Tools have run upstream: the model reads their results, and some cost by the call. */
  readonly toolsRan: boolean
  /** The model reasons, and not all of that is shown. */
  readonly reasons: boolean
  /** The object that the call has made, where the reply is of a kind that makes one. */
  readonly objectId?: string | null
}

export const NOTHING_SHOWN: Shown = { inputKnown: false, toolsRan: false, reasons: false }

/** Reads the usage in a reply from views of its chunks. A meter never throws and keeps no chunk. */
export interface Meter {
  readonly stage: Stage
  readonly shown: Shown
  /** Bytes of the model's answer, as far as a stream has shown it. Thinking is not among them. */
  readonly visibleBytes: number
  /** The reply's next bytes, without their content coding. */
  readonly write: (chunk: Borrowed) => void
  /** The reply ended: `whole`, or cut by upstream or the client. To be called once. */
  end(whole: boolean): Metered
}

export type MeterFault =
  /** A value was longer than the limits of the reader, and was not read. */
  | 'too_large'
  /** A document or an event is no JSON. */
  | 'not_json'
  /** The reply came in a content coding that is not known here. */
  | 'unreadable'
  /** The meter itself failed, and read nothing from then on. */
  | 'failed'

/** How long the audio is that a reply consists of, or that it transcribes. */
export interface AudioSeen {
  /** The length that is stated, or that the audio itself tells; null where neither does. */
  readonly milliseconds: number | null
  /** The audio is at least so long: the last time stamp of subtitles. */
  readonly leastMilliseconds: number
  /** Bytes of the audio that came with the reply. */
  readonly bytes: number
}

/** The result of a reader of one kind of reply. */
export interface Reading {
  /**
   * The usage that upstream stated. The units of a side that is not known are absent from all parts; calls of tools are
   * there in any case. Where a side is not known, the first part is that of the response's own model, maybe empty.
   */
  readonly usage: Usage
  /** Upstream said how much input there was, and that can be true. Else the input has to be counted. */
  readonly inputKnown: boolean
  /** Upstream said finally how much output there was, and that can be true. Else the output has to be counted. */
  readonly outputKnown: boolean
  /** The output that upstream last spoke of, finally or not: there was at least so much. */
  readonly outputTokensSeen: number
  /** The type or code of the error that upstream reported inside a reply that began well. */
  readonly error: string | null
  /** The id of the message, completion or response, which a later GET of the same object names too. */
  readonly objectId: string | null
  /** Images that a tool has begun to draw. Their tokens stand in the final usage alone. */
  readonly imagesBegun: number
  /** Only for replies about audio. */
  readonly audio?: AudioSeen
  /** Only for a batch: the file that has its results, where they are in a file. */
  readonly resultsFile?: string | null
  /** Only for a batch: the endpoint that its requests are for, where it says so. */
  readonly requestsFor?: string | null
}

export interface Metered extends Reading {
  readonly stage: Stage
  readonly shown: Shown
  readonly output: DeliveredOutput
  readonly faults: readonly MeterFault[]
}

/** The layout of a reply's bytes, known before the first of them. */
export interface ReplyLayout {
  /** The places that are read of a body, and of an event's data. All else is passed over. */
  readonly body: Place
  readonly event: Place
  /** Members of an event's data that say nothing and differ from event to event. */
  readonly noise: ReadonlySet<string>
  /** An event whose data begins with these bytes says nothing, and may be large. */
  readonly dullEvents: readonly Buffer[]
}

/** A body, or an event's data, that was read: `value` may have all of it, or no more than the layout says. */
export interface ReplyDocument {
  readonly value: unknown
  /** A member that is read is given twice: parsers differ on which value counts, `value` has the last. */
  readonly repeatsNames: boolean
  /** An array was too long to be kept, and ends early in `value`. */
  readonly overflow: boolean
}

/** Knows what one kind of reply means. Each call gets a reader of its own. */
export interface ReplyReader {
  readonly layout: ReplyLayout
  readonly stage: Stage
  readonly shown: Shown
  /**
   * An event of a stream. Answers where its text is, if it has one and reading the event once more would change
   * nothing but add that text again: events that follow and differ from it in nothing else are then not shown.
   */
  readEvent(document: ReplyDocument, name: string): TextPlace | null
  /** The mark `[DONE]`, which is no JSON. */
  readDone(): void
  /** Reads a reply that is one document, without the text that the model wrote. */
  readBody(document: ReplyDocument): void
  /** Reads the text that the model wrote in that document. Called only where it has to be counted, which is hardly ever. */
  readText(document: ReplyDocument): void
  reading(): Reading
}

/** The meter of a reply that says nothing about usage: audio, text, an error. */
export class SilentMeter implements Meter {
  readonly stage: Stage = 'content'
  readonly shown: Shown = NOTHING_SHOWN
  readonly visibleBytes = 0

  write(_chunk: Borrowed): void {}

  end(whole: boolean): Metered {
    return {
      usage: NO_USAGE,
      inputKnown: false,
      outputKnown: false,
      outputTokensSeen: 0,
      error: null,
      objectId: null,
      imagesBegun: 0,
      stage: whole ? 'over' : 'content',
      shown: NOTHING_SHOWN,
      output: new OutputText().delivered(),
      faults: [],
    }
  }
}

/** A meter around another: it shows what the inner meter sees of a reply while the reply runs. */
export abstract class MeterAround {
  protected inner: Meter

  constructor(inner: Meter) {
    this.inner = inner
  }

  get stage(): Stage {
    return this.inner.stage
  }

  get shown(): Shown {
    return this.inner.shown
  }

  get visibleBytes(): number {
    return this.inner.visibleBytes
  }
}

/**
 * Keeps a fault in our meters from breaking a reply: a meter that fails once is not asked again, and the fault is
 * told at the end. No reply of an upstream is known to make a meter fail.
 */
export class GuardedMeter extends MeterAround implements Meter {
  #failed = false

  write(chunk: Borrowed): void {
    try {
      this.inner.write(chunk)
    } catch {
      this.#fail()
    }
  }

  end(whole: boolean): Metered {
    try {
      const metered = this.inner.end(whole)
      return this.#failed ? { ...metered, faults: ['failed'] } : metered
    } catch {
      this.#fail()
      return { ...this.inner.end(whole), faults: ['failed'] }
    }
  }

  #fail(): void {
    this.#failed = true
    this.inner = new SilentMeter()
  }
}

export type SniffedForm = 'json' | 'events'

/** Bytes that may stand before a document or a stream: blanks, the ends of lines, and a byte order mark. */
const BEFORE: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d, 0xef, 0xbb, 0xbf])

/** The beginnings of lines of events; a line without a name is a comment. */
const EVENT_LINE = /^(?:data|event|id|retry)?:/
const EVENT_LINE_LENGTH = 'event:'.length

/** The meter of a reply that does not say what it is: its first bytes tell, and most such replies have no usage. */
export class SniffingMeter implements Meter {
  readonly #create: (form: SniffedForm | 'other') => Meter
  /** Null until the first bytes are there. */
  #meter: Meter | null = null
  #start = ''

  constructor(create: (form: SniffedForm | 'other') => Meter) {
    this.#create = create
  }

  get stage(): Stage {
    return this.#meter?.stage ?? 'content'
  }

  get shown(): Shown {
    return this.#meter?.shown ?? NOTHING_SHOWN
  }

  get visibleBytes(): number {
    return this.#meter?.visibleBytes ?? 0
  }

  write(chunk: Borrowed): void {
    if (this.#meter !== null) {
      this.#meter.write(chunk)
      return
    }
    let from = 0
    if (this.#start === '') while (from < chunk.length && BEFORE.has(chunk[from] ?? 0)) from++
    const read = this.#start.length
    this.#start += chunk.toString('latin1', from, from + EVENT_LINE_LENGTH - read)
    if (this.#start === '' || !this.#isEnough()) return
    this.#meter = this.#choose()
    if (read > 0) this.#meter.write(Buffer.from(this.#start.slice(0, read), 'latin1'))
    this.#meter.write(chunk.subarray(from))
  }

  end(whole: boolean): Metered {
    if (this.#meter === null) {
      this.#meter = this.#choose()
      this.#meter.write(Buffer.from(this.#start, 'latin1'))
    }
    return this.#meter.end(whole)
  }

  #isEnough(): boolean {
    return this.#start.length === EVENT_LINE_LENGTH || this.#start[0] === '{' || this.#start.includes(':')
  }

  #choose(): Meter {
    if (this.#start[0] === '{') return this.#create('json')
    return this.#create(EVENT_LINE.test(this.#start) ? 'events' : 'other')
  }
}
