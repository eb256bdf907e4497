import { type Borrowed, viewOf } from '../kernel/memory.ts'

const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const COLON = 0x3a
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf]
const LINE_FEED = Buffer.from('\n')

/** The longest field name that means something is `event`; a longer one is no field of ours. */
const FIELD_BYTES_MAX = 5
/** Names of events are short; a longer name is cut, which makes it the name of no event that is read. */
const NAME_BYTES_MAX = 128

/** At the first byte of an event, in the name of a field, or in a value: of `data`, of `event`, of anything else. */
const EVENT_START = 0
const FIELD = 1
const DATA = 2
const NAME = 3
const IGNORED = 4

/**
 * Splits a stream of server-sent events that arrives in pieces into lines, by the rules of the HTML standard: LF,
 * CRLF and CR end a line, and a byte order mark may come first.
 */
export class SseLines {
  /** Bytes of the byte order mark seen so far; all three once there is no mark to look for. */
  #mark = 0
  /** The last byte was a CR that ended a line: a LF behind it belongs to it. */
  #endedInCr = false
  /** The next LF and CR of this chunk: both are searched natively, and no byte twice. */
  #lf = -1
  #cr = -1
  /** Bytes that began like a byte order mark, but are none, were the beginning of a line. */
  hasFalseMark = false

  /** Takes up a chunk that begins at `first`. Answers where its first line begins or goes on. */
  enter(chunk: Buffer, first: number): number {
    this.#lf = -1
    this.#cr = -1
    this.hasFalseMark = false
    // An empty chunk may come between a CR and its LF.
    if (first >= chunk.length) return first
    let i = first
    if (this.#endedInCr && chunk[i] === LF) i++
    this.#endedInCr = false
    while (this.#mark < BYTE_ORDER_MARK.length && i < chunk.length) {
      if (chunk[i] !== BYTE_ORDER_MARK[this.#mark]) {
        this.hasFalseMark = this.#mark > 0
        this.#mark = BYTE_ORDER_MARK.length
        break
      }
      this.#mark++
      i++
    }
    return i
  }

  /** Where the line at `from` ends: the offset of its CR or LF, or the chunk's length. */
  end(chunk: Buffer, from: number): number {
    if (this.#lf < from) this.#lf = indexOrLength(chunk, LF, from)
    if (this.#cr < from) this.#cr = indexOrLength(chunk, CR, from)
    return Math.min(this.#lf, this.#cr)
  }

  /** A line's last byte is the one before `next`. Answers where the next line begins, which is behind a LF that follows a CR. */
  behind(chunk: Buffer, next: number): number {
    if (chunk[next - 1] !== CR) return next
    this.#endedInCr = next === chunk.length
    return chunk[next] === LF ? next + 1 : next
  }
}

export interface SseSink {
  /** An event begins at `from`: the offset behind it, if it lies whole in the chunk and is known, else `from`. */
  recognise(chunk: Buffer, words: DataView, from: number): number
  /** The next bytes of the event's data. Its lines come joined by line feeds. The chunk is not to be kept. */
  data(chunk: Buffer, from: number, to: number): void
  /** The event is complete. `raw` is all of it, if it lay in one chunk: a view, not to be kept. */
  event(name: string, raw: Buffer | null): void
}

/**
 * Finds the events in a stream of server-sent events that arrives in pieces, by the rules of the HTML standard: comments
 * and other fields say nothing. It differs in one point: an event that the end of the stream leaves without its blank
 * line counts, as it does for the SDKs.
 *
 * It keeps nothing but a few bytes of the current line: an event's data goes to the sink as it comes.
 */
export class SseScanner {
  readonly #sink: SseSink
  readonly #lines = new SseLines()
  #state = EVENT_START
  /** The one space behind the colon belongs to no value. */
  #atValueStart = false
  #field = ''
  #name = ''
  #hasData = false
  /** The offset in this chunk at which the event began, or -1 when it began in an earlier chunk. */
  #rawFrom = -1

  constructor(sink: SseSink) {
    this.#sink = sink
  }

  write(borrowed: Borrowed): void {
    const chunk = viewOf(borrowed)
    const words = new DataView(chunk.buffer, chunk.byteOffset, chunk.length)
    this.#rawFrom = -1
    let i = this.#lines.enter(chunk, 0)
    if (this.#lines.hasFalseMark) this.#state = IGNORED
    while (i < chunk.length) {
      if (this.#state === EVENT_START) {
        const behind = this.#sink.recognise(chunk, words, i)
        if (behind > i) {
          i = this.#lines.behind(chunk, behind)
          continue
        }
        this.#rawFrom = i
        this.#state = FIELD
      }
      i = this.#readLine(chunk, i)
    }
  }

  /** The stream is over. */
  end(): void {
    if (this.#hasData) this.#sink.event(this.#name, null)
    this.#reset()
  }

  /** Reads on in the line at hand: up to its end and over it, or up to the end of the chunk. */
  #readLine(chunk: Buffer, from: number): number {
    const end = this.#lines.end(chunk, from)
    let i = from
    if (this.#state === FIELD) i = this.#readField(chunk, from, end)
    if (this.#state !== FIELD && i < end) this.#readValue(chunk, i, end)
    if (end === chunk.length) return end
    const next = this.#lines.behind(chunk, end + 1)
    this.#endLine(chunk, next)
    return next
  }

  /** The offset behind the colon, or the line's end when there is no colon yet. */
  #readField(chunk: Buffer, from: number, end: number): number {
    let i = from
    while (i < end && chunk[i] !== COLON && this.#field.length <= FIELD_BYTES_MAX) {
      this.#field += String.fromCharCode(chunk[i] as number)
      i++
    }
    if (i === end) return end
    this.#openValue()
    return chunk[i] === COLON ? i + 1 : i
  }

  #openValue(): void {
    const field = this.#field
    this.#field = ''
    this.#atValueStart = true
    this.#state = field === 'data' ? DATA : field === 'event' ? NAME : IGNORED
    if (field === 'event') this.#name = ''
    if (field !== 'data') return
    if (this.#hasData) this.#sink.data(LINE_FEED, 0, 1)
    this.#hasData = true
  }

  #readValue(chunk: Buffer, from: number, end: number): void {
    const start = this.#atValueStart && chunk[from] === SPACE ? from + 1 : from
    this.#atValueStart = false
    if (this.#state === DATA) {
      if (start < end) this.#sink.data(chunk, start, end)
    } else if (this.#state === NAME) {
      const room = NAME_BYTES_MAX - this.#name.length
      this.#name += chunk.toString('latin1', start, Math.min(end, start + room))
    }
  }

  #endLine(chunk: Buffer, behind: number): void {
    if (this.#state === FIELD && this.#field === '') {
      this.#endEvent(chunk, behind)
      return
    }
    // A field without a colon has an empty value.
    if (this.#state === FIELD) this.#openValue()
    this.#state = FIELD
  }

  #endEvent(chunk: Buffer, behind: number): void {
    const raw = this.#rawFrom < 0 ? null : chunk.subarray(this.#rawFrom, behind)
    if (this.#hasData) this.#sink.event(this.#name, raw)
    this.#reset()
  }

  #reset(): void {
    this.#state = EVENT_START
    this.#field = ''
    this.#name = ''
    this.#hasData = false
  }
}

function indexOrLength(chunk: Buffer, byte: number, from: number): number {
  const index = chunk.indexOf(byte, from)
  return index < 0 ? chunk.length : index
}
