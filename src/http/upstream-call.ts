import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { limits } from '../kernel/limits.ts'
import type { MessageHead, MessageReceiver } from './message-reader.ts'
import { type RawConnection, writeParts } from './node-sockets.ts'
import { serialiseHeaders } from './raw-headers.ts'

/** Receives upstream's reply. If `data` returns false, call `resume()` later. */
export type ReplyReceiver = Pick<MessageReceiver, 'head' | 'data'>

/** How a call ended. Reported exactly once. */
export type CallEnd =
  | { readonly kind: 'complete'; readonly trailers: string[] }
  | { readonly kind: 'cut'; readonly error: Error }
  /** There was no response head. Upstream may have received a part (`sent`) or all (`whole`) of the request. */
  | {
      readonly kind: 'failed'
      readonly error: Error
      readonly sent: boolean
      readonly whole: boolean
    }
  | { readonly kind: 'switched'; readonly head: MessageHead; readonly connection: RawConnection }
  /** The client left, so the call was cancelled. `partly`: upstream cannot have the whole request. */
  | { readonly kind: 'abandoned'; readonly sent: boolean; readonly partly?: boolean }

export interface UpstreamCall {
  readonly ended: Promise<CallEnd>
  resume(): void
  abandon(): void
}

export const HANDSHAKE_TIMEOUT = 'UPSTREAM_HANDSHAKE_TIMEOUT'

interface CallCarrier {
  resume(): void
  /** Closes the connection. Returns whether the whole request had been handed to the socket. */
  abandon(): boolean
}

/** A request with its reply, from the pool to the connection that carries it. */
export class PooledCall implements UpstreamCall, MessageReceiver {
  readonly ended: Promise<CallEnd>
  readonly method: string
  /** The request asks for an upgrade. If upstream agrees, the call ends as `switched`. */
  readonly upgrades: boolean
  readonly #receiver: ReplyReceiver
  readonly #finish: (end: CallEnd) => void
  #sendable: Sendable | null
  #connection: CallCarrier | null = null
  #handshakeTimer: NodeJS.Timeout | undefined
  #isSent = false
  #hasHead = false
  #isOver = false

  constructor(sendable: Sendable, receiver: ReplyReceiver) {
    const { promise, resolve } = Promise.withResolvers<CallEnd>()
    this.ended = promise
    this.#finish = resolve
    this.method = sendable.method
    this.upgrades = sendable.upgrades
    this.#sendable = sendable
    this.#receiver = receiver
    // Watch handshake and body from the start: they may fail before there is a connection.
    if (sendable.upgrades)
      // The client of a WebSocket cannot tell a slow answer from a lost one.
      this.#handshakeTimer = setTimeout(() => {
        this.#breakOff(new UpstreamBroke(HANDSHAKE_TIMEOUT, 'upstream did not answer the handshake'))
      }, limits.socketHandshakeMs)
    if (sendable.body instanceof Readable) sendable.body.once('error', (error) => this.#breakOff(error))
  }

  /** Whether the reply's own head has arrived. Interim responses do not count. */
  get hasHead(): boolean {
    return this.#hasHead
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** The request, which is sent once and not retained. */
  begin(connection: CallCarrier): Sendable {
    const sendable = this.#sendable
    if (sendable === null) throw new Error('a request is sent once')
    this.#sendable = null
    this.#isSent = true
    this.assigned(connection)
    return sendable
  }

  assigned(connection: CallCarrier): void {
    this.#connection = connection
  }

  head(head: MessageHead): void {
    this.#hasHead = head.status >= 200
    if (this.#hasHead) clearTimeout(this.#handshakeTimer)
    try {
      this.#receiver.head(head)
    } catch (error) {
      this.#breakOff(error)
    }
  }

  data(chunk: Buffer): boolean {
    try {
      return this.#receiver.data(chunk)
    } catch (error) {
      this.#breakOff(error)
      return false
    }
  }

  end(trailers: string[]): void {
    this.#end({ kind: 'complete', trailers })
  }

  switched(head: MessageHead, connection: RawConnection): void {
    if (this.#isOver) connection.destroy()
    this.#end({ kind: 'switched', head, connection })
  }

  /** `whole`: the whole request was handed to the socket. */
  broken(error: Error, whole: boolean): void {
    if (this.#hasHead) this.#end({ kind: 'cut', error })
    else this.#end({ kind: 'failed', error, sent: this.#isSent, whole: this.#isSent && whole })
  }

  resume(): void {
    this.#connection?.resume()
  }

  abandon(): void {
    if (this.#isOver) return
    const partly = this.#connection?.abandon() === false
    this.#end({ kind: 'abandoned', sent: this.#isSent, partly })
  }

  #breakOff(cause: unknown): void {
    if (this.#isOver) return
    this.#connection?.abandon()
    this.broken(cause instanceof Error ? cause : new Error(String(cause)), false)
  }

  #end(end: CallEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#connection = null
    clearTimeout(this.#handshakeTimer)
    this.#finish(end)
  }
}

/** An error of the connection, unlike an error for a reply that is not HTTP. */
export class UpstreamBroke extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

export interface UpstreamRequest {
  readonly method: string
  readonly target: string
  readonly host: string
  /** All header lines, except those of the hop and the framing, which this file writes. */
  readonly headers: readonly string[]
  /** The length of a stream; null if it is chunked. 0 is written even if the method needs no body. */
  readonly lengthBytes: number | null
  readonly body: UpstreamBody
  readonly upgrades?: boolean
}

export type UpstreamBody = readonly Buffer[] | Readable | null

const METHOD = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const TARGET = /^\/[\x21-\xff]*$/

const EXPECTS_BODY = /^(?:POST|PUT|PATCH|QUERY|PROPFIND|PROPPATCH)$/

type Sendable = ReturnType<typeof composeRequest>

/** The head of a request. Throws if upstream could read it as another request. */
export function composeRequest(request: UpstreamRequest) {
  const { method, target, host, headers, body, upgrades = false } = request
  if (!METHOD.test(method) || !TARGET.test(target)) throw new Error('a request line that cannot be sent')
  let lengthBytes = body === null ? 0 : request.lengthBytes
  if (isPieces(body)) lengthBytes = body.reduce((bytes, piece) => bytes + piece.length, 0)
  const connection = upgrades ? 'connection: Upgrade\r\nupgrade: websocket' : 'connection: keep-alive'
  const lines = serialiseHeaders(headers)
  const text = `${method} ${target} HTTP/1.1\r\nhost: ${host}\r\n${connection}\r\n${lines}`
  // An unstated length of 0 is written only for methods with a body.
  const zero =
    request.lengthBytes !== null || EXPECTS_BODY.test(method) ? 'content-length: 0\r\n\r\n' : '\r\n'
  const emptyHead = text + zero
  let head = emptyHead
  if (lengthBytes === null) head = `${text}transfer-encoding: chunked\r\n\r\n`
  else if (lengthBytes > 0) head = `${text}content-length: ${lengthBytes}\r\n\r\n`
  return { method, upgrades, head, emptyHead, lengthBytes, body }
}

function isPieces(body: UpstreamBody): body is readonly Buffer[] {
  return Array.isArray(body)
}

export interface Upload {
  readonly isDone: boolean
  drained(): void
  stop(): void
}

const BATCH_BYTES = 256 * 1024

/** Writes a request. Returns null if all of it was handed to the socket. */
export function sendRequest(
  socket: Socket,
  request: Sendable,
  onFailed: (error: Error) => void,
): Upload | null {
  const { head, body } = request
  if (body === null) socket.write(head, 'latin1')
  else if (!isPieces(body)) return new StreamUpload(socket, request, body, onFailed)
  else if (body.length !== 1) return new PieceUpload(socket, head, body)
  else writeParts(socket, head, body[0] as Buffer, '')
  return null
}

class PieceUpload implements Upload {
  readonly #socket: Socket
  readonly #pieces: readonly Buffer[]
  #next = 0

  constructor(socket: Socket, head: string, pieces: readonly Buffer[]) {
    this.#socket = socket
    this.#pieces = pieces
    socket.cork()
    socket.write(head, 'latin1')
    this.drained()
    socket.uncork()
  }

  get isDone(): boolean {
    return this.#next === this.#pieces.length
  }

  drained(): void {
    let isWritable = true
    while (isWritable && !this.isDone) isWritable = this.#writeBatch()
  }

  /** There is nothing to stop: no batch is written unless `drained` is called. */
  stop(): void {}

  #writeBatch(): boolean {
    let isWritable = true
    let bytes = 0
    this.#socket.cork()
    while (!this.isDone && bytes < BATCH_BYTES) {
      const piece = this.#pieces[this.#next] ?? Buffer.alloc(0)
      this.#next += 1
      bytes += piece.length
      isWritable = this.#socket.write(piece)
    }
    this.#socket.uncork()
    return isWritable
  }
}

/** Sends the head with the first body bytes, since only then is it certain that there is a body. */
class StreamUpload implements Upload {
  readonly #socket: Socket
  readonly #request: Sendable
  readonly #body: Readable
  readonly #onFailed: (error: Error) => void
  #sentBytes = 0
  #isOver = false
  isDone = false

  constructor(socket: Socket, request: Sendable, body: Readable, onFailed: (error: Error) => void) {
    this.#socket = socket
    this.#request = request
    this.#body = body
    this.#onFailed = onFailed
    body.on('data', this.#onData).on('end', this.#onEnd).on('close', this.#onClose)
    // A body that is already closed emits no 'close'.
    if (body.closed) process.nextTick(this.#onClose)
  }

  drained(): void {
    if (!this.#isOver) this.#body.resume()
  }

  stop(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#body.off('data', this.#onData).off('end', this.#onEnd).off('close', this.#onClose)
    this.#body.destroy()
  }

  readonly #onData = (chunk: Buffer): void => {
    if (chunk.length === 0) return
    const { head, lengthBytes } = this.#request
    const isChunked = lengthBytes === null
    const before = this.#sentBytes === 0 ? head : ''
    this.#sentBytes += chunk.length
    if (!isChunked && this.#sentBytes > lengthBytes) {
      this.#onFailed(wrongLength())
      return
    }
    const isWritable = isChunked
      ? writeParts(this.#socket, `${before}${chunk.length.toString(16)}\r\n`, chunk, '\r\n')
      : writeParts(this.#socket, before, chunk, '')
    if (!isWritable) this.#body.pause()
  }

  readonly #onEnd = (): void => {
    const { lengthBytes, emptyHead } = this.#request
    if (lengthBytes !== null && lengthBytes !== this.#sentBytes) {
      this.#onFailed(wrongLength())
      return
    }
    if (this.#sentBytes === 0) this.#socket.write(emptyHead, 'latin1')
    else if (lengthBytes === null) this.#socket.write('0\r\n\r\n', 'latin1')
    this.isDone = true
    this.stop()
  }

  readonly #onClose = (): void => {
    if (!this.#isOver) this.#onFailed(this.#body.errored ?? unsendable('the body broke off'))
  }
}

function wrongLength(): Error {
  return unsendable('the body does not have its stated length')
}

function unsendable(message: string): Error {
  return new UpstreamBroke('UPSTREAM_UNSENDABLE', message)
}
