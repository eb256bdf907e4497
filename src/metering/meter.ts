import { NO_USAGE, type Usage } from '../kernel/usage.ts'
import { type ReplyDocument, type Shape, SKIM_LIMITS, type Skimmed } from './json-shape.ts'
import { JsonSkim, skimWhole } from './json-skim.ts'
import { ambiguousNames } from './json-tokens.ts'
import { EVENT_BYTES_MAX, type EventCut, type EventSink, SseEvents } from './sse-events.ts'

/**
 * The progress of a reply.
 * - `content`: more content is expected.
 * - `closing`: the content may be complete, but the final figures have not come. Another block or item makes it
 *   `content` again.
 * - `over`: nothing relevant follows. A client that leaves now ends the call normally.
 */
export type Stage = 'content' | 'closing' | 'over'

/** What the client has seen of a reply so far. It decides how the call ends if the client leaves now. */
export interface Shown {
  readonly inputKnown: boolean
  /** Whether tools have run upstream. The model reads their results, and some charge per use. */
  readonly toolsRan: boolean
  readonly reasons: boolean
  readonly objectId: string | null
}

export const NOTHING_SHOWN: Shown = {
  inputKnown: false,
  toolsRan: false,
  reasons: false,
  objectId: null,
}

/** Reads the usage in a reply from views of its chunks. Never throws, and does not retain chunks. */
export interface Meter {
  readonly stage: Stage
  readonly shown: Shown
  readonly hasBegun: boolean
  /** Bytes of the answer that a stream has shown, without thinking. */
  readonly visibleBytes: number
  /** Reads the next decoded bytes. Returns the bytes for the client, from which injected usage is removed. */
  readonly write: (chunk: Buffer) => Buffer | null
  remainder?(): Buffer | null
  /** Call it once, with `whole` false if upstream or the client cut the reply. */
  end(whole: boolean): Metered
}

/** UTF-8 bytes that the model wrote: text and refusals, visible thinking, and tool input. */
export type Delivered = ReturnType<typeof nothingDelivered>

export type OutputKind = keyof Delivered

export function nothingDelivered() {
  return { text: 0, thinking: 0, tool: 0 }
}

export function deliveredBytes({ text, thinking, tool }: Delivered): number {
  return text + thinking + tool
}

export interface AudioSeen {
  readonly milliseconds: number | null
  /** The minimum length of the audio: the last timestamp of subtitles. */
  readonly minimumMilliseconds: number
  /** Size of the audio in the reply, and its first bytes, which may state the bit rate. */
  readonly bytes: number
  readonly head: Buffer
}

export const NO_AUDIO: AudioSeen = {
  milliseconds: null,
  minimumMilliseconds: 0,
  bytes: 0,
  head: Buffer.alloc(0),
}

export interface Reading {
  /** The usage as upstream states it. A part without a model belongs to the response's own model. */
  readonly usage: Usage
  /** Whether upstream stated a plausible amount of input. If not, the input is estimated. */
  readonly inputKnown: boolean
  /** Whether upstream stated a plausible final amount of output. If not, the output is estimated. */
  readonly outputKnown: boolean
  /** The last amount of output that upstream stated, final or not. It is a lower bound. */
  readonly outputTokensSeen: number
  readonly error: string | null
  /** Id of the message, completion or response, which a later GET of the object shows too. */
  readonly objectId: string | null
  /** Images that a tool has begun. Their tokens appear only in the final usage. */
  readonly imagesBegun: number
  readonly reasoningTokens: number | null
  readonly containerIds: readonly string[]
  readonly audio: AudioSeen | null
  /** For a batch: the file with its results, and the endpoint of its requests, if upstream states them. */
  readonly resultsFile: string | null
  readonly requestsFor: string | null
}

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
  audio: null,
  resultsFile: null,
  requestsFor: null,
}

export interface Metered extends Reading {
  readonly stage: Stage
  readonly shown: Shown
  readonly output: Delivered
  /** `unreadable`: its coding is unknown. `failed`: a defect of a reader. */
  readonly fault: 'unreadable' | 'failed' | null
}

export interface ReplyLayout {
  /** The parts to read of a body or event that is too long to be parsed whole. */
  readonly body: Shape
  readonly event: Shape
}

/** Interprets one kind of reply. Each call has its own reader. */
export interface ReplyReader {
  readonly layout: ReplyLayout
  readonly stage: Stage
  readonly shown: Shown
  readEvent(document: ReplyDocument, name: string): void
  /** Handles the marker `[DONE]`, which is not JSON. */
  readDone?(): void
  readBody(document: ReplyDocument): void
  reading(): Reading
}

/** Documents up to this size are parsed whole; larger ones are skimmed for the members that a reader names. */
const PARSED_BYTES_MAX = 256 * 1024
/** Texts in pieces are buffered up to this size, then skimmed: garbage of larger copies costs 500 µs per MB. */
const HELD_BYTES_MAX = 32 * 1024

const BYTE_ORDER_MARK = '\ufeff'

/** Null if the text is not JSON. */
export function readJson(shape: Shape, text: Buffer): ReplyDocument | null {
  const parsed = text.length > PARSED_BYTES_MAX ? null : parse(text.toString())
  // The skim accepts unescaped control characters, which some servers write, in strings that it does not read.
  return parsed ?? documentOf(skimWhole(text, shape, SKIM_LIMITS.replyDepthMax))
}

export class ReplyJson {
  readonly #shape: Shape
  #pieces: Buffer[] = []
  #bytes = 0
  /** Reads the text when it becomes too long to buffer. */
  #skim: JsonSkim | null = null

  constructor(shape: Shape) {
    this.#shape = shape
  }

  write(piece: Buffer): void {
    this.#bytes += piece.length
    if (this.#skim === null && this.#bytes <= HELD_BYTES_MAX) this.#pieces.push(Buffer.from(piece))
    else {
      if (this.#skim === null) {
        this.#skim = skimOf(this.#shape)
        for (const held of this.#pieces) this.#skim.write(held)
        this.#pieces = []
      }
      this.#skim.write(piece)
    }
  }

  /** `whole` false: the text was cut off, and what it has is read. */
  end(whole = true): ReplyDocument | null {
    if (this.#skim !== null) return documentOf(whole ? this.#skim.end() : this.#skim.endCut())
    const pieces = this.#pieces
    this.#pieces = []
    const text = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
    return readJson(this.#shape, text) ?? (whole ? null : this.#readCut(text))
  }

  #readCut(text: Buffer): ReplyDocument | null {
    const skim = skimOf(this.#shape)
    skim.write(text)
    return documentOf(skim.endCut())
  }
}

function skimOf(shape: Shape): JsonSkim {
  return new JsonSkim(shape, { depthMax: SKIM_LIMITS.replyDepthMax })
}

/** Only documents with usage are checked for duplicate names. */
function parse(written: string): ReplyDocument | null {
  const text = written.startsWith(BYTE_ORDER_MARK) ? written.slice(1) : written
  try {
    const value: unknown = JSON.parse(text)
    return { value, isWhole: true, overflow: false, repeatsNames: () => ambiguousNames(text).size > 0 }
  } catch {
    return null
  }
}

function documentOf(skimmed: Skimmed): ReplyDocument | null {
  if (skimmed.kind === 'unreadable') return null
  const { value, duplicates, nestedDuplicates: nested, overflow } = skimmed
  return { value, isWhole: false, overflow, repeatsNames: () => duplicates.length + nested.length > 0 }
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
      fault: null,
    }
  }
}

/** A defect in the reader must neither fail nor change the reply: usage that was not read is estimated. */
class ReaderMeter {
  protected readonly reader: ReplyReader
  readonly #output: Delivered
  #hasFailed = false
  hasBegun = false

  constructor(reader: ReplyReader, output: Delivered) {
    this.reader = reader
    this.#output = output
  }

  get stage(): Stage {
    return this.reader.stage
  }

  get shown(): Shown {
    return this.reader.shown
  }

  get visibleBytes(): number {
    return this.#output.text + this.#output.tool
  }

  protected catchDefects(readPart: () => void): void {
    try {
      readPart()
    } catch {
      this.#hasFailed = true
    }
  }

  end(): Metered {
    let reading = NOTHING_STATED
    this.catchDefects(() => {
      reading = this.reader.reading()
    })
    const metered = toMetered(reading, this.reader, this.#output)
    return this.#hasFailed ? { ...metered, fault: 'failed' } : metered
  }
}

function toMetered(reading: Reading, { stage, shown }: ReplyReader, output: Delivered): Metered {
  return { ...reading, stage, shown, output, fault: null }
}

export function meterDocument(reader: ReplyReader, output: Delivered, document: ReplyDocument): Metered {
  reader.readBody(document)
  return toMetered(reader.reading(), reader, output)
}

/** The meter of a JSON reply. Nothing is known before its end, or before it is cut off. */
export class BodyMeter extends ReaderMeter implements Meter {
  readonly #json = new ReplyJson(this.reader.layout.body)

  write(chunk: Buffer): Buffer {
    this.catchDefects(() => this.#json.write(chunk))
    return chunk
  }

  override end(whole = true): Metered {
    this.catchDefects(() => {
      const document = this.#json.end(whole)
      if (document !== null) this.reader.readBody(document)
    })
    const metered = super.end()
    const { inputKnown, outputKnown, usage } = metered
    // A final state without its usage would mean that nothing was used.
    return whole || (inputKnown && outputKnown)
      ? metered
      : { ...metered, usage: { ...usage, stopReason: null } }
  }
}

export class EventMeter extends ReaderMeter {
  read(document: ReplyDocument): void {
    this.hasBegun = true
    this.catchDefects(() => this.reader.readEvent(document, ''))
  }
}

/** Decides which part of an event the client gets. `document` is null if the data is not JSON. */
export type CutEvent = (document: ReplyDocument | null, data: Buffer, isLast: boolean) => EventCut

const DONE = Buffer.from('[DONE]')

/** The meter of an event stream. It splits and parses once; removing injected usage shares the result. */
export class StreamMeter extends ReaderMeter implements Meter, EventSink {
  readonly #cut: CutEvent | null
  readonly #events = new SseEvents(this)
  #long: ReplyJson | null = null
  #remainder: Buffer | null = null

  constructor(reader: ReplyReader, output: Delivered, cut: CutEvent | null = null) {
    super(reader, output)
    this.#cut = cut
  }

  write(chunk: Buffer): Buffer | null {
    const forClient = this.#events.write(chunk)
    return this.#cut === null ? chunk : forClient
  }

  remainder(): Buffer | null {
    return this.#remainder
  }

  override end(): Metered {
    const forClient = this.#events.end()
    if (this.#cut !== null) this.#remainder = forClient
    return super.end()
  }

  event(name: string, data: Buffer, isLast: boolean): EventCut {
    this.hasBegun = true
    if (data.equals(DONE)) {
      this.catchDefects(() => this.reader.readDone?.())
      return 'pass'
    }
    let cut: EventCut = 'pass'
    this.catchDefects(() => {
      const document = readJson(this.reader.layout.event, data)
      if (this.#cut !== null && data.length <= EVENT_BYTES_MAX) cut = this.#cut(document, data, isLast)
      if (document !== null) this.reader.readEvent(document, name)
    })
    return cut
  }

  longData(bytes: Buffer): void {
    this.catchDefects(() => {
      this.#long ??= new ReplyJson(this.reader.layout.event)
      this.#long.write(bytes)
    })
  }

  longEvent(name: string): void {
    this.hasBegun = true
    const long = this.#long
    this.#long = null
    this.catchDefects(() => {
      const document = long?.end() ?? null
      if (document !== null) this.reader.readEvent(document, name)
    })
  }
}
