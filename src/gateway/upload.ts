import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { sendTogether } from '../http/send-together.ts'
import { framingOf, type RequestHead, Unsendable, type UpstreamBody } from './request-head.ts'

/** A body on its way that the socket could not take at once. */
export interface Upload {
  readonly isDone: boolean
  /** The socket has room again. */
  drained(): void
  /** Writes nothing more and lets go of the body. */
  stop(): void
}

export interface Sendable {
  readonly method: string
  readonly head: RequestHead
  readonly body: UpstreamBody
}

/** Up to here a body is copied behind its head, and both leave in one write. */
const ONE_WRITE_BYTES = 16 * 1024

/** Of a body in pieces, what is handed to the socket at once. */
const BATCH_BYTES = 256 * 1024

/** Writes a request. Null if all of it was handed to the socket. */
export function sendRequest(
  socket: Socket,
  { method, head, body }: Sendable,
  onFailed: (error: Error) => void,
): Upload | null {
  if (body !== null && !Buffer.isBuffer(body) && !Array.isArray(body)) {
    return new StreamUpload(socket, method, head, body as Readable, onFailed)
  }
  const text = head.text + framingOf(method, head.lengthBytes)
  if (body === null) socket.write(text, 'latin1')
  else if (!Buffer.isBuffer(body)) return new PieceUpload(socket, text, body)
  else if (body.length <= ONE_WRITE_BYTES) sendTogether(socket, text, body, '')
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

  /** Whether there is room for more. */
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

/** The head leaves with the first bytes of the body: only then it is certain that there is one. */
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
    // One that is gone already has nothing more to say.
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
      before = this.#head.text + framingOf(this.#method, this.#head.lengthBytes) + before
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
    if (this.#sentBytes === 0) this.#socket.write(text + framingOf(this.#method, 0), 'latin1')
    else if (lengthBytes === null) this.#socket.write('0\r\n\r\n', 'latin1')
    this.isDone = true
    this.stop()
  }

  /** Its error, if it had one, has been told before. */
  readonly #onClose = (): void => {
    if (!this.#isOver) this.#onFailed(this.#body.errored ?? new Unsendable('the body broke off'))
  }

  #isNotAsLong(): void {
    this.#onFailed(new Unsendable('the body is not as long as it says'))
  }
}
