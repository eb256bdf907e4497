import { type Borrowed, viewOf } from '../kernel/memory.ts'
import { type EventTemplate, learnTemplate } from './event-template.ts'
import type { Place } from './json-place.ts'
import type { UnreadableJson } from './json-scan.ts'
import { JsonWalker } from './json-walker.ts'
import type { Meter, Metered, MeterFault, ReplyDocument, ReplyReader, Shown, Stage } from './meter.ts'
import { type DeliveredOutput, LateOutput, type OutputText } from './output-text.ts'
import { SseScanner, type SseSink } from './sse-scanner.ts'

const TOLERANT = { tolerant: true }
const TOO_LARGE: ReadonlySet<UnreadableJson> = new Set(['too_large', 'too_much', 'too_deep'])

/** Reads one JSON text of a reply after the other, each in any number of pieces. */
class ReplyJson {
  readonly #place: Place
  /** Null until the first text that is not small and whole in its first piece. */
  #walker: JsonWalker | null = null
  #small: SmallJson | null = null
  #began = false

  constructor(place: Place) {
    this.#place = place
  }

  write(bytes: Buffer): void {
    if (!this.#began) {
      this.#began = true
      this.#small = parseSmall(bytes)
      if (this.#small !== null) return
    }
    this.#walker ??= new JsonWalker(this.#place, TOLERANT)
    // Where more follows the small text, the whole text has to be walked, from its beginning.
    if (this.#small !== null) this.#walker.write(Buffer.from(this.#small.text))
    this.#small = null
    this.#walker.write(bytes)
  }

  /** The document that was written since the last end. */
  end(): ReplyDocument | MeterFault {
    const small = this.#small
    const began = this.#began
    this.#small = null
    this.#began = false
    if (small !== null) return { value: small.value, repeatsNames: false, overflow: false }
    const scan = began ? this.#walker?.end() : undefined
    if (scan === undefined) return 'not_json'
    if (scan.kind === 'unreadable') return TOO_LARGE.has(scan.reason) ? 'too_large' : 'not_json'
    const { value, duplicates, overflow } = scan.picked
    return { value, repeatsNames: duplicates.length > 0, overflow }
  }
}

/** Reads the values that `place` selects from a JSON text that is whole. */
export function readJson(place: Place, text: Buffer): ReplyDocument | MeterFault {
  const json = new ReplyJson(place)
  json.write(text)
  return json.end()
}

/** The meter of a reply that is one JSON document. Its usage is known when the document is whole. */
export class BodyMeter implements Meter {
  readonly #reader: ReplyReader
  readonly #output: OutputText
  readonly #json: ReplyJson

  constructor(reader: ReplyReader, output: OutputText) {
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
  readonly visibleBytes = 0

  write(chunk: Borrowed): void {
    this.#json.write(viewOf(chunk))
  }

  end(whole: boolean): Metered {
    const document = this.#json.end()
    if (typeof document === 'string') return this.#metered(whole ? [document] : [], this.#output.delivered())
    this.#reader.readBody(document)
    // The text that the model wrote is put together when it is asked for.
    const output = new LateOutput(() => {
      this.#reader.readText(document)
      return this.#output.delivered()
    })
    return this.#metered(document.overflow ? ['too_large'] : [], output)
  }

  #metered(faults: readonly MeterFault[], output: DeliveredOutput): Metered {
    return { ...this.#reader.reading(), stage: this.stage, shown: this.shown, output, faults }
  }
}

const DONE = Buffer.from('[DONE]')

/** After so many templates in a row that matched no event, no more templates are made for this stream. */
const FRUITLESS_MAX = 8

/** The meter of a reply of server-sent events. */
export class StreamMeter implements Meter, SseSink {
  readonly #reader: ReplyReader
  readonly #output: OutputText
  readonly #json: ReplyJson
  readonly #scanner = new SseScanner(this)
  readonly #faults = new Set<MeterFault>()
  /**
   * The template of the event that was read last, if further events that differ from it in their text alone mean
   * nothing else. It holds until another event comes, since another event may change what such events mean.
   */
  #template: EventTemplate | null = null
  #fruitless = 0
  /** The length of the event's data so far, and its first bytes, by which `[DONE]` and dull events are known. */
  #dataLength = 0
  readonly #start: Buffer
  #isDull = false
  /** The event at hand may be cut off, so that it need not be JSON. */
  #isLast = false

  constructor(reader: ReplyReader, output: OutputText) {
    this.#reader = reader
    this.#output = output
    this.#json = new ReplyJson(reader.layout.event)
    const dullLengths = reader.layout.dullEvents.map((start) => start.length)
    this.#start = Buffer.alloc(Math.max(DONE.length, ...dullLengths))
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
    if (this.#dataLength < this.#start.length) this.#readStart(chunk, from, to)
    this.#dataLength += to - from
    if (!this.#isDull) this.#json.write(chunk.subarray(from, to))
  }

  event(name: string, raw: Buffer | null): void {
    const length = this.#dataLength
    const isDull = this.#isDull
    this.#dataLength = 0
    this.#isDull = false
    const document = this.#json.end()
    if (isDull) return
    this.#template = null
    if (length === DONE.length && this.#start.subarray(0, length).equals(DONE)) this.#reader.readDone()
    else if (typeof document !== 'string') this.#readEvent(document, name, raw)
    else if (length > 0 && !this.#isLast) this.#faults.add(document)
  }

  #readStart(chunk: Buffer, from: number, to: number): void {
    const { dullEvents } = this.#reader.layout
    chunk.copy(this.#start, this.#dataLength, from, to)
    const start = this.#start.subarray(0, this.#dataLength + to - from)
    this.#isDull = dullEvents.some((dull) => start.subarray(0, dull.length).equals(dull))
  }

  #readEvent(document: ReplyDocument, name: string, raw: Buffer | null): void {
    if (document.overflow) this.#faults.add('too_large')
    const place = this.#reader.readEvent(document, name)
    if (place === null || raw === null || this.#fruitless === FRUITLESS_MAX) return
    this.#fruitless++
    this.#template = learnTemplate(raw, place, this.#reader.layout.noise)
  }
}

/** Up to this size parsing a text at once and counting its names is quicker than walking it: for 2 kB, 9 µs instead of 11. */
const SMALL_BYTES = 4096
const [SPACE, QUOTE, COLON, BACKSLASH, OPENING_BRACE, CLOSING_BRACE] = [0x20, 0x22, 0x3a, 0x5c, 0x7b, 0x7d]

/** A JSON text that was parsed at once. */
export interface SmallJson {
  readonly text: string
  readonly value: unknown
}

/**
 * Parses an object of few bytes that is whole in this chunk. Null for every text that has to be looked at more
 * closely: one that is no object, is not whole, is no JSON, has escaped letters, or may name a member twice.
 */
export function parseSmall(chunk: Buffer): SmallJson | null {
  if (chunk.length > SMALL_BYTES || !seemsWhole(chunk)) return null
  const text = chunk.toString('utf8')
  if (mayConfuse(text)) return null
  try {
    const value: unknown = JSON.parse(text)
    // The text has at least the names of its value, and at most as many as `namesAtMost` counts: if both numbers are
    // the same, no name is given twice.
    return countNames(value) === namesAtMost(chunk) ? { text, value } : null
  } catch {
    return null
  }
}

function seemsWhole(chunk: Buffer): boolean {
  let last = chunk.length - 1
  while (last > 0 && (chunk[last] as number) <= SPACE) last--
  return chunk[0] === OPENING_BRACE && chunk[last] === CLOSING_BRACE
}

/**
 * Whether a name may be written with escapes. V8 (13.6) takes such a name for one with a backslash that stood in the same
 * place before: the second of `{"\"":0,"\"":0}`, once it has seen `{"\"":0,"\\":0}`. No upstream is known to write a
 * letter that way.
 */
function mayConfuse(text: string): boolean {
  return text.includes('\\u00')
}

function countNames(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  let names = 0
  if (Array.isArray(value)) {
    for (const element of value) names += countNames(element)
    return names
  }
  // Objects that JSON.parse makes have no names to be found here but their own.
  for (const name in value) names += 1 + countNames((value as Readonly<Record<string, unknown>>)[name])
  return names
}

/**
 * How many colons stand behind a quote that may close a name, white space between them or not. Every name has such a
 * colon; so does a string that begins with a colon. A quote behind a single backslash is within a string, as in the
 * arguments of a tool.
 */
function namesAtMost(bytes: Buffer): number {
  let names = 0
  for (let i = bytes.indexOf(COLON); i > 0; i = bytes.indexOf(COLON, i + 1)) {
    let before = i - 1
    while ((bytes[before] as number) <= SPACE) before--
    if (bytes[before] !== QUOTE) continue
    if (bytes[before - 1] !== BACKSLASH || bytes[before - 2] === BACKSLASH) names++
  }
  return names
}
