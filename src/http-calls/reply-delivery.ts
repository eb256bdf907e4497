import type { ReservedBytes } from '../calls/key-shares.ts'
import { ChunkList } from '../kernel/chunk-list.ts'
import { limits } from '../kernel/limits.ts'
import { type Figures, rewriteResultsUrls } from './permitted-changes.ts'
import type { ReplyObserver } from './reply-observer.ts'
import type { ReplyWriter } from './reply-writer.ts'

/** How the body of a reply reaches the client. It is chosen at the head. */
export interface ReplyDelivery {
  /** Bytes that wait for the figures. */
  readonly bytesWaiting: number
  /** False: the client applies back-pressure. */
  deliver(chunk: Buffer): boolean
  /** The chunks that waited, which the caller must write. */
  takeWaiting(figures: Figures | null): readonly Buffer[]
  /** The client's connection has closed. */
  close(): void
}

/** Each chunk is sent when it arrives. */
export class Passing implements ReplyDelivery {
  readonly bytesWaiting = 0
  readonly #writer: ReplyWriter

  constructor(writer: ReplyWriter) {
    this.#writer = writer
  }

  deliver(chunk: Buffer): boolean {
    return this.#writer.write(chunk)
  }

  takeWaiting(): readonly Buffer[] {
    return []
  }

  close(): void {}
}

/** The whole body waits until the figures are known, so that they can be headers. A body that is too large passes. */
export class Buffered implements ReplyDelivery {
  readonly #writer: ReplyWriter
  readonly #memory: ReservedBytes
  /** The gateway's origin, if URLs in the body are rewritten. */
  readonly #origin: string | null
  readonly #chunks = new ChunkList()
  /** Time to upstream's head, needed if the reply has to be streamed after all. */
  readonly #headMs: number
  #isWaiting = true

  constructor(writer: ReplyWriter, memory: ReservedBytes, origin: string | null) {
    this.#writer = writer
    this.#memory = memory
    this.#origin = origin
    this.#headMs = writer.upstreamMs()
  }

  get bytesWaiting(): number {
    return this.#isWaiting ? this.#memory.bytes : 0
  }

  deliver(chunk: Buffer): boolean {
    if (!this.#isWaiting) return this.#writer.write(chunk)
    const fits = this.#memory.bytes + chunk.length <= limits.heldReplyBytesMax
    if (fits && this.#memory.tryReserve(chunk.length)) {
      this.#chunks.append(chunk)
      return true
    }
    this.#isWaiting = false
    this.#writer.begin(null, true, this.#headMs)
    for (const held of this.#chunks.all()) this.#writer.write(held)
    return this.#writer.write(chunk)
  }

  takeWaiting(figures: Figures | null): readonly Buffer[] {
    if (!this.#isWaiting) return []
    this.#isWaiting = false
    this.#writer.begin(figures)
    return this.#origin === null
      ? this.#chunks.all()
      : [rewriteResultsUrls(this.#chunks.joined(), this.#origin)]
  }

  /** The memory is freed only now: until the connection closes, the bytes are in the buffer of its socket. */
  close(): void {
    this.#memory.release()
    this.#isWaiting = false
    this.#chunks.clear()
  }
}

/** The last event of a stream waits for the figures, for up to a second. A larger event does not wait. */
const LAST_EVENT_WAIT_MS = 1_000
export const LAST_EVENT_BYTES_MAX = 64 * 1024

/** Each chunk is sent when it arrives, except the last event: clients stop reading there and would miss the trailers. */
export class Tailed implements ReplyDelivery {
  readonly #writer: ReplyWriter
  readonly #observer: ReplyObserver
  #hasLastEvent = false
  #waiting: Buffer[] = []
  #bytes = 0
  #timer: NodeJS.Timeout | null = null

  constructor(writer: ReplyWriter, observer: ReplyObserver) {
    this.#writer = writer
    this.#observer = observer
  }

  get bytesWaiting(): number {
    return this.#bytes
  }

  deliver(chunk: Buffer): boolean {
    if (this.#observer.stage !== 'over') return this.#writer.write(chunk)
    const at = this.#hasLastEvent ? 0 : lastEventAt(chunk)
    this.#hasLastEvent = true
    const isWritable = at === 0 || this.#writer.write(chunk.subarray(0, at))
    return this.#wait(chunk.subarray(at)) && isWritable
  }

  takeWaiting(): readonly Buffer[] {
    const waiting = this.#waiting
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    if (waiting.length === 0) return waiting
    this.#waiting = []
    this.#bytes = 0
    return [Buffer.concat(waiting)]
  }

  close(): void {
    this.takeWaiting()
  }

  #wait(bytes: Buffer): boolean {
    this.#waiting.push(Buffer.from(bytes))
    this.#bytes += bytes.length
    if (this.#bytes > LAST_EVENT_BYTES_MAX) return this.#release()
    this.#timer ??= setTimeout(() => this.#release(), LAST_EVENT_WAIT_MS)
    return true
  }

  #release(): boolean {
    let isWritable = true
    for (const bytes of this.takeWaiting()) isWritable = this.#writer.write(bytes)
    return isWritable
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
