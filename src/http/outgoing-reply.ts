import type { Socket } from 'node:net'
import { dateLine, framingHeaders, serialiseHeaders, statusLine, writeCoalesced } from './message-writer.ts'
import { lasting, type RawConnection } from './node-sockets.ts'

interface ReplySetting {
  readonly socket: Socket
  readonly method: string
  readonly httpVersion: string
  readonly keepAlive: boolean
  readonly expectsContinue: boolean
  readonly keepAliveSeconds: number
  nowMs(): number
  reset(): void
  /** The reply has left. If not `reusable`, the connection ends with it. */
  onFinished(reusable: boolean): void
  /** The connection, for a request that asked for another protocol; null for every other request. */
  readonly raw: RawConnection | null
}

type Framing = 'none' | 'length' | 'chunked' | 'close'

/** Up to this size copying a chunk to its frame is cheaper than sending the two as a list. */
const COPIED_BYTES_MAX = 16 * 1024

const EMPTY = Buffer.alloc(0)

export class OutgoingReply {
  readonly whenDrained = new Listeners()
  /** The reply is over, whether or not all of it was sent. Fires once. */
  readonly whenClosed = new Listeners()
  shouldKeepAlive: boolean
  sendDate = true
  headersSent = false
  destroyed = false
  closed = false
  writableFinished = false
  readonly #setting: ReplySetting
  readonly #socket: Socket
  #head = ''
  #framing: Framing = 'none'
  #trailers = ''
  #hasContinued = false
  #ended = false
  #isCut = false
  #unwritten = 0

  constructor(setting: ReplySetting) {
    this.#setting = setting
    this.#socket = setting.socket
    this.shouldKeepAlive = setting.keepAlive
  }

  get bytesTaken(): number {
    return this.#socket.bytesWritten - this.#socket.writableLength
  }

  /** The whole reply was handed over, though it may not have been sent yet. */
  get ended(): boolean {
    return this.#ended || this.#isCut
  }

  writeContinue(): void {
    if (this.destroyed || this.headersSent) return
    this.#hasContinued = true
    this.#socket.write('HTTP/1.1 100 Continue\r\n\r\n', 'latin1')
  }

  writeInterim(status: number, reason: string, lines: readonly string[]): void {
    if (this.destroyed || this.headersSent) return
    this.#socket.write(`${statusLine(status, reason)}${serialiseHeaders(lines)}\r\n`, 'latin1')
  }

  /** The head is made now and leaves with the first bytes of the body, or when it is flushed. */
  writeHead(status: number, reason: string | undefined, lines: readonly string[]): void {
    const { method, httpVersion, expectsContinue, keepAliveSeconds } = this.#setting
    const { hasLength, hasCoding, hasDate } = framingHeaders(lines)
    const speaks11 = httpVersion === '1.1'
    const hasBody = method !== 'HEAD' && status !== 204 && status !== 304
    // Without the 100 a client may send its body or not, so it is not known where the next request begins.
    if (expectsContinue && !this.#hasContinued) this.shouldKeepAlive = false
    if (!hasBody) this.#framing = 'none'
    else if (hasCoding) this.#framing = 'chunked'
    else if (hasLength) this.#framing = 'length'
    else this.#framing = speaks11 ? 'chunked' : 'close'
    if (this.#framing === 'close') this.shouldKeepAlive = false
    this.#head =
      statusLine(status, reason) +
      serialiseHeaders(lines) +
      (this.sendDate && !hasDate ? dateLine(this.#setting.nowMs()) : '') +
      (this.shouldKeepAlive
        ? `Connection: keep-alive\r\nKeep-Alive: timeout=${keepAliveSeconds}\r\n`
        : 'Connection: close\r\n') +
      (this.#framing === 'chunked' && !hasCoding ? 'Transfer-Encoding: chunked\r\n\r\n' : '\r\n')
    this.headersSent = true
  }

  get maySwitch(): boolean {
    return this.#setting.raw !== null
  }

  /** Answers 101 with these lines and no others. The bytes that follow on the connection are not HTTP. */
  switchProtocols(reason: string | undefined, lines: readonly string[]): RawConnection | null {
    const { raw } = this.#setting
    if (this.destroyed || this.headersSent || raw === null) return null
    this.headersSent = true
    this.#socket.write(`${statusLine(101, reason)}${serialiseHeaders(lines)}\r\n`, 'latin1')
    return raw
  }

  cork(): void {
    this.#socket.cork()
  }

  uncork(): void {
    this.#socket.uncork()
  }

  flushHead(): void {
    if (this.#head !== '' && !this.destroyed) this.#send('', EMPTY, '')
  }

  /** False: no room before `drain`. Bytes that have just arrived may be reused when this returns; others may not. */
  write(chunk: Buffer): boolean {
    if (this.destroyed || this.#ended || this.#framing === 'none' || chunk.length === 0) return true
    if (this.#framing !== 'chunked') return this.#send('', chunk, '')
    return this.#send(`${chunk.length.toString(16)}\r\n`, chunk, '\r\n')
  }

  /** Trailers; only a chunked body can have them. */
  addTrailers(lines: readonly string[]): void {
    this.#trailers += serialiseHeaders(lines)
  }

  end(chunk: Buffer = EMPTY): void {
    if (this.destroyed || this.#ended) return
    const last = this.#framing === 'none' ? EMPTY : chunk
    const closing = this.#framing === 'chunked' ? `0\r\n${this.#trailers}\r\n` : ''
    if (last.length > 0 && this.#framing === 'chunked') {
      this.#send(`${last.length.toString(16)}\r\n`, last, `\r\n${closing}`)
    } else if (last.length > 0 || closing !== '' || this.#head !== '') this.#send('', last, closing)
    this.#ended = true
    if (this.#unwritten === 0) this.#finish()
  }

  /**
   * Ends the connection where the framing says that more is to come: the part that was sent must not pass for the
   * whole, and still arrives. Where the end of the connection is the end of the body, only a reset shows that it was cut.
   */
  cut(): void {
    const socket = this.#socket
    if (this.destroyed) return
    this.flushHead()
    this.#isCut = true
    if (this.#framing === 'close') socket.write(EMPTY, () => this.reset())
    else socket.end(() => socket.destroy())
  }

  reset(): void {
    this.#setting.reset()
  }

  destroy(): void {
    if (this.closed) return
    this.destroyed = true
    this.#socket.destroy()
  }

  drained(): void {
    this.whenDrained.fire()
  }

  /** Another reply is written instead of this one. */
  supersede(): void {
    this.destroyed = true
  }

  connectionClosed(): void {
    if (this.closed) return
    this.destroyed = true
    this.closed = true
    this.whenClosed.fire()
  }

  #send(before: string, chunk: Buffer, after: string): boolean {
    const socket = this.#socket
    const head = this.#head + before
    this.#head = ''
    this.#unwritten += 1
    if (chunk.length <= COPIED_BYTES_MAX) return writeCoalesced(socket, head, chunk, after, this.#onWritten)
    const body = lasting(chunk)
    if (head === '' && after === '') return socket.write(body, this.#onWritten)
    socket.cork()
    if (head !== '') socket.write(head, 'latin1')
    if (after === '') socket.write(body, this.#onWritten)
    else {
      socket.write(body)
      socket.write(after, 'latin1', this.#onWritten)
    }
    socket.uncork()
    return !socket.writableNeedDrain
  }

  readonly #onWritten = (error?: Error | null): void => {
    this.#unwritten -= 1
    if (error == null && this.#ended && this.#unwritten === 0) this.#finish()
  }

  #finish(): void {
    if (this.writableFinished || this.closed) return
    this.writableFinished = true
    this.closed = true
    this.whenClosed.fire()
    this.#setting.onFinished(this.shouldKeepAlive)
  }
}

/** Node's emitter takes four times as long to make, to fill and to call, and every call has a few. */
export class Listeners {
  #all: readonly (() => void)[] = NONE

  add(listener: () => void): void {
    this.#all = this.#all === NONE ? [listener] : [...this.#all, listener]
  }

  remove(listener: () => void): void {
    this.#all = this.#all.filter((each) => each !== listener)
  }

  /** Calls the listeners in the order they were added. Listeners added or removed during the call have no effect on it. */
  fire(): void {
    for (const listener of this.#all) listener()
  }
}

const NONE: readonly (() => void)[] = []
