import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { UNSENDABLE, writeCoalesced } from './message-writer.ts'
import { NameMemo } from './raw-headers.ts'

/** A request that must not be sent, because upstream could read it as a different one. */
export class Unsendable extends Error {
  readonly code = 'TOLLGATE_UNSENDABLE'
}

interface RequestHead {
  readonly text: string
  readonly lengthBytes: number | null
  /** The sender stated the length, so even 0 is written for every method. */
  readonly statesLength: boolean
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

/** The head: host and connection first, the given lines, framing last. llhttp never passes a line that these checks refuse. */
export function composeHead(request: UpstreamRequest): RequestHead | Unsendable {
  const { method, target, headers, body, upgrades = false } = request
  if (!TOKEN.test(method) || !TARGET.test(target)) return new Unsendable('a request line that cannot be sent')
  let host: string | null = null
  let lengthGiven: string | null = null
  let lines = ''
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? ''
    const value = headers[i + 1] ?? ''
    if (UNSENDABLE.test(value)) return new Unsendable('a header value that cannot be sent')
    const role = roles.get(name)
    if (role === 'line') lines += `${name}: ${value}\r\n`
    else if (role === 'host' && host === null) host = value
    else if (role === 'length' && lengthGiven === null) lengthGiven = value
    else return new Unsendable('a header line that cannot be sent')
  }
  if (host === null) return new Unsendable('a request without a host')
  const lengthBytes = lengthOf(body, lengthGiven)
  if (lengthBytes instanceof Unsendable) return lengthBytes
  const connection = upgrades ? 'connection: Upgrade\r\nupgrade: websocket' : 'connection: keep-alive'
  return {
    text: `${method} ${target} HTTP/1.1\r\nhost: ${host}\r\n${connection}\r\n${lines}`,
    lengthBytes,
    statesLength: lengthGiven !== null,
  }
}

/**
 * The framing line (length, chunked or none) and the empty line. An unstated length of 0 is written only for methods
 * with a body.
 */
function framingOf(
  method: string,
  { statesLength }: Pick<RequestHead, 'statesLength'>,
  lengthBytes: number | null,
): string {
  if (lengthBytes === null) return 'transfer-encoding: chunked\r\n\r\n'
  if (lengthBytes === 0 && !statesLength && !EXPECTS_BODY.test(method)) return '\r\n'
  return `content-length: ${lengthBytes}\r\n\r\n`
}

function lengthOf(body: UpstreamBody, given: string | null): number | null | Unsendable {
  if (given !== null && !/^\d{1,15}$/.test(given)) return new Unsendable('a length that is no number')
  const announced = given === null ? null : Number(given)
  const actual = bytesIn(body)
  if (actual === null) return announced
  if (announced !== null && announced !== actual)
    return new Unsendable('a body that is not as long as it says')
  return actual
}

function bytesIn(body: UpstreamBody): number | null {
  if (body === null) return 0
  if (Buffer.isBuffer(body)) return body.length
  if (!Array.isArray(body)) return null
  let bytes = 0
  for (const piece of body as readonly Buffer[]) bytes += piece.length
  return bytes
}

export interface Upload {
  readonly isDone: boolean
  drained(): void
  stop(): void
}

export interface Sendable {
  readonly method: string
  readonly head: RequestHead
  readonly body: UpstreamBody
}

const ONE_WRITE_BYTES = 16 * 1024

const BATCH_BYTES = 256 * 1024

/** Writes a request. Null: all of it was handed to the socket. */
export function sendRequest(
  socket: Socket,
  { method, head, body }: Sendable,
  onFailed: (error: Error) => void,
): Upload | null {
  if (body !== null && !Buffer.isBuffer(body) && !Array.isArray(body)) {
    return new StreamUpload(socket, method, head, body as Readable, onFailed)
  }
  const text = head.text + framingOf(method, head, head.lengthBytes)
  if (body === null) socket.write(text, 'latin1')
  else if (!Buffer.isBuffer(body)) return new PieceUpload(socket, text, body)
  else if (body.length <= ONE_WRITE_BYTES) writeCoalesced(socket, text, body, '')
  else {
    socket.cork()
    socket.write(text, 'latin1')
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
  readonly #method: string
  readonly #head: RequestHead
  readonly #body: Readable
  readonly #onFailed: (error: Error) => void
  #sentBytes = 0
  #isOver = false
  isDone = false

  constructor(
    socket: Socket,
    method: string,
    head: RequestHead,
    body: Readable,
    onFailed: (error: Error) => void,
  ) {
    this.#socket = socket
    this.#method = method
    this.#head = head
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
    const { lengthBytes } = this.#head
    if (lengthBytes !== null && this.#sentBytes + chunk.length > lengthBytes) this.#isNotAsLong()
    else if (!this.#write(chunk, lengthBytes === null)) this.#body.pause()
  }

  #write(chunk: Buffer, isChunked: boolean): boolean {
    const socket = this.#socket
    let before = isChunked ? `${chunk.length.toString(16)}\r\n` : ''
    if (this.#sentBytes === 0)
      before = this.#head.text + framingOf(this.#method, this.#head, this.#head.lengthBytes) + before
    this.#sentBytes += chunk.length
    socket.cork()
    if (before !== '') socket.write(before, 'latin1')
    let hasRoom = socket.write(chunk)
    if (isChunked) hasRoom = socket.write('\r\n', 'latin1')
    socket.uncork()
    return hasRoom
  }

  readonly #onEnd = (): void => {
    const { lengthBytes, text } = this.#head
    if (lengthBytes !== null && lengthBytes !== this.#sentBytes) {
      this.#isNotAsLong()
      return
    }
    if (this.#sentBytes === 0) this.#socket.write(text + framingOf(this.#method, this.#head, 0), 'latin1')
    else if (lengthBytes === null) this.#socket.write('0\r\n\r\n', 'latin1')
    this.isDone = true
    this.stop()
  }

  readonly #onClose = (): void => {
    if (!this.#isOver) this.#onFailed(this.#body.errored ?? new Unsendable('the body broke off'))
  }

  #isNotAsLong(): void {
    this.#onFailed(new Unsendable('the body is not as long as it says'))
  }
}
