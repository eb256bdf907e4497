import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { writeCoalesced } from './node-sockets.ts'
import { serialiseHeaders } from './raw-headers.ts'

/** The connection to upstream failed, or the request cannot be sent. The code distinguishes this from replies that are not HTTP. */
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
  /** All other lines, without those of the hop and of the framing, which only this file writes. */
  readonly headers: readonly string[]
  /** The length of a stream, which is chunked if this is null. 0: written even if the method needs no body. */
  readonly lengthBytes: number | null
  readonly body: UpstreamBody
  readonly upgrades?: boolean
}

export type UpstreamBody = readonly Buffer[] | Readable | null

const METHOD = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const TARGET = /^\/[\x21-\xff]*$/

const EXPECTS_BODY = /^(?:POST|PUT|PATCH|QUERY|PROPFIND|PROPPATCH)$/

export interface Sendable {
  readonly method: string
  readonly upgrades: boolean
  readonly head: string
  /** The head of a stream that turns out to be empty. */
  readonly emptyHead: string
  readonly lengthBytes: number | null
  readonly body: UpstreamBody
}

/** The head: host and connection first, the given lines, framing last. Throws if upstream could read it as another request. */
export function composeRequest(request: UpstreamRequest): Sendable {
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

const ONE_WRITE_BYTES = 16 * 1024

const BATCH_BYTES = 256 * 1024

/** Writes a request. Null: all of it was handed to the socket. */
export function sendRequest(
  socket: Socket,
  request: Sendable,
  onFailed: (error: Error) => void,
): Upload | null {
  const { head, body } = request
  if (body === null) socket.write(head, 'latin1')
  else if (!isPieces(body)) return new StreamUpload(socket, request, body, onFailed)
  else {
    const [first] = body
    // One write for head and body is cheaper than two.
    if (body.length > 1 || first === undefined || first.length > ONE_WRITE_BYTES)
      return new PieceUpload(socket, head, body)
    writeCoalesced(socket, head, first, '')
  }
  return null
}

class PieceUpload implements Upload {
  readonly #socket: Socket
  readonly #pieces: readonly Buffer[]
  #next = 0
  #isStopped = false

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
    while (!this.isDone && !this.#isStopped) {
      if (!this.#writeBatch()) return
    }
  }

  stop(): void {
    this.#isStopped = true
  }

  #writeBatch(): boolean {
    let hasRoom = true
    let bytes = 0
    this.#socket.cork()
    while (!this.isDone && bytes < BATCH_BYTES) {
      const piece = this.#pieces[this.#next] ?? Buffer.alloc(0)
      this.#next += 1
      bytes += piece.length
      hasRoom = this.#socket.write(piece)
    }
    this.#socket.uncork()
    return hasRoom
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
    const socket = this.#socket
    const isChunked = lengthBytes === null
    const before = this.#sentBytes === 0 ? head : ''
    this.#sentBytes += chunk.length
    if (!isChunked && this.#sentBytes > lengthBytes) {
      this.#onFailed(wrongLength())
      return
    }
    socket.cork()
    if (before !== '' || isChunked)
      socket.write(isChunked ? `${before}${chunk.length.toString(16)}\r\n` : before, 'latin1')
    let hasRoom = socket.write(chunk)
    if (isChunked) hasRoom = socket.write('\r\n', 'latin1')
    socket.uncork()
    if (!hasRoom) this.#body.pause()
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
  return unsendable('the body is not as long as it says')
}

function unsendable(message: string): Error {
  return new UpstreamBroke('UPSTREAM_UNSENDABLE', message)
}
