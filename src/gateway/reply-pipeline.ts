import { firstValue, type RawHeaders } from '../http/raw-headers.ts'
import type { ReplyReceiver, UpstreamCall } from '../http/upstream-call.ts'
import { limits } from '../kernel/limits.ts'
import { type Borrowed, copyIfBorrowed } from '../kernel/memory.ts'
import type { Nanos } from '../kernel/money.ts'
import { codingOf } from '../metering/content-coding.ts'
import { type CopyDecoder, decodeCopy } from '../metering/decode-copy.ts'
import {
  type Meter,
  MeterAround,
  type Metered,
  NOTHING_SHOWN,
  type Shown,
  SilentMeter,
  type Stage,
} from '../metering/meter.ts'
import type { UsageReader } from '../providers/endpoint.ts'
import { createMeter, isJsonType } from '../providers/surfaces.ts'
import type { Answer, Figures, FiguresCome, ReplyHead } from './answer.ts'
import { createUrlRewriter, createUsageRemover, type ReplyEditor } from './edit-bodies.ts'
import { Silence } from './estimate-usage.ts'
import { withoutOutdated } from './forwarded-headers.ts'

export interface PipelineParts {
  /** Makes the answer that the reply goes to. `onDrain`: the client has room again. */
  createAnswer(onDrain: () => void): Answer
  /** The reader of the usage; null where the reply costs nothing. */
  readonly reader: UsageReader | null
  /** The reader of an earlier call's cost in a reply that costs nothing itself. */
  readonly shows: UsageReader | null
  /** The path template of the endpoint; empty for a path that is in no table. */
  readonly template: string
  /** The origin at which the client finds this gateway, if addresses in the reply are to lead there. */
  readonly origin: string | null
  /** The balance before this call. */
  readonly balanceNanos: Nanos | null
  /** A JSON reply is kept back though its figures are known, until the body taps are done with it. */
  readonly holdJson: boolean
  nowMs(): number
  onFirstByte(): void
  /** Sees each chunk as upstream sent it. */
  look(chunk: Borrowed): void
  /** Called once, when a stream names the object that the call makes. Null for calls that make none. */
  readonly onObject: ((named: Shown) => void) | null
}

/** The way of a reply from upstream to the client: observed, rid of the usage that we asked for, and handed to the answer. */
export class ReplyPipeline implements ReplyReceiver {
  readonly #parts: PipelineParts
  readonly #answer: Answer
  #replyHead: ReplyHead | null = null
  #observer: Observer | null = null
  #editor: ReplyEditor | null = null
  #isHeld = false
  #isStreamed = false
  #drained: (() => void) | null = null
  #call: UpstreamCall | null = null
  #usageAdded = false
  #begun = false
  #keepsLast = false
  #isLast = false
  #hasObject = false
  // The three waits during which upstream is not read: for the client, for the editor of the reply, for the observer.
  #isClientFull = false
  #lastWait: Promise<unknown> | null = null
  #behind: Promise<void> | null = null
  readonly #silence: Silence

  constructor(parts: PipelineParts) {
    this.#parts = parts
    this.#answer = parts.createAnswer(() => this.onDrain())
    this.#silence = new Silence(parts.nowMs())
  }

  /** Attaches the call upstream that this is the reply of; `usageAdded`: usage was asked for in the client's place. */
  attach(call: UpstreamCall, usageAdded: boolean): void {
    this.#call = call
    this.#usageAdded = usageAdded
  }

  /** Upstream's head, if it has come. */
  get replyHead(): ReplyHead | null {
    return this.#replyHead
  }

  /** Bytes of the body that were written to the client. */
  get bytesOut(): number {
    return this.#answer.bytesOut
  }

  /** Bytes of the body that are held to be written with the figures. */
  get bytesHeld(): number {
    return this.#answer.bytesHeld
  }

  get isStreamed(): boolean {
    return this.#isStreamed
  }

  /** No output of the model has come yet. */
  get isSilent(): boolean {
    return (this.#observer?.visibleBytes ?? 0) === 0
  }

  /** The reply is worth reading to its end though the client has left: the usage, which tells its cost, is on its way. */
  get isNearlyDone(): boolean {
    return this.#isHeld || this.#stage !== 'content'
  }

  /** Upstream answered with a status that is no success. */
  get isError(): boolean {
    return this.#replyHead !== null && this.#replyHead.status >= 300
  }

  get shown(): Shown {
    return this.#observer?.shown ?? NOTHING_SHOWN
  }

  /** How long the reply has shown nothing that the model wrote. */
  get silentMs(): number {
    return this.#silence.until(this.#parts.nowMs())
  }

  /** How long upstream was not read, because the client did not read. */
  get pausedMs(): number {
    return this.#silence.pausedMs
  }

  get #stage(): Stage {
    return this.#observer?.stage ?? 'content'
  }

  head(head: ReplyHead): void {
    const { reader, shows } = this.#parts
    const answer = this.#answer
    const { status, reason, headers } = head
    if (status < 200) {
      answer.interim(head)
      return
    }
    this.#replyHead = head
    const isSuccess = status >= 200 && status < 300
    const costs = reader !== null && isSuccess
    const come = this.#figuresCome(costs, headers)
    this.#isHeld = come.when === 'whole'
    const read = reader ?? shows
    if (read !== null && isSuccess)
      this.#observer = observe(read, status, headers, this.#isHeld, () => this.#tellObject())
    this.#editor = this.#usageAdded
      ? createUsageRemover(status, headers)
      : createUrlRewriter(this.#parts, status, headers)
    this.#isStreamed = come.when === 'after' || isEventStream(headers)
    answer.begin(
      { status, reason, headers: this.#editor === null ? headers : withoutOutdated(headers) },
      come,
    )
    // The last event of an encoded stream is not known in time, and a stream of images ends more than once.
    this.#keepsLast =
      answer.hasTrailers &&
      isEventStream(headers) &&
      reader !== 'images' &&
      firstValue(headers, 'content-encoding') === undefined
  }

  data(chunk: Borrowed): boolean {
    if (!this.#begun) {
      this.#begun = true
      this.#parts.onFirstByte()
    }
    if (this.#observer !== null) {
      const behind = this.#observer.see(chunk)
      if (behind !== null && behind !== this.#behind) this.#waitForObserver(behind)
      if (this.#parts.onObject !== null) this.#tellObject()
      this.#silence.see(this.#observer.visibleBytes, this.#parts.nowMs())
    }
    this.#parts.look(chunk)
    if (this.#editor === null) this.#isClientFull = !this.#deliver(chunk)
    else {
      const wait = this.#editor.write(copyIfBorrowed(chunk), this.#take)
      if (wait !== null) this.#waitForEditor(wait)
    }
    const mayGoOn = this.#mayGoOn
    if (!mayGoOn) this.#silence.pause(this.#parts.nowMs())
    return mayGoOn
  }

  #tellObject(): void {
    const { onObject } = this.#parts
    if (onObject === null || this.#hasObject || !this.#isStreamed) return
    const { shown } = this
    if ((shown.objectId ?? null) === null) return
    this.#hasObject = true
    onObject(shown)
  }

  get #mayGoOn(): boolean {
    return !this.#isClientFull && this.#lastWait === null && this.#behind === null
  }

  #resume(): void {
    if (!this.#mayGoOn) return
    this.#silence.resume(this.#parts.nowMs())
    this.#call?.resume()
  }

  #waitForEditor(wait: Promise<'open' | 'broken'>): void {
    // One read may bring many chunks: upstream goes on when the last of them has found room.
    this.#lastWait = wait
    wait.then((state) => {
      if (state !== 'open') this.#call?.abandon()
      else if (this.#lastWait === wait) {
        this.#lastWait = null
        this.#resume()
      }
    })
  }

  /** The observer catches up whatever becomes of the client and of upstream, so this always ends. */
  #waitForObserver(behind: Promise<void>): void {
    this.#behind = behind
    behind.then(() => {
      if (this.#behind !== behind) return
      this.#behind = null
      this.#resume()
    })
  }

  /** The client has room again, or is gone. */
  onDrain(): void {
    this.#isClientFull = false
    if (this.#drained !== null) {
      this.#drained()
      this.#drained = null
    } else this.#resume()
  }

  /** The usage that the observer found, where there was an observer. */
  async observed(whole: boolean): Promise<Metered | null> {
    if (this.#observer !== null) return await this.#observer.end(whole)
    // The client left before upstream answered: there is a bill, and no reply that the bill could be made from.
    return this.#replyHead === null && this.#parts.reader !== null ? new SilentMeter().end(false) : null
  }

  async finish(figures: Figures | null, trailers: string[]): Promise<void> {
    const answer = this.#answer
    const whole = this.#editor === null || (await this.#editor.end(this.#take)) === 'whole'
    if (whole) answer.finish(figures, this.#editor === null ? trailers : withoutOutdated(trailers))
    else answer.cut()
  }

  async cut(): Promise<void> {
    await this.#editor?.breakOff(this.#take)
    this.#answer.cut()
  }

  /** Gives back the memory of the editor, and ends its wait for the client. */
  dispose(): void {
    this.#editor?.destroy()
    this.#drained?.()
  }

  /** False: the client has no room. The last event of a stream is kept back for the figures; all else passes. */
  #deliver(bytes: Borrowed): boolean {
    const answer = this.#answer
    if (!this.#keepsLast || this.#stage !== 'over') return answer.data(bytes)
    const at = this.#isLast ? 0 : lastEventAt(bytes)
    this.#isLast = true
    const hasRoom = at === 0 || answer.data(bytes.subarray(0, at))
    return answer.keepLast(bytes.subarray(at)) && hasRoom
  }

  readonly #take = (bytes: Borrowed): Promise<void> | null => {
    if (this.#deliver(bytes)) return null
    return new Promise((resolve) => {
      this.#drained = resolve
    })
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

/** The offset at which the last event that ends in these bytes begins, or 0 if the event began before them. */
function lastEventAt(bytes: Borrowed): number {
  let end = bytes.length
  while (end > 0 && (bytes[end - 1] === NEWLINE || bytes[end - 1] === RETURN)) end--
  const unix = bytes.lastIndexOf('\n\n', Math.max(0, end - 1))
  const dos = bytes.lastIndexOf('\r\n\r\n', Math.max(0, end - 1))
  return Math.max(unix === -1 ? 0 : unix + 2, dos === -1 ? 0 : dos + 4)
}

const [NEWLINE, RETURN] = [0x0a, 0x0d]

function isEventStream(headers: string[]): boolean {
  return /^\s*text\/event-stream\b/i.test(firstValue(headers, 'content-type') ?? '')
}

/**
 * The observer looks at a reply as it passes. It cannot change or fail the reply, and misses no byte: upstream waits instead.
 * The meter reads a decoded copy of a reply that is encoded; the bytes that go to the client are not touched.
 */
class Observer extends MeterAround {
  /** Null where there is nothing to decode; `unreadable` where the coding is not known. */
  readonly #decoder: CopyDecoder | 'unreadable' | null

  constructor(meter: Meter, decoder: CopyDecoder | 'unreadable' | null) {
    super(meter)
    this.#decoder = decoder
  }

  /** A promise means: the observer is behind, upstream has to wait for it. Null for every reply that is not encoded. */
  see(chunk: Borrowed): Promise<void> | null {
    if (this.#decoder === null) this.inner.write(chunk)
    else if (this.#decoder !== 'unreadable') return this.#decoder.write(chunk)
    return null
  }

  end(whole: boolean): Metered | Promise<Metered> {
    if (this.#decoder === null) return this.inner.end(whole)
    if (this.#decoder === 'unreadable') return { ...this.inner.end(false), faults: ['unreadable'] }
    return this.#decoder.end().then((state) => this.inner.end(whole && state === 'whole'))
  }
}

/**
 * A reply that is held back until it was observed may as well wait for the observer; a reply that streams is delayed only
 * where memory would grow.
 */
function observe(
  reader: UsageReader,
  status: number,
  headers: RawHeaders,
  isHeld: boolean,
  onDecoded: () => void,
): Observer {
  const meter = createMeter(reader, { status, contentType: firstValue(headers, 'content-type') })
  const coding = codingOf(firstValue(headers, 'content-encoding'))
  if (coding === 'identity') return new Observer(meter, null)
  if (coding === 'unknown') return new Observer(meter, 'unreadable')
  const backlogBytesMax = isHeld ? limits.heldObserverBacklogBytesMax : limits.observerBacklogBytesMax
  const look = (bytes: Borrowed) => {
    meter.write(bytes)
    onDecoded()
  }
  const decoder = decodeCopy(coding.coding, limits.decodedReplyBytesMax, look, { backlogBytesMax })
  return new Observer(meter, decoder)
}
