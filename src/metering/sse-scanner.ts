const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const COLON = 0x3a
const BYTE_ORDER_MARK = [0xef, 0xbb, 0xbf] as const
const LINE_FEED = Buffer.from('\n')

/** The longest field name that means something is `event`; a longer one is no field of ours. */
const FIELD_BYTES_MAX = 5
/** Names of events are short; one that is longer is cut, which makes it a name nobody asks for. */
const NAME_BYTES_MAX = 128

/** At the first byte of an event, in the name of a field, or in a value: of `data`, of `event`, of anything else. */
const EVENT_START = 0
const FIELD = 1
const DATA = 2
const NAME = 3
const IGNORED = 4

export interface SseSink {
  /** An event begins at `from`: the offset behind it, if it lies whole in the chunk and is known, else `from`. */
  recognise(chunk: Buffer, words: DataView, from: number): number
  /** The next bytes of the event's data. Its lines come joined by line feeds. The chunk is not to be kept. */
  data(chunk: Buffer, from: number, to: number): void
  /** The event is complete. `raw` is all of it, if it lay in one chunk: a view, not to be kept. */
  event(name: string, raw: Buffer | null): void
}

/**
 * Finds the events in a stream of server-sent events that arrives in pieces, by the rules of the HTML standard: lines
 * end with LF, CRLF or CR, a byte order mark may come first, comments and other fields say nothing. It differs in
 * one point: an event that the end of the stream leaves without its blank line counts, as it does for the SDKs.
 *
 * It keeps nothing but a few bytes of the current line: what an event says goes to the sink as it comes.
 */
export class SseScanner {
  readonly #sink: SseSink
  #state = EVENT_START
  /** Bytes of the byte order mark seen so far; -1 once it is over with. */
  #mark = 0
  /** The last byte was CR: a line feed here belongs to it. */
  #afterCr = false
  /** The one space behind the colon belongs to no value. */
  #atValueStart = false
  #field = ''
  #name = ''
  #hasData = false
  /** Where in this chunk the event began, or -1 when it began in an earlier one. */
  #rawFrom = -1
  /** The next LF and CR of this chunk: both are searched natively, and no byte twice. */
  #lf = -1
  #cr = -1

  constructor(sink: SseSink) {
    this.#sink = sink
  }

  write(chunk: Buffer): void {
    const words = new DataView(chunk.buffer, chunk.byteOffset, chunk.length)
    this.#lf = -1
    this.#cr = -1
    this.#rawFrom = -1
    let i = this.#mark < 0 ? 0 : this.#skipMark(chunk)
    while (i < chunk.length) {
      if (this.#afterCr) {
        this.#afterCr = false
        if (chunk[i] === LF) {
          i++
          continue
        }
      }
      if (this.#state === EVENT_START) {
        const behind = this.#sink.recognise(chunk, words, i)
        if (behind > i) {
          this.#afterCr = chunk[behind - 1] === CR
          i = behind
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

  #skipMark(chunk: Buffer): number {
    let i = 0
    for (; i < chunk.length && this.#mark >= 0; i++) {
      if (chunk[i] !== BYTE_ORDER_MARK[this.#mark]) {
        // What began like a mark and is none was the beginning of a field that nobody knows.
        if (this.#mark > 0) this.#state = IGNORED
        this.#mark = -1
        return i
      }
      this.#mark = this.#mark === 2 ? -1 : this.#mark + 1
    }
    return i
  }

  /** Reads on in the line at hand: up to its end and over it, or up to the end of the chunk. */
  #readLine(chunk: Buffer, from: number): number {
    const end = this.#lineEnd(chunk, from)
    let i = from
    if (this.#state === FIELD) i = this.#readField(chunk, from, end)
    if (this.#state !== FIELD && i < end) this.#readValue(chunk, i, end)
    if (end === chunk.length) return end
    this.#afterCr = chunk[end] === CR
    this.#endLine(chunk, end + 1)
    return end + 1
  }

  /** The offset behind the colon, or the end when there is none yet. */
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

  #lineEnd(chunk: Buffer, from: number): number {
    if (this.#lf < from) this.#lf = indexOrLength(chunk, LF, from)
    if (this.#cr < from) this.#cr = indexOrLength(chunk, CR, from)
    return Math.min(this.#lf, this.#cr)
  }
}

function indexOrLength(chunk: Buffer, byte: number, from: number): number {
  const index = chunk.indexOf(byte, from)
  return index < 0 ? chunk.length : index
}
