import { channel } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { limits } from '../kernel/limits.ts'
import { ConnectionMemory, IncomingRequest, type RequestSource } from './incoming-request.ts'
import {
  type MessageHead,
  MessageReader,
  type MessageReceiver,
  type WireError,
  wireError,
} from './message-reader.ts'
import { adoptSocket, RawConnection, stableCopy } from './node-sockets.ts'
import { OutgoingReply, type ReplyOwner } from './outgoing-reply.ts'
import { firstValue, hasHeader, tokensOf } from './raw-headers.ts'

/** Callbacks from a connection to the server that accepted it. None of them may throw. */
export interface ConnectionOwner {
  readonly isDraining: boolean
  monotonicMs(): number
  nowMs(): number
  onRequest(request: IncomingRequest, reply: OutgoingReply): void
  /** Called for bytes that are not a request, before a reply has begun. The owner must end the connection. */
  onBroken(socket: Socket, error: WireError, head: string): void
  onClosed(connection: ClientConnection): void
}

const requestWhole = channel('tollgate.request.whole')
const replyFinished = channel('tollgate.reply.finished')

const NOTHING = Buffer.alloc(0)

/** The statuses of malformed requests and of requests without a valid key. */
const REFUSED_STATUSES: ReadonlySet<number> = new Set([400, 401])

export const HEAD_TIMEOUT = 'TOLLGATE_HEAD_TIMEOUT'

/** Matches any `Expect` that contains `100-continue`. The head is validated as a whole later. */
const CONTINUE = /(?:^|\W)100-continue(?:$|\W)/i

/** A client's connection. Bytes after a request wait, without being parsed, until its reply was sent. */
export class ClientConnection implements MessageReceiver, RequestSource, ReplyOwner {
  readonly socket: Socket
  readonly #wire: Socket
  readonly memory = new ConnectionMemory()
  readonly #owner: ConnectionOwner
  readonly #reader: MessageReader
  #turn: { readonly request: IncomingRequest; readonly reply: OutgoingReply } | null = null
  #arriving: IncomingRequest | null = null
  #ahead: Buffer = NOTHING
  #isLast = false
  #refusedInRow = 0
  /** Receives the bytes after the last request, if it asked for an upgrade. */
  #raw: RawConnection | null = null
  readonly #wait: HeadWait
  readonly #stall = new ReplyStall()
  readonly remoteAddress: string
  readonly isEncrypted: boolean

  /** `wire` is the socket under a TLS socket. Null: the accepted socket is plain, and is taken over. */
  constructor(accepted: Socket, owner: ConnectionOwner, wire: Socket | null = null) {
    this.remoteAddress = accepted.remoteAddress ?? ''
    this.isEncrypted = wire !== null
    const onData = (chunk: Buffer) => this.#onData(chunk)
    // Decrypted chunks have their own memory.
    const socket = wire === null ? adoptSocket(accepted, onData) : accepted.on('data', onData)
    this.socket = socket
    this.#wire = wire ?? socket
    this.#owner = owner
    this.#wait = new HeadWait(owner.monotonicMs())
    this.#reader = new MessageReader('request', this)
    socket.on('end', () => this.#onEnd())
    socket.on('drain', () => this.#onDrain())
    // Errors are handled at 'close'. A TLS socket does not close by itself after bytes that it cannot decrypt.
    socket.on('error', () => socket.destroy())
    socket.on('close', () => this.#onClose())
  }

  get isIdle(): boolean {
    return this.#turn === null && !this.#wait.hasBegun
  }

  get reply(): OutgoingReply | null {
    return this.#turn?.reply ?? null
  }

  /** Checks all timeouts of the connection. Called once a second. */
  checkTimeouts(nowMs: number): void {
    if (this.#stall.isOver(this.#turn === null ? null : this.socket, nowMs)) this.socket.destroy()
    this.#arriving?.checkTimeouts(nowMs)
    if (!this.#wait.isOver(nowMs)) return
    if (this.#wait.hasBegun) this.#onBroken(wireError(HEAD_TIMEOUT), null)
    // Do not send a 408 on a connection opened in advance: it would be read as the answer to the next request.
    else this.socket.destroy()
  }

  nowMs(): number {
    return this.#owner.nowMs()
  }

  reset(): void {
    this.#wire.resetAndDestroy()
  }

  monotonicMs(): number {
    return this.#owner.monotonicMs()
  }

  destroy(): void {
    this.socket.destroy()
  }

  flowChanged(): void {
    if (this.#raw !== null && this.#arriving === null) return
    if (this.#arriving?.isFull === true || this.#ahead.length >= limits.bodyBytesAheadMax) this.socket.pause()
    else if (this.socket.isPaused()) this.socket.resume()
  }

  head(head: MessageHead): void {
    this.#wait.end()
    const request = new IncomingRequest(head, this)
    const expectsContinue =
      head.httpVersion === '1.1' && CONTINUE.test(firstValue(head.headers, 'expect') ?? '')
    if (asksForWebSocket(head)) this.#raw = new RawConnection(this.socket)
    const reply = new OutgoingReply({
      socket: this.socket,
      method: head.method,
      httpVersion: head.httpVersion,
      // HTTP/1.0 has no reliable keep-alive: proxies forward its header without understanding it.
      keepAlive:
        head.keepAlive &&
        head.httpVersion !== '1.0' &&
        !this.#owner.isDraining &&
        this.#raw === null &&
        this.#refusedInRow < limits.refusedInRowMax - 1,
      expectsContinue,
      owner: this,
      raw: this.#raw,
    })
    this.#arriving = request
    this.#turn = { request, reply }
    this.#owner.onRequest(request, reply)
  }

  data(chunk: Buffer): boolean {
    this.#arriving?.arrived(chunk)
    return true
  }

  end(): void {
    const request = this.#arriving
    if (request === null) return
    this.#arriving = null
    if (!request.head.keepAlive || this.#raw !== null) this.#isLast = true
    this.#reader.stop()
    request.arrivedWhole()
    if (requestWhole.hasSubscribers) requestWhole.publish({ request, socket: this.socket })
    this.#continue()
  }

  /** Too many waiting bytes are dropped: if we stopped reading, we would not notice that the client leaves. */
  afterMessage(chunk: Buffer): void {
    if (this.#raw !== null) this.#raw.arrived(chunk)
    else if (!this.#isLast)
      this.#ahead = this.#ahead.length === 0 ? stableCopy(chunk) : Buffer.concat([this.#ahead, chunk])
    const { reply } = this
    if (this.#ahead.length < limits.bodyBytesAheadMax || reply?.headersSent !== false) return
    reply.shouldKeepAlive = false
    this.#isLast = true
    this.#ahead = NOTHING
  }

  #onData(chunk: Buffer): void {
    if (this.#turn !== null && this.#arriving === null) this.afterMessage(chunk)
    else if (!this.#isLast || this.#arriving !== null) this.#read(chunk)
    this.flowChanged()
  }

  #read(chunk: Buffer): void {
    const error = this.#reader.read(chunk)
    // An empty line does not begin a head: some clients send one after a body.
    if (this.isIdle && this.#reader.hasPartialMessage) {
      this.#wait.beginHead(this.#owner.monotonicMs())
    }
    if (error !== null) this.#onBroken(error, chunk)
  }

  #onEnd(): void {
    const error = this.#isLast ? null : this.#reader.finish()
    this.#isLast = true
    if (error !== null && (this.#arriving !== null || this.#wait.hasBegun)) this.#onBroken(error, null)
    // Close the connection of a half-closed client, because it cannot be distinguished from one that has left.
    else if (this.reply?.ended !== true) this.socket.destroy()
  }

  #onDrain(): void {
    this.reply?.whenDrained.fire()
    this.#raw?.drained()
  }

  #onClose(): void {
    const turn = this.#turn
    this.#reader.close()
    this.#isLast = true
    this.#arriving = null
    this.#turn = null
    this.#ahead = NOTHING
    this.#owner.onClosed(this)
    turn?.request.closed()
    turn?.reply.connectionClosed()
    this.#raw?.closed()
  }

  replied(reusable: boolean): void {
    const request = this.#turn?.request
    const isRefused = REFUSED_STATUSES.has(this.reply?.status ?? 0)
    this.#refusedInRow = isRefused ? this.#refusedInRow + 1 : 0
    if (replyFinished.hasSubscribers) replyFinished.publish({ request })
    if (!reusable) this.#isLast = true
    if (request?.complete === false) request.discard()
    if (reusable) this.#continue()
    // Read the frames that the client sent before the answer. Otherwise a reset could overtake the answer.
    else if (this.#raw !== null) this.#raw.end(limits.earlyAnswerDrainMs)
    else if (request?.complete === true) this.socket.destroySoon()
    // Read the rest of a request that was answered early. Otherwise a reset could overtake the answer.
    else this.socket.end()
  }

  #continue(): void {
    const turn = this.#turn
    if (turn === null || !turn.reply.writableFinished || !turn.request.complete) return
    // Without this pause, thousands of pipelined requests would block other connections for seconds.
    if (this.#ahead.length > 0) setImmediate(() => this.#next())
    else this.#next()
  }

  #next(): void {
    if (this.#turn === null || this.socket.destroyed) return
    this.#turn = null
    if (this.#isLast || this.#owner.isDraining) {
      this.socket.destroySoon()
      return
    }
    const ahead = this.#ahead
    this.#ahead = NOTHING
    this.#wait.begin(this.#owner.monotonicMs())
    this.#reader.start()
    if (ahead.length > 0) this.#onData(ahead)
  }

  #onBroken(error: WireError, chunk: Buffer | null): void {
    const turn = this.#turn
    this.#isLast = true
    this.#wait.stop()
    if (turn === null) {
      const head = this.#reader.partialHead
      const rest = chunk?.toString('latin1') ?? ''
      this.#owner.onBroken(this.socket, error, head === null ? rest : `${headTextOf(head)}\r\n${rest}`)
    } else if (turn.reply.headersSent) this.socket.destroy()
    else {
      turn.reply.supersede()
      this.#owner.onBroken(this.socket, error, headTextOf(turn.request.head))
    }
  }
}

/** How long a connection waits for a head. */
class HeadWait {
  /** Null while a request is being answered. */
  #sinceMs: number | null
  #isFirst = true
  hasBegun = false

  constructor(nowMs: number) {
    this.#sinceMs = nowMs
  }

  begin(nowMs: number): void {
    this.#sinceMs = nowMs
  }

  /** The first bytes of a head. On a new connection, the time counts from its start. */
  beginHead(nowMs: number): void {
    this.hasBegun = true
    if (!this.#isFirst) this.#sinceMs = nowMs
  }

  end(): void {
    this.stop()
    this.hasBegun = false
    this.#isFirst = false
  }

  stop(): void {
    this.#sinceMs = null
  }

  isOver(nowMs: number): boolean {
    if (this.#sinceMs === null) return false
    const isShort = this.hasBegun || this.#isFirst
    return nowMs - this.#sinceMs >= (isShort ? limits.headTimeoutMs : limits.keepAliveTimeoutMs)
  }
}

/** Whether a client reads nothing of its reply. A slow reader may continue. */
class ReplyStall {
  /** Bytes that the client had accepted at the last check; null if nothing waits to be sent. */
  #bytesAccepted: number | null = null
  #sinceMs = 0

  isOver(replying: Socket | null, nowMs: number): boolean {
    const { writableLength = 0, bytesWritten = 0 } = replying ?? {}
    const bytesAccepted = writableLength > 0 ? bytesWritten - writableLength : null
    if (bytesAccepted === null || bytesAccepted !== this.#bytesAccepted) this.#sinceMs = nowMs
    this.#bytesAccepted = bytesAccepted
    return nowMs - this.#sinceMs >= limits.replyStallTimeoutMs
  }
}

/** Whether the request asks for a WebSocket. A request with a body does not: it would be read as frames. */
function asksForWebSocket({ isUpgrade, method, httpVersion, headers }: MessageHead): boolean {
  if (!isUpgrade || method !== 'GET' || httpVersion !== '1.1') return false
  const hasBody =
    hasHeader(headers, 'transfer-encoding') || Number(firstValue(headers, 'content-length') ?? 0) !== 0
  return !hasBody && tokensOf(headers, 'upgrade').includes('websocket')
}

function headTextOf({ method, target, headers }: Pick<MessageHead, 'method' | 'target' | 'headers'>): string {
  const lines = [`${method} ${target}`]
  for (let i = 0; i < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`)
  return lines.join('\r\n')
}
