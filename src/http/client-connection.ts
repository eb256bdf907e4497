import { channel } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { limits } from '../kernel/limits.ts'
import { ConnectionMemory, IncomingRequest, type RequestSource } from './incoming-request.ts'
import { type MessageHead, MessageReader, type MessageReceiver, type WireError } from './message-reader.ts'
import { adoptSocket, RawConnection } from './node-sockets.ts'
import { OutgoingReply } from './outgoing-reply.ts'
import { firstValue, hasHeader, tokensOf } from './raw-headers.ts'

const REQUESTS_AHEAD_MAX = 16

/** Callbacks from a connection to the server that accepted it. None of them may throw. */
export interface ConnectionOwner {
  readonly isDraining: boolean
  monotonicMs(): number
  nowMs(): number
  onRequest(request: IncomingRequest, reply: OutgoingReply, expects: Expects): void
  /** The bytes are not a request, and no reply has begun for them. The owner must end the connection. */
  onBroken(socket: Socket, error: WireError, head: string): void
  onConnect(socket: Socket, head: string): void
  onClosed(connection: ClientConnection): void
}

export type Expects = 'nothing' | 'continue' | 'something_else'

interface Turn {
  readonly request: IncomingRequest
  readonly reply: OutgoingReply
  readonly expects: Expects
}

const requestWhole = channel('tollgate.request.whole')
const replyFinished = channel('tollgate.reply.finished')

export const HEAD_TIMEOUT = 'TOLLGATE_HEAD_TIMEOUT'

const CONTINUE = /(?:^|\W)100-continue(?:$|\W)/i

/** A client's connection. A request is handled once the reply to the previous one was sent. */
export class ClientConnection implements MessageReceiver, RequestSource {
  readonly socket: Socket
  readonly #wire: Socket
  readonly memory = new ConnectionMemory()
  readonly #owner: ConnectionOwner
  readonly #reader: MessageReader
  readonly #turns: Turn[] = []
  #arriving: IncomingRequest | null = null
  #isLast = false
  /** Receives the bytes after the last request, if it asked for an upgrade. */
  #raw: RawConnection | null = null
  readonly #timeouts: ConnectionTimeouts
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
    this.#timeouts = new ConnectionTimeouts(owner.monotonicMs())
    this.#reader = new MessageReader('request', this, limits)
    socket.on('end', this.#onEnd)
    socket.on('drain', this.#onDrain)
    // Errors are handled at 'close'. A TLS socket does not close by itself after bytes that it cannot decrypt.
    socket.on('error', () => socket.destroy())
    socket.on('close', this.#onClose)
  }

  get isIdle(): boolean {
    return this.#turns.length === 0 && !this.#timeouts.headBegun
  }

  get replies(): readonly OutgoingReply[] {
    return this.#turns.map(({ reply }) => reply)
  }

  checkTime(nowMs: number): void {
    const reply = this.#turns[0]?.reply
    const takenBytes = reply?.ended === true && !reply.writableFinished ? reply.bytesTaken : null
    const timeout = this.#timeouts.check(nowMs, takenBytes)
    if (timeout === 'head_late' && this.#turns.length === 0) {
      this.#isLast = true
      this.#owner.onBroken(this.socket, headTimeout(), '')
    } else if (timeout === 'not_taken' || (timeout === 'idle' && this.#turns.length === 0)) {
      this.socket.destroy()
    }
  }

  destroy(): void {
    this.socket.destroy()
  }

  flowChanged(): void {
    if (this.#raw !== null && this.#arriving === null) return
    const isFull = this.#arriving?.isFull === true
    if (isFull && this.#arriving !== this.#turns[0]?.request && this.#mayDropAhead()) this.#dropAhead()
    else if (isFull) this.socket.pause()
    else if (this.socket.isPaused()) this.socket.resume()
  }

  head(head: MessageHead): void {
    if (this.#isLast) return
    this.#timeouts.headCame()
    // Pipelined requests beyond the limit are dropped, with `Connection: close`: if they were left unread, we would not
    // notice that the client has left. An answer to a CONNECT would overtake earlier ones.
    if (this.#turns.length > (head.method === 'CONNECT' ? 0 : REQUESTS_AHEAD_MAX)) {
      this.#endWithLastTurn()
      return
    }
    if (head.method === 'CONNECT') {
      this.#isLast = true
      this.#owner.onConnect(this.socket, headTextOf(head))
      return
    }
    const request = new IncomingRequest(head, this)
    const expects = expectationOf(head)
    if (asksForWebSocket(head)) this.#raw = new RawConnection(this.socket)
    const reply = new OutgoingReply({
      socket: this.socket,
      method: head.method,
      httpVersion: head.httpVersion,
      // HTTP/1.0 has no reliable keep-alive: proxies forward its header without understanding it.
      keepAlive:
        head.keepAlive && head.httpVersion !== '1.0' && !this.#owner.isDraining && this.#raw === null,
      expectsContinue: expects === 'continue',
      keepAliveSeconds: limits.keepAliveTimeoutMs / 1_000,
      nowMs: this.#owner.nowMs,
      reset: this.#reset,
      onFinished: this.#onReplied,
      raw: this.#raw,
    })
    this.#arriving = request
    this.#turns.push({ request, reply, expects })
    if (this.#turns.length === 1) this.#owner.onRequest(request, reply, expects)
  }

  data(chunk: Buffer): boolean {
    this.#arriving?.arrived(chunk)
    return true
  }

  end(): void {
    const request = this.#arriving
    if (request === null) return
    this.#arriving = null
    if (!request.keepAlive) this.#isLast = true
    if (this.#raw !== null) {
      this.#isLast = true
      this.#reader.stop()
    }
    request.arrivedWhole()
    if (requestWhole.hasSubscribers) requestWhole.publish({ request, socket: this.socket })
    this.#goOn()
  }

  beyond(chunk: Buffer): void {
    this.#raw?.arrived(chunk)
  }

  #onData(chunk: Buffer): void {
    if (this.#raw !== null && this.#arriving === null) {
      this.#raw.arrived(chunk)
      return
    }
    if (this.#isLast && this.#arriving === null) return
    const error = this.#reader.read(chunk)
    // An empty line does not begin a head: some clients send one after a body.
    if (this.isIdle && this.#reader.hasPartialMessage) this.#timeouts.headBegins(this.#owner.monotonicMs())
    if (error !== null) this.#onBroken(error, chunk)
    this.flowChanged()
  }

  readonly #onEnd = (): void => {
    const error = this.#isLast ? null : this.#reader.finish()
    if (error !== null && (this.#arriving !== null || this.#timeouts.headBegun)) this.#onBroken(error, null)
    // A half-closed client counts as gone: otherwise a client that left would look like one that waits.
    else if (this.#turns[0]?.reply.ended !== true) this.socket.destroy()
  }

  readonly #reset = (): void => {
    this.#wire.resetAndDestroy()
  }

  readonly #onDrain = (): void => {
    this.#turns[0]?.reply.drained()
    this.#raw?.drained()
  }

  readonly #onClose = (): void => {
    this.#reader.close()
    this.#isLast = true
    this.#arriving = null
    this.#owner.onClosed(this)
    for (const { request, reply } of this.#turns.splice(0)) {
      request.closed()
      reply.connectionClosed()
    }
    this.#raw?.closed()
  }

  readonly #onReplied = (reusable: boolean): void => {
    const request = this.#turns[0]?.request
    if (replyFinished.hasSubscribers) replyFinished.publish({ request })
    if (!reusable) this.#isLast = true
    if (request?.complete === false) request.discard(limits.earlyAnswerDrainMs)
    if (reusable) this.#goOn()
    // Read frames that were sent before the answer, or a reset would overtake the answer.
    else if (this.#raw !== null) this.#raw.end(limits.earlyAnswerDrainMs)
    else if (request?.complete === true) this.socket.destroySoon()
    // Read the rest of a request that was answered early, or a reset would overtake the answer.
    else this.socket.end()
  }

  /** If the head already promised keep-alive, the next request waits in the kernel instead. */
  #mayDropAhead(): boolean {
    return this.#turns.at(-2)?.reply.headersSent !== true
  }

  #dropAhead(): void {
    this.#arriving = null
    this.#turns.pop()
    this.#endWithLastTurn()
  }

  #endWithLastTurn(): void {
    this.#isLast = true
    const last = this.#turns.at(-1)
    if (last !== undefined) last.reply.shouldKeepAlive = false
  }

  /** Starts the next request once the previous one was received and answered in full. */
  #goOn(): void {
    const turn = this.#turns[0]
    if (turn === undefined || !turn.reply.writableFinished || !turn.request.complete) return
    if (this.socket.destroyed) return
    this.#turns.shift()
    const next = this.#turns[0]
    if (next !== undefined) {
      this.#owner.onRequest(next.request, next.reply, next.expects)
      this.flowChanged()
    } else if (this.#isLast || this.#owner.isDraining) this.socket.destroySoon()
    else this.#timeouts.allAnswered(this.#owner.monotonicMs(), this.#reader.hasPartialMessage)
  }

  #onBroken(error: WireError, chunk: Buffer | null): void {
    this.#isLast = true
    const last = this.#turns.at(-1)
    if (last === undefined) {
      this.#owner.onBroken(this.socket, error, chunk?.toString('latin1') ?? '')
    } else if (last.request.complete) {
      this.#endWithLastTurn()
    } else if (this.#turns.length === 1 && !last.reply.headersSent) {
      last.reply.supersede()
      this.#owner.onBroken(this.socket, error, headTextOf(last.request))
    } else this.socket.destroy()
  }
}

/** A request with a body is not an upgrade: a server that accepts it would read the body as frames. */
function asksForWebSocket({ isUpgrade, method, httpVersion, headers }: MessageHead): boolean {
  if (!isUpgrade || method !== 'GET' || httpVersion !== '1.1') return false
  const hasBody =
    hasHeader(headers, 'transfer-encoding') || Number(firstValue(headers, 'content-length') ?? 0) !== 0
  return !hasBody && tokensOf(headers, 'upgrade').includes('websocket')
}

function headTimeout(): WireError {
  return Object.assign(new Error('the head did not arrive in time'), { code: HEAD_TIMEOUT })
}

/** Any `Expect` line that contains `100-continue` counts. The head is validated as a whole later. */
function expectationOf({ headers, httpVersion }: MessageHead): Expects {
  const expect = httpVersion === '1.1' ? firstValue(headers, 'expect') : undefined
  if (expect === undefined) return 'nothing'
  return CONTINUE.test(expect) ? 'continue' : 'something_else'
}

/** Enough of a parsed head to choose the surface whose error shape to use. */
function headTextOf({
  method,
  target,
  httpVersion,
  headers,
}: Pick<MessageHead, 'method' | 'target' | 'httpVersion' | 'headers'>): string {
  const lines = [`${method} ${target} HTTP/${httpVersion}`]
  for (let i = 0; i < headers.length; i += 2) lines.push(`${headers[i]}: ${headers[i + 1]}`)
  return lines.join('\r\n')
}

type ConnectionTimeout = 'idle' | 'head_late' | 'not_taken'

export class ConnectionTimeouts {
  /** Since when the connection waits for a head; null while a request is being answered. */
  #waitingSinceMs: number | null
  #headBegun = false
  #isNew = true
  #taken: number | null = null
  #takenSinceMs = 0

  constructor(nowMs: number) {
    this.#waitingSinceMs = nowMs
  }

  get headBegun(): boolean {
    return this.#headBegun
  }

  headBegins(nowMs: number): void {
    this.#headBegun = true
    if (!this.#isNew) this.#waitingSinceMs = nowMs
  }

  headCame(): void {
    this.#headBegun = false
    this.#isNew = false
    this.#waitingSinceMs = null
  }

  allAnswered(nowMs: number, headBegun: boolean): void {
    this.#waitingSinceMs = nowMs
    this.#headBegun = headBegun
  }

  /** `takenBytes`: bytes sent so far of a reply that is complete but not flushed; null if there is none. */
  check(nowMs: number, takenBytes: number | null): ConnectionTimeout | null {
    if (takenBytes === null || takenBytes !== this.#taken) this.#takenSinceMs = nowMs
    this.#taken = takenBytes
    if (nowMs - this.#takenSinceMs >= limits.replyStallTimeoutMs) return 'not_taken'
    if (this.#waitingSinceMs === null) return null
    const waitedMs = nowMs - this.#waitingSinceMs
    // A connection that never sent a byte was opened in advance by a browser or a pool, which would read a 408 as the
    // answer to its next request.
    if (!this.#headBegun) {
      return waitedMs >= (this.#isNew ? limits.headTimeoutMs : limits.keepAliveTimeoutMs) ? 'idle' : null
    }
    return waitedMs >= limits.headTimeoutMs ? 'head_late' : null
  }
}
