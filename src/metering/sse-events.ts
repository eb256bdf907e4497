const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const COLON = 0x3a
const LINE_FEED = Buffer.from('\n')
const DATA = Buffer.from('data')
const NAME = Buffer.from('event')

/** Events up to this size are parsed whole. Longer ones are skimmed as they arrive and always pass unchanged. */
export const EVENT_BYTES_MAX = 256 * 1024

/** The part of an event that the client gets: all, none, or its data without these ranges (start, end, start, …). */
export type EventCut = 'pass' | 'remove' | readonly number[]

export interface EventSink {
  /** Called with each event. `data` is a view; do not retain it. `isLast`: the stream ended before its blank line. */
  event(name: string, data: Buffer, isLast: boolean): EventCut
  /** Called with the next bytes of an event that is longer than EVENT_BYTES_MAX. They are a view; do not retain it. */
  longData(bytes: Buffer): void
  longEvent(name: string): void
}

/** Matches an event that was cut before its data, perhaps within a field name. */
const LEADS_TO_DATA =
  /^(?:(?:event|id|retry)?:[^\r\n]*[\r\n]+)*(?:(?:event|id|retry)?:[^\r\n]*|d(?:a(?:ta?)?)?|e(?:v(?:e(?:nt?)?)?)?|id?|r(?:e(?:t(?:ry?)?)?)?)?$/
const NOTHING = Buffer.alloc(0)

const NONE = -1
/** The start of a line that began in bytes that were already passed on. */
const BEGUN = -1

/**
 * Splits a stream of server-sent events by the rules of the HTML standard: LF, CRLF and CR end a line. There are two
 * differences: an event without its final blank line counts, as it does for the SDKs, and a byte order mark, which no
 * server sends, hides the first line.
 *
 * If the sink edits events, `write` returns the bytes to pass on: comments and blank lines at once, the lines of an
 * event when it is complete. At most one event is buffered, and none longer than EVENT_BYTES_MAX. A CR at the end of a
 * chunk waits for the next byte, which may be its LF.
 */
export class SseEvents {
  readonly #sink: EventSink
  /** A copy of the unfinished event, and how much of it was searched for line ends. */
  #held: HeldBytes | null = null
  #searched = 0
  /** Offsets in the current bytes: of the current line and of the event. */
  #lineStart = 0
  #eventStart = NONE
  /** Set if the current event is too long to buffer, so that its lines pass. `isData`: the current line is its data. */
  #long: { readonly name: string; isData: boolean } | null = null
  /** The ranges to leave out of the current bytes: start, end, start, end … */
  #cuts: number[] = []

  constructor(sink: EventSink) {
    this.#sink = sink
  }

  write(chunk: Buffer): Buffer | null {
    if (chunk.length === 0) return null
    const bytes = this.#held === null ? chunk : this.#held.append(chunk)
    const end = bytes[bytes.length - 1] === CR ? bytes.length - 1 : bytes.length
    this.#split(bytes, end)
    return this.#keepUnfinished(bytes, end)
  }

  /** Returns the rest of the stream. */
  end(): Buffer | null {
    const bytes = this.#held?.bytes() ?? null
    this.#held = null
    if (bytes !== null) this.#split(bytes, bytes.length)
    if (this.#long !== null) this.#sink.longEvent(this.#long.name)
    this.#long = null
    if (bytes === null) return null
    if (this.#eventStart !== NONE) this.#endEvent(bytes, bytes.length, bytes.length, true)
    return this.#withoutCuts(bytes, bytes.length)
  }

  #split(bytes: Buffer, end: number): void {
    const breaks = new LineBreaks(bytes)
    let from = this.#searched
    for (;;) {
      const at = Math.min(breaks.next(from), end)
      if (this.#long?.isData === true) this.#sink.longData(bytes.subarray(from, at))
      if (at === end) return
      from = breaks.after(at)
      this.#endLine(bytes, at, from)
    }
  }

  /** The next line begins at `next`. */
  #endLine(bytes: Buffer, end: number, next: number): void {
    const start = this.#lineStart
    this.#lineStart = next
    if (end !== start) {
      if (this.#long !== null) this.#long.isData = false
      else this.#beginEvent(bytes, start)
    } else if (this.#long !== null) {
      this.#sink.longEvent(this.#long.name)
      this.#long = null
    } else if (this.#eventStart !== NONE) this.#endEvent(bytes, end, next, false)
  }

  /** A comment between two events belongs to neither. */
  #beginEvent(bytes: Buffer, line: number): void {
    if (this.#eventStart === NONE && line !== BEGUN && bytes[line] !== COLON) this.#eventStart = line
  }

  /** Handles an event whose lines end at `end`, and whose blank line ends before `next`. */
  #endEvent(bytes: Buffer, end: number, next: number, isLast: boolean): void {
    const start = this.#eventStart
    const lines = bytes.subarray(start, end)
    this.#eventStart = NONE
    const { name, data, dataFrom } = readEvent(lines)
    if (data === null && !(isLast && LEADS_TO_DATA.test(lines.toString('latin1')))) return
    const cut = this.#sink.event(name, data ?? NOTHING, isLast)
    if (cut === 'remove') this.#cuts.push(start, next)
    else if (cut !== 'pass' && dataFrom !== NONE) for (const at of cut) this.#cuts.push(start + dataFrom + at)
  }

  #keepUnfinished(bytes: Buffer, end: number): Buffer | null {
    const line = this.#lineStart
    if (line < end && this.#long === null) this.#beginEvent(bytes, line)
    if (this.#eventStart !== NONE && end - this.#eventStart > EVENT_BYTES_MAX) this.#beginLong(bytes, end)
    const isOpen = this.#eventStart !== NONE
    const from = isOpen ? this.#eventStart : end
    if (from === bytes.length) this.#held = null
    else if (from > 0 || this.#held === null) this.#held = new HeldBytes(bytes.subarray(from))
    this.#searched = end - from
    this.#lineStart = line < from ? BEGUN : line - from
    if (isOpen) this.#eventStart = 0
    return this.#withoutCuts(bytes, from)
  }

  #beginLong(bytes: Buffer, end: number): void {
    const { name, data } = readEvent(bytes.subarray(this.#eventStart, end))
    if (data !== null) this.#sink.longData(data)
    this.#long = { name, isData: valueStart(bytes, this.#lineStart, end, DATA) >= 0 }
    this.#eventStart = NONE
  }

  #withoutCuts(bytes: Buffer, end: number): Buffer | null {
    const cuts = this.#cuts
    if (cuts.length === 0) return end === 0 ? null : end === bytes.length ? bytes : bytes.subarray(0, end)
    this.#cuts = []
    const pieces: Buffer[] = []
    let from = 0
    for (let i = 0; i < cuts.length; i += 2) {
      pieces.push(bytes.subarray(from, cuts[i]))
      from = cuts[i + 1] as number
    }
    pieces.push(bytes.subarray(from, end))
    const remaining = Buffer.concat(pieces)
    return remaining.length === 0 ? null : remaining
  }
}

/** Offset of the value if the line has this field, else -1. A field without a colon has no value. */
function valueStart(bytes: Buffer, start: number, end: number, field: Buffer): number {
  const colon = start + field.length
  if (end < colon) return -1
  for (let i = 0; i < field.length; i++) if (bytes[start + i] !== field[i]) return -1
  if (end === colon) return end
  if (bytes[colon] !== COLON) return -1
  return colon + 1 < end && bytes[colon + 1] === SPACE ? colon + 2 : colon + 1
}

/** `data`: the values of all `data` lines, joined by LF; null without such a line. `dataFrom` is NONE if they were joined. */
function readEvent(lines: Buffer) {
  const breaks = new LineBreaks(lines)
  const values: Buffer[] = []
  let name = ''
  let dataFrom = NONE
  for (let start = 0; start < lines.length; ) {
    const end = breaks.next(start)
    const data = valueStart(lines, start, end, DATA)
    if (data >= 0) {
      dataFrom = values.length === 0 ? data : NONE
      values.push(LINE_FEED, lines.subarray(data, end))
    } else {
      const named = valueStart(lines, start, end, NAME)
      if (named >= 0) name = lines.toString('latin1', named, end)
    }
    start = breaks.after(end)
  }
  const [, only = null] = values
  return { name, data: values.length > 2 ? Buffer.concat(values.slice(1)) : only, dataFrom }
}

/** Finds line breaks. LF and CR are searched natively, no byte twice. */
class LineBreaks {
  readonly #bytes: Buffer
  #lf = -1
  #cr = -1

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  /** The offset of the CR or LF that ends the line at `from`, or the number of bytes. */
  next(from: number): number {
    if (this.#lf < from) this.#lf = this.#find(LF, from)
    if (this.#cr < from) this.#cr = this.#find(CR, from)
    return Math.min(this.#lf, this.#cr)
  }

  /** Offset of the line after the break at `at`. The LF of a CRLF belongs to the break. */
  after(at: number): number {
    return this.#bytes[at] === CR && this.#bytes[at + 1] === LF ? at + 2 : at + 1
  }

  #find(byte: number, from: number): number {
    const index = this.#bytes.indexOf(byte, from)
    return index < 0 ? this.#bytes.length : index
  }
}

const HELD_BYTES_MIN = 1024

/** A growing copy of bytes. A slice of the chunk would retain the whole read buffer. */
class HeldBytes {
  #bytes: Buffer
  #length: number

  constructor(bytes: Buffer) {
    this.#bytes = Buffer.allocUnsafe(Math.max(HELD_BYTES_MIN, bytes.length * 2))
    this.#length = bytes.copy(this.#bytes)
  }

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
