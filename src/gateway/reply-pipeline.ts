import { firstValue } from '../http/raw-headers.ts'
import type { ReplyReceiver, UpstreamCall } from '../http/upstream-call.ts'
import type { Nanos } from '../kernel/money.ts'
import { type CopyDecoder, codingOf, decodeCopy } from '../metering/decode-copy.ts'
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
import type { Answer, Figures, FiguresCome, ReplyHead } from './answer.ts'
import { type ReplyTimes, Silence } from './estimates.ts'
import { createUrlRewriter, type ResultsUrls, withoutOutdated } from './permitted-changes.ts'

/** Beyond this size the decoded copy is no longer read, and the rest of the usage is estimated. */
const DECODED_REPLY_BYTES_MAX = 1024 * 1024 ** 2

export const OBSERVER_BACKLOG_BYTES_MAX = 16 * 1024 ** 2

export const HELD_OBSERVER_BACKLOG_BYTES_MAX = 256 * 1024

export interface PipelineParts {
  createAnswer(onDrain: () => void): Answer
  readonly reader: UsageReader | null
  readonly shows: UsageReader | null
  readonly template: string
  /** The origin of this gateway as the client sees it, if URLs in the reply are rewritten. */
  readonly origin: string | null
  readonly balanceNanos: Nanos | null
  /** Buffer a JSON reply until the body taps are done, even if its figures are known. */
  readonly holdJson: boolean
  nowMs(): number
  onFirstByte(): void
  look(chunk: Buffer): void
  readonly onObject: ((named: Shown) => void) | null
}

/** Carries a reply from upstream to the client: observes it, removes injected usage and hands it to the answer. */
export class ReplyPipeline implements ReplyReceiver {
  readonly #parts: PipelineParts
  readonly #answer: Answer
  #replyHead: ReplyHead | null = null
  #meter: Meter | null = null
  #decoder: CopyDecoder | 'unreadable' | null = null
  #urls: ResultsUrls | null = null
  #isEdited = false
  #isHeld = false
  #isStreamed = false
  #call: UpstreamCall | null = null
  #usageAdded = false
  #begun = false
  #keepsLast = false
  #isLast = false
  #hasObject = false
  // While either is true, upstream is not read: the client is full, or the decoded copy is behind.
  #isClientFull = false
  #behind: Promise<void> | null = null
  readonly #silence = new Silence()

  constructor(parts: PipelineParts) {
    this.#parts = parts
    this.#answer = parts.createAnswer(() => this.onDrain())
  }

  attach(call: UpstreamCall, usageAdded: boolean): void {
    this.#call = call
    this.#usageAdded = usageAdded
  }

  get replyHead(): ReplyHead | null {
    return this.#replyHead
  }

  get bytesOut(): number {
    return this.#answer.bytesOut
  }

  get bytesHeld(): number {
    return this.#answer.bytesHeld
  }

  get isStreamed(): boolean {
    return this.#isStreamed
  }

  get isNearlyDone(): boolean {
    return this.#isHeld || this.#stage !== 'content'
  }

  get isError(): boolean {
    return this.#replyHead !== null && this.#replyHead.status >= 300
  }

  get shown(): Shown {
    return this.#meter?.shown ?? NOTHING_SHOWN
  }

  get times(): ReplyTimes {
    return this.#silence.timesAt(this.#parts.nowMs())
  }

  get #stage(): Stage {
    return this.#meter?.stage ?? 'content'
  }

  head(head: ReplyHead): void {
    const { reader } = this.#parts
    const { status, reason, headers } = head
    if (status < 200) {
      this.#answer.interim(head)
      return
    }
    this.#replyHead = head
    const isSuccess = status >= 200 && status < 300
    const come = this.#figuresCome(reader !== null && isSuccess, headers)
    this.#isHeld = come.when === 'whole'
    const isEvents = isEventStream(firstValue(headers, 'content-type') ?? '')
    this.#isStreamed = come.when === 'after' || isEvents
    if (isSuccess) this.#observe(head, isEvents)
    this.#urls = createUrlRewriter(this.#parts, status, headers)
    this.#isEdited ||= this.#urls !== null
    this.#answer.begin({ status, reason, headers: this.#isEdited ? withoutOutdated(headers) : headers }, come)
    // In an encoded stream the last event is not recognised in time, and an image stream has several final events.
    this.#keepsLast =
      this.#answer.hasTrailers &&
      isEvents &&
      reader !== 'images' &&
      firstValue(headers, 'content-encoding') === undefined
  }

  /**
   * Connects the meter to the reply or to a decoded copy. The meter misses no byte: upstream waits if it is behind. It
   * also removes injected usage.
   */
  #observe({ status, headers }: ReplyHead, isEvents: boolean): void {
    const read = this.#parts.reader ?? this.#parts.shows
    if (read === null) return
    const coding = codingOf(firstValue(headers, 'content-encoding'))
    this.#isEdited = this.#usageAdded && isEvents && coding === 'identity'
    const contentType = firstValue(headers, 'content-type')
    const meter = createMeter(read, { status, contentType }, this.#isEdited ? cutUsage : null)
    this.#meter = meter
    if (coding === 'unknown') this.#decoder = 'unreadable'
    if (typeof coding === 'string') return
    // A buffered reply may wait for its decoded copy; a streamed one is delayed only to bound memory.
    const backlogBytesMax = this.#isHeld ? HELD_OBSERVER_BACKLOG_BYTES_MAX : OBSERVER_BACKLOG_BYTES_MAX
    const look = (bytes: Buffer) => {
      meter.write(bytes)
      this.#noteProgress(meter)
    }
    this.#decoder = decodeCopy(coding.coding, DECODED_REPLY_BYTES_MAX, look, { backlogBytesMax })
  }

  data(chunk: Buffer): boolean {
    if (!this.#begun) {
      this.#begun = true
      this.#parts.onFirstByte()
    }
    const kept = this.#read(chunk)
    this.#parts.look(chunk)
    const bytes = kept === null || this.#urls === null ? kept : this.#urls.write(kept)
    if (bytes !== null) this.#isClientFull = !this.#deliver(bytes)
    const mayGoOn = !this.#isClientFull && this.#behind === null
    if (!mayGoOn) this.#silence.pause(this.#parts.nowMs())
    return mayGoOn
  }

  #read(chunk: Buffer): Buffer | null {
    const meter = this.#meter
    if (meter === null || this.#decoder === 'unreadable') return chunk
    if (this.#decoder !== null) {
      const behind = this.#decoder.write(chunk)
      if (behind !== null && behind !== this.#behind) this.#waitForCopy(behind)
      return chunk
    }
    const kept = meter.write(chunk)
    this.#noteProgress(meter)
    return kept
  }

  #noteProgress(meter: Meter): void {
    if (meter.hasBegun) this.#silence.see(meter.visibleBytes, this.#parts.nowMs())
    const { onObject } = this.#parts
    if (onObject === null || this.#hasObject || !this.#isStreamed) return
    const { shown } = meter
    if ((shown.objectId ?? null) === null) return
    this.#hasObject = true
    onObject(shown)
  }

  #resume(): void {
    if (this.#isClientFull || this.#behind !== null) return
    this.#silence.resume(this.#parts.nowMs())
    this.#call?.resume()
  }

  /** The copy catches up even if client or upstream are gone, so this always ends. */
  #waitForCopy(behind: Promise<void>): void {
    this.#behind = behind
    behind.then(() => {
      if (this.#behind !== behind) return
      this.#behind = null
      this.#resume()
    })
  }

  onDrain(): void {
    this.#isClientFull = false
    this.#resume()
  }

  async observed(whole: boolean): Promise<Metered | null> {
    const meter = this.#meter
    // The client left before upstream answered: there is a bill, but no reply to read.
    if (meter === null)
      return this.#replyHead === null && this.#parts.reader !== null ? new SilentMeter().end(false) : null
    if (this.#decoder === null) return meter.end(whole)
    if (this.#decoder === 'unreadable') return { ...meter.end(false), faults: ['unreadable'] }
    const state = await this.#decoder.end()
    return meter.end(whole && state === 'whole')
  }

  finish(figures: Figures | null, trailers: string[]): void {
    this.#deliverRest()
    this.#answer.finish(figures, this.#isEdited ? withoutOutdated(trailers) : trailers)
  }

  cut(): void {
    this.#deliverRest()
    this.#answer.cut()
  }

  #deliverRest(): void {
    const rest = this.#urls?.end() ?? this.#meter?.rest?.() ?? null
    if (rest !== null && rest.length > 0) this.#deliver(rest)
    this.#urls = null
    this.#meter = null
  }

  /** False: the client applies back-pressure. The last event of a stream is buffered for the figures; everything else passes. */
  #deliver(bytes: Buffer): boolean {
    const answer = this.#answer
    if (!this.#keepsLast || this.#stage !== 'over') return answer.data(bytes)
    const at = this.#isLast ? 0 : lastEventAt(bytes)
    this.#isLast = true
    const hasRoom = at === 0 || answer.data(bytes.subarray(0, at))
    return answer.keepLast(bytes.subarray(at)) && hasRoom
  }

  #figuresCome(costs: boolean, headers: string[]): FiguresCome {
    const isJson = isJsonType(firstValue(headers, 'content-type') ?? '')
    if (!costs && !(isJson && this.#parts.holdJson)) {
      return {
        when: 'now',
        figures: { costNanos: 0n, listNanos: 0n, balanceNanos: this.#parts.balanceNanos },
      }
    }
    return { when: isJson ? 'whole' : 'after' }
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
