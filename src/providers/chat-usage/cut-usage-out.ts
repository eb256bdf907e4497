import { EventShape, type JsonPath } from '../../metering/event-template.ts'
import { SseLines } from '../../metering/sse-scanner.ts'
import { dataStart, judgeEvent, judgeLine, judgeUnfinished, type Verdict } from './judge-event.ts'

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const USAGE = Buffer.from('usage')
/** A letter of a name may be written as an escape; the letters of `usage` are all below U+0080. */
const ESCAPED_LETTER = Buffer.from('\\u00')

/** The line at hand began in bytes that have been given on already. */
const BEGUN = -1
const NONE = -1

export const EVENT_BYTES_MAX = 4 * 1024 * 1024

const NO_WORDS = new DataView(new ArrayBuffer(0))

/** After so many shapes in a row that fitted no event, the events of this stream are taken to have no common shape. */
const FRUITLESS_MAX = 8

/** The texts of a chunk, and the padding that hides their lengths: all that differs from one chunk to the next. */
function holeAt(at: JsonPath): 'text' | 'noise' | null {
  if (at[0] === 'choices' && at[2] === 'delta') return 'text'
  return at.length === 1 && at[0] === 'obfuscation' ? 'noise' : null
}

/** How many events of a stream were changed, and how. */
export interface CutTally {
  readonly eventsRemoved: number
  readonly eventsCut: number
  /** Events longer than the limit, given on as they were: the client may have seen usage it did not ask for. */
  readonly eventsTooLong: number
}

/**
 * Takes the usage out of a chat stream that upstream added because the gateway asked for it, whatever pieces the bytes come in.
 *
 * Everything but usage passes byte for byte. Comments and empty lines pass at once, the lines of an event together when
 * it is complete; sooner, if its data cannot be an object. At most one event is held, an event that is too long is not, and
 * a chunk in gives at most one chunk out: a slice of it where nothing was changed.
 */
export class UsageCutter {
  readonly #eventBytesMax: number
  #held: HeldEvent | null = null
  /** Where in the bytes at hand the current line begins. */
  #lineStart = 0
  /** Where the event at hand begins, whose lines are not given on yet. */
  #eventStart = NONE
  /** How many lines of the event at hand are complete, and where the last of them ends. */
  #lineCount = 0
  #lineEnd = NONE
  /** All lines up to the next empty one pass. */
  #passing = false
  /** The last bytes were an event that was removed: if they end in CR, a LF behind belongs to the event and goes as well. */
  #hasRemovedLast = false
  readonly #lines = new SseLines()
  #ended = false
  /** Where in the bytes at hand the next mention of usage and the next escaped letter are. */
  #usageAt = NONE
  #escapeAt = NONE
  /** The cuts to be made in the bytes at hand: start, end, start, end … in order. */
  #cuts: number[] = []
  /** The last event that was cut in one place: most events behind it are like it, and are cut without being judged. */
  #shape: EventShape | null = null
  #shapeCutBytes = 0
  /** A view of the bytes at hand. */
  #words: DataView = NO_WORDS
  #fruitless = 0
  #tally = { eventsRemoved: 0, eventsCut: 0, eventsTooLong: 0 }

  constructor(eventBytesMax: number = EVENT_BYTES_MAX) {
    this.#eventBytesMax = eventBytesMax
  }

  get tally(): CutTally {
    return { ...this.#tally }
  }

  /** The bytes of the stream that can be given on now. */
  write(chunk: Buffer): Buffer | null {
    if (this.#ended) throw new Error('UsageCutter: write after end')
    if (chunk.length === 0) return null
    const bytes = this.#held === null ? chunk : this.#held.append(chunk)
    this.#usageAt = NONE
    this.#escapeAt = NONE
    let from = this.#enter(bytes, bytes.length - chunk.length)
    this.#words = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    for (;;) {
      from = this.#cutKnown(bytes, from)
      const end = this.#lines.end(bytes, from)
      if (end === bytes.length) break
      from = this.#lines.behind(bytes, end + 1)
      this.#endLine(bytes, end, from)
    }
    return this.#leave(bytes)
  }

  /** The rest of the stream when it is over, be it whole or cut. */
  end(): Buffer | null {
    this.#ended = true
    if (this.#held === null) return null
    const bytes = this.#held.bytes()
    this.#held = null
    this.#carryOut(judgeUnfinished(bytes, 0, bytes.length), 0, bytes.length)
    return this.#kept(bytes, bytes.length)
  }

  /** The meaning of a chunk's first bytes depends on the last bytes of the chunk before. Answers where to go on. */
  #enter(bytes: Buffer, first: number): number {
    const from = this.#lines.enter(bytes, first)
    if (from > first) {
      if (this.#hasRemovedLast && bytes[first] === LF) this.#cuts.push(first, from)
      this.#lineStart = from
    }
    if (this.#lines.hasFalseMark) this.#lineStart = BEGUN
    this.#hasRemovedLast = false
    return from
  }

  /** Cuts the events at `from` that are like the last one. Answers where the first event begins that is not. */
  #cutKnown(bytes: Buffer, from: number): number {
    if (this.#passing || this.#eventStart !== NONE || this.#lineStart !== from) return from
    let start = from
    for (;;) {
      const behind = this.#cutLike(bytes, start)
      if (behind < 0) break
      start = this.#lines.behind(bytes, behind)
    }
    this.#lineStart = start
    return start
  }

  /** Cuts the event at `start` if it is like the last one. Answers the offset behind it, or -1. */
  #cutLike(bytes: Buffer, start: number): number {
    const shape = this.#shape
    if (shape === null) return -1
    const behind = shape.match(bytes, this.#words, start)
    if (behind < 0 || shape.hasCodes || behind - start > this.#eventBytesMax) return -1
    this.#cuts.push(shape.markedAt, shape.markedAt + this.#shapeCutBytes)
    this.#tally.eventsCut++
    this.#fruitless = 0
    return behind
  }

  /** Remembers the shape and the cut of an event which stands at bytes[start..next). */
  #learn(bytes: Buffer, start: number, next: number, cuts: readonly number[]): void {
    const [from, to] = cuts
    if (from === undefined || to === undefined || cuts.length > 2 || this.#fruitless === FRUITLESS_MAX) return
    this.#fruitless++
    this.#shapeCutBytes = to - from
    const shape = EventShape.of(bytes.subarray(start, next), holeAt, from - start)
    const hasHole = shape?.gaps.some((gap) => start + gap.to > from && start + gap.from < to) === true
    this.#shape = hasHole ? null : shape
  }

  /** The line at hand ends at `end`, and the next one begins at `next`. */
  #endLine(bytes: Buffer, end: number, next: number): void {
    const start = this.#lineStart
    this.#lineStart = next
    let removed = false
    if (end === start) {
      if (this.#passing) this.#passing = false
      else if (this.#eventStart !== NONE) removed = this.#endEvent(bytes, end, next)
    } else if (!this.#passing && start !== BEGUN) {
      if (this.#eventStart === NONE && bytes[start] !== COLON) this.#beginEvent(start)
      this.#lineCount++
      this.#lineEnd = end
    }
    if (next === bytes.length) this.#hasRemovedLast = removed
  }

  #beginEvent(start: number): void {
    this.#eventStart = start
    this.#lineCount = 0
  }

  /** Answers whether the event was removed. */
  #endEvent(bytes: Buffer, end: number, next: number): boolean {
    const start = this.#eventStart
    this.#eventStart = NONE
    if (end - start > this.#eventBytesMax) {
      this.#tally.eventsTooLong++
      return false
    }
    // An event that came in two chunks may be like the others too.
    if (this.#cutLike(bytes, start) >= 0 || !this.#mentionsUsage(bytes, start, end)) return false
    const verdict =
      this.#lineCount === 1 ? judgeLine(bytes, start, this.#lineEnd) : judgeEvent(bytes, start, end)
    this.#carryOut(verdict, start, next)
    if (verdict.kind === 'cut' && this.#lineCount === 1) this.#learn(bytes, start, next, verdict.cuts)
    return verdict.kind === 'remove'
  }

  /** One search serves all events up to the place that it finds. */
  #mentionsUsage(bytes: Buffer, start: number, end: number): boolean {
    if (this.#usageAt < start) this.#usageAt = indexOrEnd(bytes, USAGE, start)
    if (this.#usageAt < end) return true
    if (this.#escapeAt < start) this.#escapeAt = indexOrEnd(bytes, ESCAPED_LETTER, start)
    return this.#escapeAt < end
  }

  #carryOut(verdict: Verdict, start: number, end: number): void {
    if (verdict.kind === 'remove') {
      this.#tally.eventsRemoved++
      this.#cuts.push(start, end)
    } else if (verdict.kind === 'cut') {
      this.#tally.eventsCut++
      for (const at of verdict.cuts) this.#cuts.push(at)
    }
  }

  /** The chunk is used up. The held event is from now on all there is of the bytes at hand. */
  #leave(bytes: Buffer): Buffer | null {
    const { length } = bytes
    const start = this.#lineStart
    const isBegun = start !== BEGUN && start < length
    if (isBegun && !this.#passing && this.#eventStart === NONE && bytes[start] !== COLON)
      this.#beginEvent(start)
    if (this.#eventStart !== NONE && this.#mayPass(bytes)) {
      this.#passing = true
      this.#eventStart = NONE
    }
    const from = this.#eventStart
    if (from === NONE) {
      this.#held = null
      this.#lineStart = start === length ? 0 : BEGUN
      return this.#kept(bytes, length)
    }
    if (from > 0 || this.#held === null) this.#held = new HeldEvent(bytes.subarray(from))
    this.#eventStart = 0
    this.#lineStart -= from
    this.#lineEnd -= from
    return this.#kept(bytes, from)
  }

  /** Whether the event at hand passes whatever the rest of it is. */
  #mayPass(bytes: Buffer): boolean {
    const start = this.#eventStart
    if (bytes.length - start > this.#eventBytesMax) {
      this.#tally.eventsTooLong++
      return true
    }
    const content = dataStart(bytes, start, bytes.length)
    return content >= 0 && isNoObject(bytes[content])
  }

  /** The bytes up to `end` without the cuts. */
  #kept(bytes: Buffer, end: number): Buffer | null {
    const cuts = this.#cuts
    if (cuts.length === 0) {
      if (end === bytes.length) return bytes
      return end === 0 ? null : bytes.subarray(0, end)
    }
    this.#cuts = []
    let length = end
    for (let i = 0; i < cuts.length; i += 2) length -= (cuts[i + 1] as number) - (cuts[i] as number)
    if (length === 0) return null
    const out = Buffer.allocUnsafe(length)
    let from = 0
    let to = 0
    for (let i = 0; i < cuts.length; i += 2) {
      to += bytes.copy(out, to, from, cuts[i])
      from = cuts[i + 1] as number
    }
    bytes.copy(out, to, from, end)
    return out
  }
}

/** Data of an event is no object if its first byte is neither a brace nor a blank. */
function isNoObject(byte: number | undefined): boolean {
  return byte !== undefined && byte !== 0x7b && byte !== 0x20 && byte !== 0x09 && byte !== LF && byte !== CR
}

/** Like indexOf, but answers the end for a text that is not found: then no event searches for it again. */
function indexOrEnd(bytes: Buffer, what: number | Buffer, from: number): number {
  const at = bytes.indexOf(what, from)
  return at < 0 ? bytes.length : at
}

/** The least memory that is reserved for an event that is held. */
const HELD_BYTES_MIN = 1024

/**
 * The beginning of an event whose end has not arrived: a copy, because a slice would keep the whole buffer of the
 * socket alive, and a sender of single bytes could have us keep thousands of them.
 */
class HeldEvent {
  #bytes: Buffer
  #length: number

  constructor(bytes: Buffer) {
    this.#bytes = Buffer.allocUnsafe(Math.max(HELD_BYTES_MIN, bytes.length * 2))
    this.#length = bytes.copy(this.#bytes)
  }

  /** All bytes so far. Once slices of them were given away, nothing may be appended. */
  bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  append(chunk: Buffer): Buffer {
    const length = this.#length + chunk.length
    if (length > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(length, this.#bytes.length * 2))
      this.#bytes.copy(grown, 0, 0, this.#length)
      this.#bytes = grown
    }
    chunk.copy(this.#bytes, this.#length)
    this.#length = length
    return this.bytes()
  }
}
