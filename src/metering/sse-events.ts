const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const COLON = 0x3a
const LINE_FEED = Buffer.from('\n')
const DATA = Buffer.from('data')
const NAME = Buffer.from('event')

/** Events up to this size are parsed whole. Longer ones are skimmed as they arrive and always pass unchanged. */
export const EVENT_BYTES_MAX = 256 * 1024

/** What the client gets of an event: all, nothing, or its data without these ranges (start, end, start, end …). */
export type EventCut = 'pass' | 'remove' | readonly number[]

export interface EventSink {
  /** A complete event. `data` is a view; do not retain it. `isLast`: the stream ended before the event's blank line. */
  event(name: string, data: Buffer, isLast: boolean): EventCut
  /** The next bytes of the data of an event that is longer than EVENT_BYTES_MAX. A view; do not retain it. */
  longData(bytes: Buffer): void
  longEvent(name: string): void
}

/** The start of an event that ended before its data, perhaps within a field name. Any other text is not an event. */
const LEADS_TO_DATA =
  /^(?:(?:event|id|retry)?:[^\r\n]*[\r\n]+)*(?:(?:event|id|retry)?:[^\r\n]*|d(?:a(?:ta?)?)?|e(?:v(?:e(?:nt?)?)?)?|id?|r(?:e(?:t(?:ry?)?)?)?)?$/
const NOTHING = Buffer.alloc(0)

const NONE = -1
/** The current line began in bytes that were already passed on. */
const BEGUN = -1

/**
 * Splits a stream of server-sent events by the rules of the HTML standard: LF, CRLF and CR end a line. There are two
 * differences: an event without its final blank line counts, as it does for the SDKs, and a byte order mark, which no
 * server sends, hides the first line.
 *
 * If the sink edits events, `write` returns the bytes to pass on: comments and blank lines at once, the lines of an
 * event when it is complete. At most one event is buffered, and none longer than EVENT_BYTES_MAX.
 */
export class SseEvents {
  readonly #sink: EventSink
  readonly #lines = new Lines()
  /** A copy of the unfinished event. */
  #held: HeldBytes | null = null
  /** Offsets in the current bytes: of the current line, of the event, of its first `data` line and of its name. */
  #lineStart = 0
  #eventStart = NONE
  #dataFrom = NONE
  #dataTo = NONE
  #nameFrom = NONE
  #nameTo = NONE
  /** Copies of all `data` lines, where an event has several. */
  #joined: Buffer[] | null = null
  /** The current event is too long to buffer, so its lines pass. `isData`: the current line is its data. */
  #long: { readonly name: string; isData: boolean } | null = null
  /** The last event was removed. If it ended in CR, a following LF is removed too. */
  #hasRemovedLast = false
  /** The ranges to leave out of the current bytes: start, end, start, end … */
  #cuts: number[] = []

  constructor(sink: EventSink) {
    this.#sink = sink
  }

  write(chunk: Buffer): Buffer | null {
    if (chunk.length === 0) return null
    const bytes = this.#held === null ? chunk : this.#held.append(chunk)
    let from = this.#enter(bytes, bytes.length - chunk.length)
    for (;;) {
      const end = this.#lines.end(bytes, from)
      if (this.#long?.isData === true) this.#sink.longData(bytes.subarray(from, end))
      if (end === bytes.length) break
      from = this.#lines.behind(bytes, end + 1)
      this.#endLine(bytes, end, from)
    }
    return this.#leave(bytes)
  }

  /** The stream is over, whole or cut. Returns the rest of it. */
  end(): Buffer | null {
    if (this.#long !== null) this.#sink.longEvent(this.#long.name)
    this.#long = null
    const bytes = this.#held?.bytes() ?? null
    this.#held = null
    if (bytes === null) return null
    if (this.#lineStart < bytes.length) this.#readField(bytes, this.#lineStart, bytes.length)
    this.#endEvent(bytes, bytes.length, true)
    return this.#kept(bytes, bytes.length)
  }

  #enter(bytes: Buffer, first: number): number {
    const from = this.#lines.enter(bytes, first)
    if (from > first) {
      if (this.#hasRemovedLast && bytes[first] === LF) this.#cuts.push(first, from)
      if (this.#lineStart !== BEGUN) this.#lineStart = from
    }
    this.#hasRemovedLast = false
    return from
  }

  /** The current line ends at `end`, and the next one begins at `next`. */
  #endLine(bytes: Buffer, end: number, next: number): void {
    const start = this.#lineStart
    this.#lineStart = next
    let isRemoved = false
    if (end !== start) {
      if (this.#long !== null) this.#long.isData = false
      else if (start !== BEGUN) this.#readLine(bytes, start, end)
    } else if (this.#long !== null) {
      this.#sink.longEvent(this.#long.name)
      this.#long = null
    } else if (this.#eventStart !== NONE) isRemoved = this.#endEvent(bytes, next, false)
    if (next === bytes.length) this.#hasRemovedLast = isRemoved
  }

  #readLine(bytes: Buffer, start: number, end: number): void {
    if (this.#eventStart === NONE) {
      // A comment between two events belongs to neither.
      if (bytes[start] === COLON) return
      this.#eventStart = start
    }
    this.#readField(bytes, start, end)
  }

  #readField(bytes: Buffer, start: number, end: number): void {
    const data = valueStart(bytes, start, end, DATA)
    if (data >= 0 && this.#dataFrom === NONE) {
      this.#dataFrom = data
      this.#dataTo = end
    } else if (data >= 0) {
      this.#joined ??= [Buffer.from(bytes.subarray(this.#dataFrom, this.#dataTo))]
      this.#joined.push(LINE_FEED, Buffer.from(bytes.subarray(data, end)))
    } else {
      const name = valueStart(bytes, start, end, NAME)
      if (name < 0) return
      this.#nameFrom = name
      this.#nameTo = end
    }
  }

  /** The event ends before `next`. Returns whether it was removed. */
  #endEvent(bytes: Buffer, next: number, isLast: boolean): boolean {
    const start = this.#eventStart
    const from = this.#dataFrom
    const joined = this.#joined
    const name = this.#nameIn(bytes)
    const to = this.#dataTo
    this.#forgetEvent()
    if (from === NONE && !(isLast && LEADS_TO_DATA.test(bytes.toString('latin1', start)))) return false
    const data = joined !== null ? Buffer.concat(joined) : from === NONE ? NOTHING : bytes.subarray(from, to)
    const cut = this.#sink.event(name, data, isLast)
    if (cut === 'remove') this.#cuts.push(start, next)
    else if (cut !== 'pass' && joined === null) for (const at of cut) this.#cuts.push(from + at)
    return cut === 'remove'
  }

  #nameIn(bytes: Buffer): string {
    return this.#nameFrom === NONE ? '' : bytes.toString('latin1', this.#nameFrom, this.#nameTo)
  }

  #forgetEvent(): void {
    this.#eventStart = NONE
    this.#dataFrom = NONE
    this.#nameFrom = NONE
    this.#joined = null
  }

  /** The end of a chunk: buffers the unfinished event and returns everything before it. */
  #leave(bytes: Buffer): Buffer | null {
    const { length } = bytes
    const line = this.#lineStart
    const isOpen = line !== BEGUN && line < length
    if (isOpen && this.#long === null && this.#eventStart === NONE && bytes[line] !== COLON)
      this.#eventStart = line
    if (this.#eventStart !== NONE && length - this.#eventStart > EVENT_BYTES_MAX) this.#beginLong(bytes)
    const from = this.#eventStart
    if (from === NONE) {
      this.#held = null
      this.#lineStart = line === length ? 0 : BEGUN
      return this.#kept(bytes, length)
    }
    if (from > 0 || this.#held === null) this.#held = new HeldBytes(bytes.subarray(from))
    this.#eventStart = 0
    this.#lineStart -= from
    if (this.#dataFrom !== NONE) this.#dataFrom -= from
    this.#dataTo -= from
    if (this.#nameFrom !== NONE) this.#nameFrom -= from
    this.#nameTo -= from
    return this.#kept(bytes, from)
  }

  /** Only the first `data` line of a long event is read: no known server splits one. */
  #beginLong(bytes: Buffer): void {
    const name = this.#nameIn(bytes)
    if (this.#dataFrom !== NONE) {
      this.#sink.longData(bytes.subarray(this.#dataFrom, this.#dataTo))
      this.#long = { name, isData: false }
    } else {
      const data = valueStart(bytes, this.#lineStart, bytes.length, DATA)
      if (data >= 0) this.#sink.longData(bytes.subarray(data))
      this.#long = { name, isData: data >= 0 }
    }
    this.#forgetEvent()
  }

  /** The bytes up to `end` without the cuts. */
  #kept(bytes: Buffer, end: number): Buffer | null {
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
    const kept = Buffer.concat(pieces)
    return kept.length === 0 ? null : kept
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

/** Finds line ends. CR and LF are searched natively, no byte twice. */
class Lines {
  #endedInCr = false
  #lf = -1
  #cr = -1

  /** Begins a chunk at `first`. Returns where its first line begins or continues. */
  enter(chunk: Buffer, first: number): number {
    this.#lf = -1
    this.#cr = -1
    const isInside = this.#endedInCr && chunk[first] === LF
    this.#endedInCr = false
    return isInside ? first + 1 : first
  }

  /** The offset of the CR or LF that ends the line at `from`, or the chunk's length. */
  end(chunk: Buffer, from: number): number {
    if (this.#lf < from) this.#lf = indexOrLength(chunk, LF, from)
    if (this.#cr < from) this.#cr = indexOrLength(chunk, CR, from)
    return Math.min(this.#lf, this.#cr)
  }

  /** A line break ends before `next`. Returns the start of the next line, after the LF of a CRLF. */
  behind(chunk: Buffer, next: number): number {
    if (chunk[next - 1] !== CR) return next
    this.#endedInCr = next === chunk.length
    return chunk[next] === LF ? next + 1 : next
  }
}

function indexOrLength(chunk: Buffer, byte: number, from: number): number {
  const index = chunk.indexOf(byte, from)
  return index < 0 ? chunk.length : index
}

const HELD_BYTES_MIN = 1024

/** A growing copy: a slice of the chunk would retain the whole read buffer. */
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
