import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { UNSENDABLE, writeCoalesced } from './message-writer.ts'
import { NameMemo } from './raw-headers.ts'

/** A request that must not be sent, because upstream could read it as a different one. */
export class Unsendable extends Error {
  readonly code = 'TOLLGATE_UNSENDABLE'
}

export interface UpstreamRequest {
  readonly method: string
  readonly target: string
  readonly headers: string[]
  readonly body: UpstreamBody
  readonly upgrades?: boolean
}

/** Buffers are sent with their length; a stream is chunked unless a length is given. */
export type UpstreamBody = Buffer | readonly Buffer[] | Readable | null

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const TARGET = /^\/[\x21-\xff]*$/

const EXPECTS_BODY = /^(?:POST|PUT|PATCH|QUERY|PROPFIND|PROPPATCH)$/

type Role = 'line' | 'host' | 'length' | 'refused'

/** Hop-by-hop lines, which only this file writes. */
const REFUSED = /^(?:transfer-encoding|connection|keep-alive|upgrade|expect)$/

const roles = new NameMemo<Role>((name) => {
  if (name === 'host') return 'host'
  if (name === 'content-length') return 'length'
  return REFUSED.test(name) || !TOKEN.test(name) ? 'refused' : 'line'
})

export interface Sendable {
  readonly method: string
  readonly upgrades: boolean
  readonly head: string
  /** The head of a stream that turns out to be empty. */
  readonly emptyHead: string
  readonly lengthBytes: number | null
  readonly body: UpstreamBody
}

/**
 * The head: host and connection first, the given lines, framing last. llhttp never passes a line that these checks
 * refuse with an `Unsendable`.
 */
export function composeRequest(request: UpstreamRequest): Sendable {
  const { method, target, headers, body, upgrades = false } = request
  if (!TOKEN.test(method) || !TARGET.test(target)) throw new Unsendable('a request line that cannot be sent')
  let host: string | null = null
  let stated: string | null = null
  let lines = ''
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? ''
    const value = headers[i + 1] ?? ''
    if (UNSENDABLE.test(value)) throw new Unsendable('a header value that cannot be sent')
    const role = roles.get(name)
    if (role === 'line') lines += `${name}: ${value}\r\n`
    else if (role === 'host' && host === null) host = value
    else if (role === 'length' && stated === null) stated = value
    else throw new Unsendable('a header line that cannot be sent')
  }
  if (host === null) throw new Unsendable('a request without a host')
  const lengthBytes = lengthOf(body, stated)
  const connection = upgrades ? 'connection: Upgrade\r\nupgrade: websocket' : 'connection: keep-alive'
  const text = `${method} ${target} HTTP/1.1\r\nhost: ${host}\r\n${connection}\r\n${lines}`
  // An unstated length of 0 is written only for methods with a body.
  const zero = stated !== null || EXPECTS_BODY.test(method) ? 'content-length: 0\r\n\r\n' : '\r\n'
  const emptyHead = text + zero
  let head = emptyHead
  if (lengthBytes === null) head = `${text}transfer-encoding: chunked\r\n\r\n`
  else if (lengthBytes > 0) head = `${text}content-length: ${lengthBytes}\r\n\r\n`
  return { method, upgrades, head, emptyHead, lengthBytes, body }
}

function lengthOf(body: UpstreamBody, stated: string | null): number | null {
  if (stated !== null && !/^\d{1,15}$/.test(stated)) throw new Unsendable('a length that is no number')
  const announced = stated === null ? null : Number(stated)
  const actual = bytesIn(body)
  if (actual === null) return announced
  if (announced !== null && announced !== actual) throw new Unsendable(WRONG_LENGTH)
  return actual
}

const WRONG_LENGTH = 'the body is not as long as it says'

function bytesIn(body: UpstreamBody): number | null {
  if (body === null) return 0
  if (Buffer.isBuffer(body)) return body.length
  return isPieces(body) ? body.reduce((bytes, piece) => bytes + piece.length, 0) : null
}

function isPieces(body: Readable | readonly Buffer[]): body is readonly Buffer[] {
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
  else if (!Buffer.isBuffer(body))
    return isPieces(body)
      ? new PieceUpload(socket, head, body)
      : new StreamUpload(socket, request, body, onFailed)
  else if (body.length <= ONE_WRITE_BYTES) writeCoalesced(socket, head, body, '')
  else {
    socket.cork()
    socket.write(head, 'latin1')
    socket.write(body)
    socket.uncork()
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
      this.#onFailed(new Unsendable(WRONG_LENGTH))
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
      this.#onFailed(new Unsendable(WRONG_LENGTH))
      return
    }
    if (this.#sentBytes === 0) this.#socket.write(emptyHead, 'latin1')
    else if (lengthBytes === null) this.#socket.write('0\r\n\r\n', 'latin1')
    this.isDone = true
    this.stop()
  }

  readonly #onClose = (): void => {
    if (!this.#isOver) this.#onFailed(this.#body.errored ?? new Unsendable('the body broke off'))
  }
}
