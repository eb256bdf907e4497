import type { ReservedBytes } from '../calls/key-shares.ts'
import type { ReplyTimes } from '../calls/silence.ts'
import type { Exchange } from '../http/exchange.ts'
import { codingOf, firstValue } from '../http/raw-headers.ts'
import type { ReplyReceiver, UpstreamCall } from '../http/upstream-call.ts'
import type { Nanos } from '../kernel/money.ts'
import type { Metered, Shown } from '../metering/meter.ts'
import { cutUsage } from '../providers/chat-usage.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import { createMeter, isEventStream, isJsonType } from '../providers/surfaces.ts'
import { type Figures, printable, toReplyHeaders } from './permitted-changes.ts'
import { Buffered, Passing, type ReplyDelivery, Tailed } from './reply-delivery.ts'
import { ReplyObserver } from './reply-observer.ts'
import { type ReplyHead, ReplyWriter } from './reply-writer.ts'

/** Maximum bytes that wait for decoding. A buffered reply may wait for the copy; a stream waits only to limit memory. */
export const OBSERVER_BACKLOG_BYTES_MAX = 16 * 1024 ** 2
export const BUFFERED_BACKLOG_BYTES_MAX = 256 * 1024

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

/** Upstream's reply on its way to the client. A slow client pauses upstream. */
export class Reply implements ReplyReceiver {
  readonly #exchange: Exchange
  readonly #options: ReplyOptions
  readonly #observer: ReplyObserver
  #sent: { readonly call: UpstreamCall; readonly usageAdded: boolean } | null = null
  // Both are null until the head has come.
  #writer: ReplyWriter | null = null
  #delivery: ReplyDelivery | null = null
  #isStreamed = false
  #isClientFull = false

  constructor(exchange: Exchange, options: ReplyOptions) {
    this.#exchange = exchange
    this.#options = options
    this.#observer = new ReplyObserver(options, () => this.#resume())
    exchange.res.whenDrained.add(() => this.onDrain())
    exchange.res.whenClosed.add(() => this.#delivery?.close())
  }

  attach(call: UpstreamCall, usageAdded: boolean): void {
    this.#sent = { call, usageAdded }
  }

  get replyHead(): ReplyHead | null {
    return this.#writer?.head ?? null
  }

  get bytesOut(): number {
    return this.#writer?.bytesOut ?? 0
  }

  get bytesBuffered(): number {
    return this.#delivery?.bytesWaiting ?? 0
  }

  get isStreamed(): boolean {
    return this.#isStreamed
  }

  get isNearlyDone(): boolean {
    return this.#delivery instanceof Buffered || this.#observer.stage !== 'content'
  }

  get isError(): boolean {
    return this.#writer !== null && this.#writer.head.status >= 300
  }

  get shown(): Shown {
    return this.#observer.shown
  }

  get times(): ReplyTimes {
    return this.#observer.times
  }

  head(head: ReplyHead): void {
    const { status, headers } = head
    if (status < 200) {
      this.#passInterim(head)
      return
    }
    const { reader, bufferJson, balanceNanos, requestFigures, origin, memory } = this.#options
    const isSuccess = status < 300
    const contentType = firstValue(headers, 'content-type') ?? ''
    const [isJson, isEvents] = [isJsonType(contentType), isEventStream(contentType)]
    const isFree = !(isSuccess && reader !== null) && !(isJson && bufferJson)
    const coding = codingOf(firstValue(headers, 'content-encoding'))
    const isPlain = coding === 'identity'
    const rewritesUrls = origin !== null && status === 200 && isJson && isPlain
    const isWhole = isJson || status === 204
    const isDocument = isWhole && (rewritesUrls || !isFree)
    this.#isStreamed = isEvents || !(isWhole || isFree)

    const usageReader = isSuccess ? (reader ?? this.#options.objectReader) : null
    const cutsUsage = usageReader !== null && this.#sent?.usageAdded === true && isEvents && isPlain
    if (usageReader !== null) {
      const meter = createMeter(usageReader, contentType, cutsUsage ? cutUsage : null)
      const backlogBytesMax = isDocument ? BUFFERED_BACKLOG_BYTES_MAX : OBSERVER_BACKLOG_BYTES_MAX
      this.#observer.start(meter, coding, backlogBytesMax, this.#isStreamed ? this.#options.onObject : null)
    }

    const isEdited = cutsUsage || rewritesUrls
    const writer = new ReplyWriter(this.#exchange, head, isEdited, this.#options.upstreamMs)
    this.#writer = writer
    if (isDocument) {
      this.#delivery = new Buffered(writer, memory, rewritesUrls ? origin : null)
      return
    }
    const figures = isFree ? { costNanos: 0n, listNanos: 0n, balanceNanos } : isEvents ? null : requestFigures
    writer.begin(figures, figures === null)
    // A client may need the head long before there is a body.
    queueMicrotask(() => this.#exchange.res.flushHead())
    // In an encoded stream the last event is not recognised in time, and an image stream has several final events.
    const isTailed = writer.hasTrailers && isEvents && isPlain && reader !== 'images'
    this.#delivery = isTailed ? new Tailed(writer, this.#observer) : new Passing(writer)
  }

  #passInterim({ status, reason, headers }: ReplyHead): void {
    const { req, res, names } = this.#exchange
    if (req.head.httpVersion === '1.1')
      res.writeInterim(status, printable(reason), toReplyHeaders(headers, names.prefix, false))
  }

  data(chunk: Buffer): boolean {
    const forClient = this.#observer.read(chunk)
    this.#options.onChunk(chunk)
    if (forClient !== null) this.#isClientFull = !this.#deliver(forClient)
    const mayContinue = !this.#isClientFull && !this.#observer.isLagging
    if (!mayContinue) this.#observer.pause()
    return mayContinue
  }

  onDrain(): void {
    this.#isClientFull = false
    this.#resume()
  }

  #resume(): void {
    if (this.#isClientFull || this.#observer.isLagging) return
    this.#observer.resume()
    this.#sent?.call.resume()
  }

  /** What the reply says about its usage. If the client left before upstream answered, there is no reply to read. */
  observed(whole: boolean): Promise<Metered | null> {
    return this.#observer.end(whole, this.#writer === null && this.#options.reader !== null)
  }

  finish(figures: Figures | null, trailers: string[]): void {
    this.#deliverRemainder()
    this.#writer?.end(this.#delivery?.takeWaiting(figures) ?? [], figures, trailers)
  }

  /** Upstream ended mid-body. The client must not mistake the part it got for the whole reply. */
  cut(): void {
    this.#deliverRemainder()
    for (const chunk of this.#delivery?.takeWaiting(null) ?? []) this.#writer?.write(chunk)
    // Not res.end(): it would send the final chunk, and the cut stream would look complete.
    this.#exchange.res.cut()
  }

  #deliverRemainder(): void {
    const remainder = this.#observer.takeRemainder()
    if (remainder !== null && remainder.length > 0) this.#deliver(remainder)
  }

  /** False: the client applies back-pressure. Once the client has left, the rest of the reply is only observed. */
  #deliver(bytes: Buffer): boolean {
    return this.#exchange.res.destroyed || this.#delivery?.deliver(bytes) !== false
  }
}
