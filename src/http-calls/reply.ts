import type { ReservedBytes } from '../calls/key-shares.ts'
import { type ReplyTimes, Silence } from '../calls/silence.ts'
import type { Exchange } from '../http/exchange.ts'
import type { MessageHead } from '../http/message-reader.ts'
import { type BodyCoding, codingOf, firstValue, hasHeader } from '../http/raw-headers.ts'
import type { ReplyReceiver, UpstreamCall } from '../http/upstream-call.ts'
import { limits } from '../kernel/limits.ts'
import { ChunkList } from '../kernel/memory.ts'
import type { Nanos } from '../kernel/money.ts'
import { CopyDecoder } from '../metering/decode-copy.ts'
import {
  type Meter,
  type Metered,
  NOTHING_SHOWN,
  type Shown,
  SilentMeter,
  type Stage,
} from '../metering/meter.ts'
import { cutUsage } from '../providers/chat-usage.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import { createMeter, isEventStream, isJsonType } from '../providers/surfaces.ts'
import {
  announcedTrailers,
  type Figures,
  figureLines,
  printable,
  rewriteResultsUrls,
  toReplyHeaders,
  withoutOutdated,
  withoutOwnHeaders,
} from './permitted-changes.ts'

/** A decoded copy is read up to this size. The rest of the usage is estimated. */
const DECODED_REPLY_BYTES_MAX = 1024 * 1024 ** 2

/** Maximum bytes that wait for decoding. A buffered reply may wait for the copy; a stream waits only to limit memory. */
export const OBSERVER_BACKLOG_BYTES_MAX = 16 * 1024 ** 2
export const BUFFERED_BACKLOG_BYTES_MAX = 256 * 1024

/** The last event of a stream waits for the figures, for up to a second. A larger event does not wait. */
const LAST_EVENT_WAIT_MS = 1_000
export const LAST_EVENT_BYTES_MAX = 64 * 1024

export type ReplyHead = Pick<MessageHead, 'status' | 'reason' | 'headers'>

interface ReplyOptions {
  readonly reader: UsageReader | null
  readonly objectReader: UsageReader | null
  /** The gateway's origin as the client sees it, if URLs in a JSON reply are rewritten. */
  readonly origin: string | null
  readonly balanceNanos: Nanos | null
  /** The figures of a successful reply, if the request alone decides them. */
  readonly requestFigures: Figures | null
  /** Buffer a JSON reply until the body taps are done, even if its figures are known. */
  readonly bufferJson: boolean
  /** For the buffered body. */
  readonly memory: ReservedBytes
  nowMs(): number
  upstreamMs(): number
  onChunk(chunk: Buffer): void
  readonly onObject: ((named: Shown) => void) | null
}

/** Passes a reply chunk by chunk, or buffers it until its figures are known. A slow client pauses upstream. */
export class Reply implements ReplyReceiver {
  readonly #exchange: Exchange
  readonly #options: ReplyOptions
  readonly #silence = new Silence()
  #readMs = 0
  #call: UpstreamCall | null = null
  #usageAdded = false
  #head: ReplyHead | null = null
  #meter: Meter | null = null
  #decoder: CopyDecoder | 'unreadable' | null = null
  #rewritesUrls = false
  #isEdited = false
  #isStreamed = false
  #isDocument = false
  #hasObject = false
  /** Whether the reply is buffered until its figures are known, so that they can be headers. */
  #isBuffered = false
  readonly #buffered = new ChunkList()
  /** Time to upstream's head, needed if a buffered reply has to be streamed after all. */
  #headMs: number | null = null
  #hasTrailers = false
  #buffersLastEvent = false
  #hasLastEvent = false
  #lastEvent: Buffer[] = []
  #lastEventBytes = 0
  #lastEventTimer: NodeJS.Timeout | null = null
  #bytesOut = 0
  // While the client is full or the decoder lags, upstream is not read.
  #isClientFull = false
  #decoderLag: Promise<void> | null = null

  constructor(exchange: Exchange, options: ReplyOptions) {
    this.#exchange = exchange
    this.#options = options
    exchange.res.whenDrained.add(() => this.onDrain())
    exchange.res.whenClosed.add(() => this.#onClose())
  }

  attach(call: UpstreamCall, usageAdded: boolean): void {
    this.#call = call
    this.#usageAdded = usageAdded
  }

  get replyHead(): ReplyHead | null {
    return this.#head
  }

  get bytesOut(): number {
    return this.#bytesOut
  }

  get bytesBuffered(): number {
    return this.#lastEventBytes + (this.#isBuffered ? this.#options.memory.bytes : 0)
  }

  get isStreamed(): boolean {
    return this.#isStreamed
  }

  get isNearlyDone(): boolean {
    return this.#isDocument || this.#stage !== 'content'
  }

  get isError(): boolean {
    return this.#head !== null && this.#head.status >= 300
  }

  get shown(): Shown {
    return this.#meter?.shown ?? NOTHING_SHOWN
  }

  get times(): ReplyTimes {
    const times = this.#silence.timesAt(this.#options.nowMs())
    // After the content, upstream is done: silence while the gateway waits for the usage is no work.
    return this.#stage === 'content' ? times : { ...times, silentMs: this.#silence.silentMsAt(this.#readMs) }
  }

  get #stage(): Stage {
    return this.#meter?.stage ?? 'content'
  }

  get #isHttp11(): boolean {
    return this.#exchange.req.head.httpVersion === '1.1'
  }

  head(head: ReplyHead): void {
    const { status, reason, headers } = head
    const { reader, bufferJson, balanceNanos, requestFigures, origin } = this.#options
    const { res, names } = this.#exchange
    if (status < 200) {
      const lines = toReplyHeaders(headers, names.prefix, false)
      if (this.#isHttp11) res.writeInterim(status, printable(reason), lines)
      return
    }
    this.#head = head
    const isSuccess = status < 300
    const contentType = firstValue(headers, 'content-type') ?? ''
    const [isJson, isEvents] = [isJsonType(contentType), isEventStream(contentType)]
    const isFree = !(isSuccess && reader !== null) && !(isJson && bufferJson)
    const coding = codingOf(firstValue(headers, 'content-encoding'))
    this.#rewritesUrls = origin !== null && status === 200 && isJson && coding === 'identity'
    const isWhole = isJson || status === 204
    this.#isDocument = isWhole && (this.#rewritesUrls || !isFree)
    this.#isStreamed = isEvents || !(isWhole || isFree)
    if (isSuccess) this.#observe(coding, contentType, isEvents)
    this.#isEdited ||= this.#rewritesUrls
    if (this.#isDocument) {
      this.#isBuffered = true
      this.#headMs = this.#options.upstreamMs()
      return
    }
    const figures = isFree ? { costNanos: 0n, listNanos: 0n, balanceNanos } : isEvents ? null : requestFigures
    this.#writeHead(figures, figures === null)
    // A client may need the head long before there is a body.
    queueMicrotask(() => res.flushHead())
    // In an encoded stream the last event is not recognised in time, and an image stream has several final events.
    this.#buffersLastEvent = this.#hasTrailers && isEvents && coding === 'identity' && reader !== 'images'
  }

  /** Starts the meter. It gets every byte, because upstream waits if the decoded copy lags behind. */
  #observe(coding: BodyCoding, contentType: string, isEvents: boolean): void {
    const usageReader = this.#options.reader ?? this.#options.objectReader
    if (usageReader === null) return
    this.#isEdited = this.#usageAdded && isEvents && coding === 'identity'
    const meter = createMeter(usageReader, contentType, this.#isEdited ? cutUsage : null)
    this.#meter = meter
    if (coding === 'unknown') this.#decoder = 'unreadable'
    if (coding === 'unknown' || coding === 'identity') return
    const backlogBytesMax = this.#isDocument ? BUFFERED_BACKLOG_BYTES_MAX : OBSERVER_BACKLOG_BYTES_MAX
    const meterBytes = (bytes: Buffer) => {
      meter.write(bytes)
      this.#recordProgress(meter)
    }
    this.#decoder = new CopyDecoder(coding, DECODED_REPLY_BYTES_MAX, meterBytes, { backlogBytesMax })
  }

  data(chunk: Buffer): boolean {
    const forClient = this.#read(chunk)
    this.#options.onChunk(chunk)
    if (forClient !== null) this.#isClientFull = !this.#deliver(forClient)
    const mayContinue = !this.#isClientFull && this.#decoderLag === null
    if (!mayContinue) this.#silence.pause(this.#options.nowMs())
    return mayContinue
  }

  #read(chunk: Buffer): Buffer | null {
    const meter = this.#meter
    if (meter === null || this.#decoder === 'unreadable') return chunk
    if (this.#decoder !== null) {
      const lag = this.#decoder.write(chunk)
      if (lag !== null && lag !== this.#decoderLag) this.#waitForCopy(lag)
      return chunk
    }
    const forClient = meter.write(chunk)
    this.#recordProgress(meter)
    return forClient
  }

  #recordProgress(meter: Meter): void {
    this.#readMs = this.#options.nowMs()
    if (meter.hasBegun) this.#silence.recordOutput(meter.visibleBytes, this.#readMs)
    const { onObject } = this.#options
    if (onObject === null || this.#hasObject || !this.#isStreamed) return
    const { shown } = meter
    if (shown.objectId === null) return
    this.#hasObject = true
    onObject(shown)
  }

  /** Waits until the copy has caught up. This always ends, even if the client or upstream has gone. */
  #waitForCopy(lag: Promise<void>): void {
    this.#decoderLag = lag
    lag.then(() => {
      if (this.#decoderLag !== lag) return
      this.#decoderLag = null
      this.#resume()
    })
  }

  onDrain(): void {
    this.#isClientFull = false
    this.#resume()
  }

  #resume(): void {
    if (this.#isClientFull || this.#decoderLag !== null) return
    this.#silence.resume(this.#options.nowMs())
    this.#call?.resume()
  }

  async observed(whole: boolean): Promise<Metered | null> {
    const meter = this.#meter
    // The client left before upstream answered, so there is no reply to read.
    if (meter === null)
      return this.#head === null && this.#options.reader !== null ? new SilentMeter().end(false) : null
    if (this.#decoder === null) return meter.end(whole)
    if (this.#decoder === 'unreadable') return { ...meter.end(false), fault: 'unreadable' }
    const state = await this.#decoder.end()
    return meter.end(whole && state === 'whole')
  }

  finish(figures: Figures | null, trailers: string[]): void {
    const { res, names } = this.#exchange
    this.#deliverRemainder()
    const chunks = [...this.#startBuffered(figures, false), ...this.#takeLastEvent()]
    const lines = this.#isEdited ? withoutOutdated(trailers) : trailers
    if (lines.length > 0) res.addTrailers(withoutOwnHeaders(lines, names.prefix))
    if (this.#hasTrailers) res.addTrailers(figureLines(names, figures, this.#options.upstreamMs()))
    const last = chunks.pop()
    const isMany = chunks.length > 0
    if (isMany) res.cork()
    for (const chunk of chunks) this.#write(chunk)
    this.#bytesOut += last?.length ?? 0
    res.end(last)
    if (isMany) res.uncork()
  }

  /** Upstream ended mid-body. The client must not mistake the part it got for the whole reply. */
  cut(): void {
    this.#deliverRemainder()
    for (const chunk of this.#startBuffered(null, false)) this.#write(chunk)
    this.#releaseLastEvent()
    // Not res.end(): it would send the final chunk, and the cut stream would look complete.
    this.#exchange.res.cut()
  }

  #deliverRemainder(): void {
    const remainder = this.#meter?.remainder?.() ?? null
    if (remainder !== null && remainder.length > 0) this.#deliver(remainder)
    this.#meter = null
  }

  /** False: the client applies back-pressure. Of a stream, only the last event is buffered, for the figures. */
  #deliver(bytes: Buffer): boolean {
    // The client has left, so there is no back-pressure. The rest of the reply is only observed.
    if (this.#exchange.res.destroyed) return true
    if (!this.#buffersLastEvent || this.#stage !== 'over') return this.#buffer(bytes) || this.#write(bytes)
    const at = this.#hasLastEvent ? 0 : lastEventAt(bytes)
    this.#hasLastEvent = true
    const isWritable = at === 0 || this.#write(bytes.subarray(0, at))
    return this.#bufferLastEvent(bytes.subarray(at)) && isWritable
  }

  /** Adds to the buffered body. Returns false if the reply is not buffered, or has become too large. */
  #buffer(chunk: Buffer): boolean {
    if (!this.#isBuffered) return false
    const { memory } = this.#options
    if (memory.bytes + chunk.length <= limits.heldReplyBytesMax && memory.tryReserve(chunk.length)) {
      this.#buffered.append(chunk)
      return true
    }
    for (const held of this.#startBuffered(null, true)) this.#write(held)
    return false
  }

  /** Buffers the last event until `finish`: clients stop reading there and would miss the trailers. */
  #bufferLastEvent(bytes: Buffer): boolean {
    this.#lastEvent.push(Buffer.from(bytes))
    this.#lastEventBytes += bytes.length
    if (this.#lastEventBytes > LAST_EVENT_BYTES_MAX) return this.#releaseLastEvent()
    this.#lastEventTimer ??= setTimeout(() => this.#releaseLastEvent(), LAST_EVENT_WAIT_MS)
    return true
  }

  #releaseLastEvent(): boolean {
    let isWritable = true
    for (const bytes of this.#takeLastEvent()) isWritable = this.#write(bytes)
    return isWritable
  }

  #takeLastEvent(): readonly Buffer[] {
    const last = this.#lastEvent
    if (this.#lastEventTimer !== null) clearTimeout(this.#lastEventTimer)
    this.#lastEventTimer = null
    if (last.length === 0) return last
    this.#lastEvent = []
    this.#lastEventBytes = 0
    return [Buffer.concat(last)]
  }

  /** Writes the head of a buffered reply and returns its body, which the caller must write. */
  #startBuffered(figures: Figures | null, figuresFollow: boolean): readonly Buffer[] {
    if (!this.#isBuffered) return []
    this.#isBuffered = false
    this.#writeHead(figures, figuresFollow)
    const { origin } = this.#options
    const isWhole = this.#rewritesUrls && origin !== null && !figuresFollow
    return isWhole ? [rewriteResultsUrls(this.#buffered.joined(), origin)] : this.#buffered.all()
  }

  #writeHead(figures: Figures | null, figuresFollow: boolean): void {
    const { res, names, method, requestId } = this.#exchange
    if (res.destroyed || this.#head === null) return
    const { status, reason } = this.#head
    const headers = this.#isEdited ? withoutOutdated(this.#head.headers) : this.#head.headers
    const hasBody = method !== 'HEAD' && status !== 204 && status !== 304
    const lines = toReplyHeaders(headers, names.prefix, this.#isHttp11 && hasBody)
    this.#hasTrailers = figuresFollow && hasBody && this.#isHttp11 && !hasHeader(lines, 'content-length')
    const upstreamMs = (figuresFollow ? this.#headMs : null) ?? this.#options.upstreamMs()
    lines.push(names.requestId, requestId, ...figureLines(names, figures, upstreamMs))
    if (this.#hasTrailers) lines.push('Trailer', announcedTrailers(names))
    res.sendDate = false
    res.writeHead(status, printable(reason), lines)
  }

  #write(chunk: Buffer): boolean {
    this.#bytesOut += chunk.length
    return this.#exchange.res.write(chunk)
  }

  #onClose(): void {
    this.#takeLastEvent()
    // Freed only when the socket closes: until then the bytes are in its buffer.
    this.#options.memory.release()
    this.#isBuffered = false
    this.#buffered.clear()
  }
}

/** Offset of the last event that ends in these bytes; 0 if it began in an earlier chunk. */
function lastEventAt(bytes: Buffer): number {
  let end = bytes.length
  while (end > 0 && (bytes[end - 1] === NEWLINE || bytes[end - 1] === RETURN)) end--
  const unix = bytes.lastIndexOf('\n\n', Math.max(0, end - 1))
  const dos = bytes.lastIndexOf('\r\n\r\n', Math.max(0, end - 1))
  return Math.max(unix === -1 ? 0 : unix + 2, dos === -1 ? 0 : dos + 4)
}

const [NEWLINE, RETURN] = [0x0a, 0x0d]
