import type { Socket } from 'node:net'
import { limits } from '../kernel/limits.ts'
import { type RawConnection, writeParts } from './node-sockets.ts'
import { hasHeader, serialiseHeaders } from './raw-headers.ts'

/** The connection of a reply. */
export interface ReplyOwner {
  nowMs(): number
  reset(): void
  /** Called when the reply was sent. If it is not `reusable`, the connection ends. */
  replied(reusable: boolean): void
}

interface OutgoingOptions {
  readonly socket: Socket
  readonly method: string
  readonly httpVersion: string
  readonly keepAlive: boolean
  readonly expectsContinue: boolean
  readonly owner: ReplyOwner
  /** The raw connection, for upgrade requests; null for others. */
  readonly raw: RawConnection | null
}

const EMPTY = Buffer.alloc(0)

export class OutgoingReply {
  readonly whenDrained = new Listeners()
  /** Fires once when the reply is over, even if not all of it was sent. */
  readonly whenClosed = new Listeners()
  shouldKeepAlive: boolean
  /** 0 until the head was composed. */
  status = 0
  readonly #options: OutgoingOptions
  #fate: 'open' | 'sent' | 'gone' = 'open'
  #head = ''
  #framing: 'none' | 'length' | 'chunked' | 'close' = 'none'
  #hasContinued = false
  #end: 'open' | 'whole' | 'cut' = 'open'
  #unwritten = 0

  constructor(options: OutgoingOptions) {
    this.#options = options
    this.shouldKeepAlive = options.keepAlive
  }

  get headersSent(): boolean {
    return this.status !== 0
  }

  get destroyed(): boolean {
    return this.#fate === 'gone'
  }

  get writableFinished(): boolean {
    return this.#fate === 'sent'
  }

  get isOver(): boolean {
    return this.#fate !== 'open'
  }

  get expectsContinue(): boolean {
    return this.#options.expectsContinue
  }

  /** Whether the whole reply was written. It may not have been sent yet. */
  get ended(): boolean {
    return this.#end !== 'open'
  }

  /** Sends `100 Continue` to a client that waits for it before it sends the body. */
  writeContinue(): void {
    if (!this.expectsContinue || this.destroyed || this.headersSent) return
    this.#hasContinued = true
    this.#options.socket.write('HTTP/1.1 100 Continue\r\n\r\n', 'latin1')
  }

  writeInterim(status: number, reason: string, lines: readonly string[]): void {
    if (this.destroyed || this.headersSent) return
    this.#options.socket.write(`${statusLine(status, reason)}${serialiseHeaders(lines)}\r\n`, 'latin1')
  }

  /** Composes the head. It is sent with the first body bytes, or when flushed. */
  writeHead(status: number, reason: string | undefined, lines: readonly string[], withDate = true): void {
    const { method, httpVersion, expectsContinue } = this.#options
    this.status = status
    const hasCoding = hasHeader(lines, 'transfer-encoding')
    const speaks11 = httpVersion === '1.1'
    const hasBody = method !== 'HEAD' && status !== 204 && status !== 304
    // Without the 100, the client may send its body or not, so the start of the next request is unknown.
    if (expectsContinue && !this.#hasContinued) this.shouldKeepAlive = false
    if (!hasBody) this.#framing = 'none'
    else if (hasCoding) this.#framing = 'chunked'
    else if (hasHeader(lines, 'content-length')) this.#framing = 'length'
    else this.#framing = speaks11 ? 'chunked' : 'close'
    if (this.#framing === 'close') this.shouldKeepAlive = false
    this.#head =
      statusLine(status, reason) +
      serialiseHeaders(lines) +
      (withDate && !hasHeader(lines, 'date') ? dateLine(this.#options.owner.nowMs()) : '') +
      (this.shouldKeepAlive
        ? `Connection: keep-alive\r\nKeep-Alive: timeout=${limits.keepAliveTimeoutMs / 1_000}\r\n`
        : 'Connection: close\r\n') +
      (this.#framing === 'chunked' && !hasCoding ? 'Transfer-Encoding: chunked\r\n\r\n' : '\r\n')
  }

  get maySwitch(): boolean {
    return this.#options.raw !== null
  }

  /** Answers 101 with exactly these lines. The bytes that follow on the connection are not HTTP. */
  switchProtocols(reason: string | undefined, lines: readonly string[]): RawConnection | null {
    const { raw } = this.#options
    if (this.destroyed || this.headersSent || raw === null) return null
    this.status = 101
    this.#options.socket.write(`${statusLine(101, reason)}${serialiseHeaders(lines)}\r\n`, 'latin1')
    return raw
  }

  cork(): void {
    this.#options.socket.cork()
  }

  uncork(): void {
    this.#options.socket.uncork()
  }

  flushHead(): void {
    if (this.#head !== '' && !this.destroyed) this.#send('', EMPTY, '')
  }

  /** False: wait for `drain`. Chunks in the shared read buffer may be reused when this returns; others may not. */
  write(chunk: Buffer): boolean {
    if (this.destroyed || this.#end === 'whole' || this.#framing === 'none' || chunk.length === 0) return true
    if (this.#framing !== 'chunked') return this.#send('', chunk, '')
    return this.#send(`${chunk.length.toString(16)}\r\n`, chunk, '\r\n')
  }

  end(chunk: Buffer = EMPTY, trailers: readonly string[] = []): void {
    if (this.destroyed || this.#end === 'whole') return
    const last = this.#framing === 'none' ? EMPTY : chunk
    const closing = this.#framing === 'chunked' ? `0\r\n${serialiseHeaders(trailers)}\r\n` : ''
    if (last.length > 0 && this.#framing === 'chunked') {
      this.#send(`${last.length.toString(16)}\r\n`, last, `\r\n${closing}`)
    } else if (last.length > 0 || closing !== '' || this.#head !== '') this.#send('', last, closing)
    this.#end = 'whole'
    if (this.#unwritten === 0) this.#finish()
  }

  /** Ends an incomplete reply so that it does not look complete: by a reset, if a close would end the body. */
  cut(): void {
    const { socket } = this.#options
    if (this.destroyed) return
    this.flushHead()
    this.#end = 'cut'
    if (this.#framing === 'close') socket.write(EMPTY, () => this.reset())
    else socket.end(() => socket.destroy())
  }

  reset(): void {
    this.#options.owner.reset()
  }

  destroy(): void {
    if (this.writableFinished) return
    this.#fate = 'gone'
    this.#options.socket.destroy()
  }

  /** The owner of the connection writes to the socket from now on. */
  supersede(): void {
    this.#fate = 'gone'
  }

  connectionClosed(): void {
    if (this.writableFinished) return
    this.#fate = 'gone'
    this.whenClosed.fire()
  }

  #send(before: string, chunk: Buffer, after: string): boolean {
    const text = this.#head + before
    this.#head = ''
    this.#unwritten += 1
    return writeParts(this.#options.socket, text, chunk, after, this.#onWritten)
  }

  readonly #onWritten = (error?: Error | null): void => {
    this.#unwritten -= 1
    if (error == null && this.#end === 'whole' && this.#unwritten === 0) this.#finish()
  }

  #finish(): void {
    if (this.isOver) return
    this.#fate = 'sent'
    this.whenClosed.fire()
    this.#options.owner.replied(this.shouldKeepAlive)
  }
}

let dateText = ''
let dateUntilMs = 0

/** The `Date` line, cached for a second, and renewed if the clock was set back. */
export function dateLine(nowMs: number): string {
  if (nowMs >= dateUntilMs || nowMs < dateUntilMs - 1_000) {
    dateUntilMs = nowMs - (nowMs % 1_000) + 1_000
    dateText = `Date: ${new Date(nowMs).toUTCString()}\r\n`
  }
  return dateText
}

/** Reason phrases. node:http has them too, but nothing else loads this module at startup. */
const REASONS: Readonly<Record<number, string>> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  204: 'No Content',
  302: 'Found',
  303: 'See Other',
  304: 'Not Modified',
  307: 'Temporary Redirect',
  308: 'Permanent Redirect',
  400: 'Bad Request',
  401: 'Unauthorized',
  402: 'Payment Required',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  406: 'Not Acceptable',
  408: 'Request Timeout',
  409: 'Conflict',
  410: 'Gone',
  411: 'Length Required',
  412: 'Precondition Failed',
  413: 'Payload Too Large',
  415: 'Unsupported Media Type',
  417: 'Expectation Failed',
  422: 'Unprocessable Entity',
  426: 'Upgrade Required',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
}

export function statusLine(status: number, reason: string | undefined): string {
  return `HTTP/1.1 ${status} ${reason ?? REASONS[status] ?? 'unknown'}\r\n`
}

/** A list of listeners. Node's EventEmitter takes four times as long, and every call has a few. */
export class Listeners {
  #all: readonly (() => void)[] = NO_LISTENERS

  add(listener: () => void): void {
    this.#all = this.#all === NO_LISTENERS ? [listener] : [...this.#all, listener]
  }

  remove(listener: () => void): void {
    this.#all = this.#all.filter((each) => each !== listener)
  }

  /** Calls the listeners in order. Listeners added or removed meanwhile do not affect this call. */
  fire(): void {
    for (const listener of this.#all) listener()
  }
}

const NO_LISTENERS: readonly (() => void)[] = []
