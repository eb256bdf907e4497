import { limits } from '../kernel/limits.ts'
import { HeadText } from './head-text.ts'
import { CODE, HEAD, KIND, Llhttp, RUN_BYTES_MAX, SPAN, type SpanKind } from './llhttp.ts'
import { firstValue, hasHeader, valuesOf } from './raw-headers.ts'

export interface MessageHead {
  readonly httpVersion: string
  readonly headers: string[]
  readonly method: string
  readonly target: string
  readonly status: number
  readonly reason: string
  readonly keepAlive: boolean
  readonly isUpgrade: boolean
}

/** Receives a message. Its methods must not throw. */
export interface MessageReceiver {
  /** Called with each head. Interim responses (1xx) are separate messages. */
  head(head: MessageHead): void
  /** Called with each chunk, which is valid until this returns. Returns whether more chunks may follow at once. */
  readonly data: (chunk: Buffer) => boolean
  end(trailers: string[]): void
  readonly afterMessage?: (chunk: Buffer) => void
}

/** An error for bytes that are not HTTP, or for a head that is too large. The code is llhttp's, or one of this file. */
export interface WireError extends Error {
  readonly code: string
}

export const HEADER_OVERFLOW = 'HPE_HEADER_OVERFLOW'

/** The reader whose parser runs now. */
let running: MessageReader
/** The stages of a message. */
const [BETWEEN, IN_HEAD, IN_BODY, ENDED] = [0, 1, 2, 3]
let lastLoad = 0
let runEnd = 0

/** Reads messages with llhttp, which checks grammar and framing. Receivers are called after a run of the parser. */
export class MessageReader {
  static readonly #llhttp = new Llhttp({
    onBegin: () => running.#onBegin(),
    onSpan: (kind, from, to) => running.#onSpan(kind, from, to),
    onHead: (status, isUpgrade, keepAlive) => running.#onHead(status, isUpgrade, keepAlive),
    onEnd: () => running.#onEnd(),
  })

  hasNoBody = false
  readonly #receiver: MessageReceiver
  readonly #headBytesMax: number
  readonly #isRequest: boolean
  readonly #parser: number
  /** Whether parsing has stopped, for now or forever. The bytes after a CONNECT or an upgrade are not HTTP. */
  #isOver = false
  #isClosed = false
  #stage = BETWEEN
  readonly #text = new HeadText()
  #bytesSinceBody = 0
  #head: MessageHead | null = null
  #bodies: number[] = []
  #error: WireError | null = null
  #bodyBytesLeft = 0

  constructor(kind: 'request' | 'response', receiver: MessageReceiver) {
    this.#receiver = receiver
    this.#isRequest = kind === 'request'
    this.#headBytesMax = this.#isRequest ? limits.headBytesMax : limits.upstreamHeadBytesMax
    this.#parser = MessageReader.#llhttp.exports.llhttp_alloc(KIND[kind])
  }

  get hasPartialMessage(): boolean {
    return this.#stage !== BETWEEN
  }

  /** The part of an incomplete head that has been read; null if no target has been read. */
  get partialHead(): Pick<MessageHead, 'method' | 'target' | 'headers'> | null {
    const { target, lines } = this.#text
    if (this.#stage === BETWEEN || target === '') return null
    const method = MessageReader.#llhttp.method(this.#parser)
    return { method, target, headers: lines }
  }

  /** After an error, no further chunk may be read. */
  read(chunk: Buffer): WireError | null {
    for (let from = 0; from < chunk.length; from += RUN_BYTES_MAX) {
      const fits = chunk.length <= RUN_BYTES_MAX
      const error = this.#readPiece(fits ? chunk : chunk.subarray(from, from + RUN_BYTES_MAX))
      if (error !== null) return error
    }
    return null
  }

  /** Ends the reading when the connection has ended. Returns an error if a message was incomplete. */
  finish(): WireError | null {
    if (this.#stage === BETWEEN || this.#isOver) return null
    if (this.#bodyBytesLeft > 0) return wireError('HPE_INVALID_EOF_STATE')
    running = this
    const code = MessageReader.#llhttp.exports.llhttp_finish(this.#parser)
    if (code !== CODE.ok && code !== CODE.paused) return wireError(MessageReader.#llhttp.errorName(code))
    if (this.#stage === ENDED) this.#reportEnd()
    return null
  }

  /** Stops parsing. Bytes after the current message go to the receiver's `afterMessage`, until `start` is called. */
  stop(): void {
    this.#isOver = true
  }

  start(): void {
    this.#isOver = this.#isClosed
  }

  close(): void {
    if (!this.#isClosed) MessageReader.#llhttp.exports.llhttp_free(this.#parser)
    this.#isClosed = true
    this.#isOver = true
  }

  #readPiece(piece: Buffer): WireError | null {
    let ownLoad = -1
    let at = 0
    while (at < piece.length && !this.#isOver) {
      if (this.#bodyBytesLeft > 0) {
        at = this.#readBody(piece, at)
        continue
      }
      if (ownLoad !== lastLoad) {
        MessageReader.#llhttp.load(piece)
        lastLoad += 1
        ownLoad = lastLoad
      }
      const to = this.#run(piece, at)
      if (typeof to !== 'number') return to
      at = to
    }
    if (at < piece.length && !this.#isClosed) this.#receiver.afterMessage?.(piece.subarray(at))
    return null
  }

  #readBody(piece: Buffer, from: number): number {
    const to = Math.min(piece.length, from + this.#bodyBytesLeft)
    this.#bodyBytesLeft -= to - from
    this.#receiver.data(from === 0 && to === piece.length ? piece : piece.subarray(from, to))
    if (this.#bodyBytesLeft === 0) this.#reportEnd()
    return to
  }

  #run(piece: Buffer, from: number): number | WireError {
    const llhttp = MessageReader.#llhttp
    running = this
    runEnd = piece.length
    const code = llhttp.run(this.#parser, from, piece.length)
    this.#readText()
    const to = code === CODE.ok ? piece.length : llhttp.position(this.#parser)
    const isPaused = code === CODE.paused || code === CODE.pausedUpgrade
    if (isPaused) llhttp.resume(this.#parser, code)
    else if (code !== CODE.ok) this.#error ??= wireError(llhttp.errorName(code))
    this.#report(piece, to - from)
    return this.#error ?? to
  }

  #report(piece: Buffer, bytes: number): void {
    const head = this.#head
    const bodies = this.#bodies
    if (head !== null) {
      this.#head = null
      this.#receiver.head(head)
    }
    if (bodies.length > 0) {
      this.#bodies = []
      this.#bytesSinceBody = 0
      for (let i = 0; i < bodies.length; i += 2) this.#receiver.data(piece.subarray(bodies[i], bodies[i + 1]))
    } else if (this.#stage >= IN_BODY) {
      // Bytes between two chunks of a body are limited like a head.
      this.#bytesSinceBody += bytes
      if (this.#bytesSinceBody > this.#headBytesMax) this.#error ??= wireError(HEADER_OVERFLOW)
    }
    if (this.#stage === ENDED) this.#reportEnd()
  }

  #reportEnd(): void {
    const trailers = this.#text.takeLines()
    this.#stage = BETWEEN
    this.#receiver.end(trailers)
  }

  #onBegin(): void {
    this.#stage = IN_HEAD
    this.#text.begin()
  }

  #onSpan(kind: SpanKind, from: number, to: number): number {
    if (kind === SPAN.body) {
      this.#bodies.push(from, to)
      return CODE.ok
    }
    if (this.#text.add(kind, from, to) >= this.#headBytesMax) this.#error = wireError(HEADER_OVERFLOW)
    return this.#error === null ? CODE.ok : CODE.stopped
  }

  #onHead(status: number, isUpgrade: boolean, keepAlive: boolean): number {
    const llhttp = MessageReader.#llhttp
    this.#readText()
    if (this.#error !== null) return CODE.stopped
    const head: MessageHead = {
      httpVersion: llhttp.httpVersion(this.#parser),
      headers: this.#text.takeLines(),
      method: this.#isRequest ? llhttp.method(this.#parser) : '',
      target: this.#text.target,
      status,
      reason: this.#text.reason,
      keepAlive,
      isUpgrade,
    }
    const isCoded = hasHeader(head.headers, 'transfer-encoding')
    // llhttp ignores an empty `Transfer-Encoding`; other parsers may not.
    if (isCoded && valuesOf(head.headers, 'transfer-encoding').includes('')) {
      this.#error = wireError('HPE_INVALID_TRANSFER_ENCODING')
    }
    if (this.#error !== null) return CODE.stopped
    this.#head = head
    this.#stage = IN_BODY
    this.#bytesSinceBody = 0
    this.#text.endHead()
    this.#isOver = head.method === 'CONNECT'
    const isInterim = status >= 100 && status < 200
    if (this.hasNoBody || isInterim) return HEAD.noBody
    this.#bodyBytesLeft = isCoded ? 0 : bodySizeOf(head)
    return this.#bodyBytesLeft > 0 ? HEAD.bodyElsewhere : CODE.ok
  }

  #readText(): void {
    if (!this.#text.collect(MessageReader.#llhttp)) this.#error ??= wireError(HEADER_OVERFLOW)
    if (!this.#text.isHttp(MessageReader.#llhttp, runEnd)) this.#error ??= wireError('HPE_INVALID_CONSTANT')
  }

  #onEnd(): number {
    // llhttp does not get a body of known size, so for llhttp the message ends with the head.
    if (this.#bodyBytesLeft > 0) return CODE.ok
    this.#stage = ENDED
    return CODE.paused
  }
}

/** The body size if it is certain; otherwise llhttp finds the end. llhttp has already refused conflicting lengths. */
function bodySizeOf({ method, status, headers }: MessageHead): number {
  const mayLackBody = status === 0 ? method === 'CONNECT' : status < 200 || status === 204 || status === 304
  const length = mayLackBody ? undefined : firstValue(headers, 'content-length')
  const bytes = Number(length ?? 0)
  return Number.isSafeInteger(bytes) ? bytes : 0
}

export function wireError(code: string): WireError {
  return Object.assign(new Error(`the bytes are not a message: ${code}`), { code })
}
