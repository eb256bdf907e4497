import type {
  Delivered,
  Meter,
  Metered,
  MeterFault,
  ReplyDocument,
  ReplyReader,
  Shown,
  Stage,
} from './meter.ts'
import { ReplyJson, readJson } from './reply-json.ts'
import { EVENT_BYTES_MAX, type EventCut, type EventSink, SseEvents } from './sse-events.ts'

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

/** Meters a reply that is one JSON document. */
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
  /** The data of an event that is too long to be held. */
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
