import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { limits } from '../kernel/limits.ts'
import { type MessageHead, MessageReader, type MessageReceiver } from './message-reader.ts'
import { holdFailedWrites, RawConnection } from './node-sockets.ts'
import { firstValue, hasHeader } from './raw-headers.ts'
import { type Sendable, sendRequest, type Upload, UpstreamBroke } from './send-request.ts'

export type Connect = (onChunk: (chunk: Buffer) => void) => Socket

export interface ConnectionPool {
  idle(connection: UpstreamConnection): void
  unsolicited(): void
  /** The connection can carry no more requests. Idempotent. */
  gone(connection: UpstreamConnection): void
}

/** Receives upstream's reply. If `data` returns false, call `resume()` later. */
export type ReplyReceiver = Pick<MessageReceiver, 'head' | 'data'>

/** How a call ended. Reported exactly once. */
export type CallEnd =
  | { readonly kind: 'complete'; readonly trailers: string[] }
  | { readonly kind: 'cut'; readonly error: Error }
  /** No response head came. `sent`: upstream may have received part of the request; `whole`: all of it. */
  | {
      readonly kind: 'failed'
      readonly error: Error
      readonly sent: boolean
      readonly whole: boolean
    }
  | { readonly kind: 'switched'; readonly head: MessageHead; readonly connection: RawConnection }
  /** We cancelled the call because the client left. `partly`: upstream cannot have received the whole request. */
  | { readonly kind: 'abandoned'; readonly sent: boolean; readonly partly?: boolean }

export interface UpstreamCall {
  readonly ended: Promise<CallEnd>
  resume(): void
  abandon(): void
}

export const HANDSHAKE_TIMEOUT = 'UPSTREAM_HANDSHAKE_TIMEOUT'

/** A request with its reply, from the pool to the connection that carries it. */
export class PooledCall implements UpstreamCall, MessageReceiver {
  readonly ended: Promise<CallEnd>
  readonly method: string
  /** The request asks for an upgrade. If upstream agrees, the call ends as `switched`. */
  readonly upgrades: boolean
  readonly #receiver: ReplyReceiver
  readonly #finish: (end: CallEnd) => void
  #sendable: Sendable | null
  #connection: UpstreamConnection | null = null
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
    if (sendable.upgrades) this.#limitHandshake()
    if (sendable.body instanceof Readable) sendable.body.once('error', (error) => this.#breakOff(error))
  }

  /** A WebSocket handshake has a timeout: its client cannot tell a slow answer from a lost one. */
  #limitHandshake(): void {
    this.#handshakeTimer = setTimeout(() => {
      this.#breakOff(new UpstreamBroke(HANDSHAKE_TIMEOUT, 'upstream did not answer the handshake'))
    }, limits.socketHandshakeMs)
    this.ended.then(() => clearTimeout(this.#handshakeTimer))
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** The request, which is sent once and not retained. */
  begin(connection: UpstreamConnection): Sendable {
    const sendable = this.#sendable
    if (sendable === null) throw new Error('a request is sent once')
    this.#sendable = null
    this.#isSent = true
    this.assigned(connection)
    return sendable
  }

  assigned(connection: UpstreamConnection): void {
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
    this.#connection?.resume(this)
  }

  abandon(): void {
    if (this.#isOver) return
    const partly = this.#connection?.abandon(this) === false
    this.#end({ kind: 'abandoned', sent: this.#isSent, partly })
  }

  #breakOff(cause: unknown): void {
    if (this.#isOver) return
    this.#connection?.abandon(this)
    this.broken(cause instanceof Error ? cause : new Error(String(cause)), false)
  }

  #end(end: CallEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#connection = null
    this.#finish(end)
  }
}

const HEAD_LIMITS = { headBytesMax: limits.upstreamHeadBytesMax, headLinesMax: limits.headLinesMax }

export class UpstreamConnection implements MessageReceiver {
  readonly #socket: Socket
  readonly #owner: ConnectionPool
  readonly #reader = new MessageReader('response', this, HEAD_LIMITS)
  #carried: PooledCall | null
  #upload: Upload | null = null
  #isInterim = false
  #hasHead = false
  #wasReset = false
  #hasUnsolicited = false
  #reusableMs = 0
  #raw: RawConnection | null = null

  constructor(connect: Connect, first: PooledCall, owner: ConnectionPool) {
    const socket = connect((chunk) => this.#onData(chunk))
    this.#socket = socket
    this.#owner = owner
    this.#carried = first
    first.assigned(this)
    const timer = setTimeout(
      () =>
        this.fail(new UpstreamBroke('UPSTREAM_CONNECT_TIMEOUT', 'upstream did not accept the connection')),
      limits.upstreamConnectTimeoutMs,
    )
    socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer)
      if (this.#carried !== null) this.carry(this.#carried)
    })
    socket.on('drain', () => {
      this.#upload?.drained()
      this.#raw?.drained()
    })
    // Only an idle connection has a timeout.
    socket.on('timeout', () => this.close())
    socket.on('end', () => this.#onEnd())
    socket.on('error', (error) => this.fail(error))
    socket.on('close', () => {
      clearTimeout(timer)
      this.fail(new UpstreamBroke('UPSTREAM_CLOSED', 'the connection closed'))
      this.#reader.close()
      this.#raw?.closed()
    })
    holdFailedWrites(socket, () => {
      this.#wasReset = true
    })
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  carry(carried: PooledCall): void {
    this.#carried = carried
    this.#hasHead = false
    this.#isInterim = false
    this.#reusableMs = 0
    this.#socket.setTimeout(0)
    this.#reader.hasNoBody = carried.method === 'HEAD'
    this.#upload = sendRequest(this.#socket, carried.begin(this), (error) => this.fail(error))
  }

  resume(carried: PooledCall): void {
    if (this.#carried === carried) this.#socket.resume()
  }

  /** Closes the connection. Returns whether the whole request had been handed to the socket. */
  abandon(carried: PooledCall): boolean {
    const whole = this.#upload?.isDone ?? true
    if (this.#carried === carried) this.close()
    return whole
  }

  close(): void {
    this.#carried = null
    this.#upload?.stop()
    this.#upload = null
    this.#socket.destroy()
    this.#owner.gone(this)
  }

  fail(error: Error): void {
    const carried = this.#carried
    const whole = this.#upload?.isDone ?? true
    this.close()
    carried?.broken(error, whole)
  }

  head(head: MessageHead): void {
    const carried = this.#carried
    const { status } = head
    if (carried === null) this.#hasUnsolicited = true
    else if (status === 101 && carried.upgrades) {
      this.#carried = null
      this.#reader.stop()
      this.#raw = new RawConnection(this.#socket)
      carried.switched(head, this.#raw)
    } else if (status === 100 || status === 101) {
      this.fail(
        new UpstreamBroke('UPSTREAM_UNSOLICITED', `upstream answered ${status}, which was not asked for`),
      )
    } else if (status < 100 || status > 999) {
      this.fail(new Error(`upstream answered with status ${status}`))
    } else {
      this.#isInterim = status < 200
      this.#hasHead = !this.#isInterim
      if (this.#hasHead) this.#reusableMs = reusableMs(head, carried.method)
      carried.head(head)
    }
  }

  data(chunk: Buffer): boolean {
    if (this.#carried !== null && !this.#carried.data(chunk)) this.#socket.pause()
    return true
  }

  end(trailers: string[]): void {
    const carried = this.#carried
    if (carried === null) return
    if (this.#isInterim) {
      this.#isInterim = false
      return
    }
    this.#carried = null
    // Unsent bytes of this request would precede the next one.
    const isSent = (this.#upload?.isDone ?? true) && this.#socket.writableLength === 0
    if (!isSent) this.#reusableMs = 0
    this.#upload?.stop()
    this.#upload = null
    carried.end(trailers)
  }

  beyond(chunk: Buffer): void {
    this.#raw?.arrived(chunk)
  }

  #onData(chunk: Buffer): void {
    if (this.#raw !== null) {
      this.#raw.arrived(chunk)
      return
    }
    if (this.#carried === null) {
      this.#failUnsolicited()
      return
    }
    const error = this.#reader.read(chunk)
    if (this.#carried !== null) {
      if (error !== null) this.fail(error)
    } else if (this.isOpen && this.#raw === null) this.#rest(error)
  }

  #rest(error: Error | null): void {
    if (error !== null || this.#hasUnsolicited || this.#reader.hasPartialMessage) this.#failUnsolicited()
    else if (this.#reusableMs === 0) this.close()
    else {
      if (this.#socket.isPaused()) this.#socket.resume()
      this.#socket.setTimeout(this.#reusableMs)
      this.#owner.idle(this)
    }
  }

  #failUnsolicited(): void {
    const wasOpen = this.isOpen
    this.close()
    if (wasOpen) this.#owner.unsolicited()
  }

  #onEnd(): void {
    if (this.#raw !== null) return
    // A reset must not look like the normal end of a close-delimited body.
    if (this.#hasHead && !this.#wasReset) this.#reader.finish()
    this.fail(new UpstreamBroke('UPSTREAM_CLOSED', 'upstream closed the connection'))
  }
}

const IDLE_MS = 4_000
const IDLE_MS_MAX = 600_000

/** We close idle connections this long before upstream would, so that no request crosses upstream's close. */
const MARGIN_MS = 2_000

function reusableMs(head: MessageHead, method: string): number {
  const { headers } = head
  // If upstream wrongly sends a body for HEAD, it would become part of the next reply, perhaps another key's.
  if (method === 'HEAD' || !head.keepAlive || mayHaveUnannouncedBody(head)) return 0
  // A 408 may have been sent before our request arrived.
  if (head.status === 408) return 0
  const timeout = /timeout=(\d+)/.exec(firstValue(headers, 'keep-alive') ?? '')?.[1]
  if (timeout === undefined) return IDLE_MS
  return Math.max(0, Math.min(Number(timeout) * 1_000 - MARGIN_MS, IDLE_MS_MAX))
}

/** 204 and 304 have no body. If their headers announce one, upstream may send it, and it would be read as the next reply. */
function mayHaveUnannouncedBody({ status, headers }: MessageHead): boolean {
  if (status !== 204 && status !== 304) return false
  return Number(firstValue(headers, 'content-length') ?? 0) > 0 || hasHeader(headers, 'transfer-encoding')
}
