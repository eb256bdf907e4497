import { connect as connectPlain, isIP } from 'node:net'
import { Readable } from 'node:stream'
import { connect as connectSecurely, createSecureContext } from 'node:tls'
import { limits } from '../kernel/limits.ts'
import type { Log } from '../kernel/log.ts'
import type { Secret } from '../kernel/secret.ts'
import type { MessageHead, MessageReceiver } from './message-reader.ts'
import { type RawConnection, readInto } from './node-sockets.ts'
import { composeHead, type Sendable, Unsendable, type UpstreamRequest } from './send-request.ts'
import {
  type CarriedCall,
  type Connect,
  type ConnectionPool,
  UpstreamBroke,
  UpstreamConnection,
} from './upstream-connection.ts'

export const UPSTREAM_IDLE_CONNECTIONS_MAX = 1_000

export interface Upstream {
  readonly url: URL
  readonly key: Secret | null
  readonly pool: UpstreamPool
}

export function openUpstream({ url, key }: Pick<Upstream, 'url' | 'key'>, log: Pick<Log, 'error'>): Upstream {
  const onUnasked = () =>
    log.error(
      { upstream: url.host },
      'upstream sent bytes without a request; they were dropped, and its idle connections were closed',
    )
  return { url, key, pool: new UpstreamPool(connectorOf(url), onUnasked) }
}

const SWEEP_MS = 1_000

export interface Placed extends CarriedCall {
  readonly isOver: boolean
  placed(connection: UpstreamConnection): void
}

interface Idle {
  readonly connection: UpstreamConnection
  readonly untilMs: number
}

/** The connections to one upstream: one per call, and idle ones for the next calls. */
export class UpstreamPool implements ConnectionPool {
  readonly #connect: Connect
  readonly #onUnasked: () => void
  readonly #open = new Set<UpstreamConnection>()
  /** The connection that has been idle longest is used next: if upstream has closed it, we have probably noticed. */
  #idle: Idle[] = []
  #asked: Placed[] = []
  #sweep: NodeJS.Timeout | null = null
  #isDestroyed = false

  constructor(connect: Connect, onUnasked: () => void) {
    this.#connect = connect
    this.#onUnasked = onUnasked
  }

  place(call: Placed): void {
    // Bytes, an end or a reset may have arrived on an idle connection while we were busy, and must be read first: an
    // unsolicited reply would be taken for this call's reply. Sockets are polled once per turn of the event loop,
    // usually before this code, so wait for one whole turn.
    if (this.#idle.length === 0) this.#placeOnNew(call)
    else if (this.#asked.push(call) === 1) setImmediate(this.#afterThisTurn)
  }

  get connections(): { readonly busy: number; readonly idle: number } {
    const idle = this.#idle.length
    return { busy: this.#open.size - idle, idle }
  }

  destroy(): void {
    this.#isDestroyed = true
    for (const connection of [...this.#open]) connection.fail(destroyed())
    if (this.#sweep !== null) clearTimeout(this.#sweep)
  }

  idle(connection: UpstreamConnection, forMs: number): void {
    if (this.#idle.length >= UPSTREAM_IDLE_CONNECTIONS_MAX) {
      connection.close()
      return
    }
    this.#idle.push({ connection, untilMs: performance.now() + forMs })
    this.#sweep ??= setTimeout(this.#sweepIdle, SWEEP_MS).unref()
  }

  /** An upstream that sent an unsolicited reply on one connection may do so on others, so idle ones are discarded. */
  unasked(): void {
    const idle = this.#idle
    this.#idle = []
    for (const { connection } of idle) connection.close()
    this.#onUnasked()
  }

  gone(connection: UpstreamConnection): void {
    if (!this.#open.delete(connection)) return
    const at = this.#idle.findLastIndex((idle) => idle.connection === connection)
    if (at !== -1) this.#idle.splice(at, 1)
  }

  readonly #afterThisTurn = (): void => {
    setImmediate(this.#placeAll, this.#asked)
    this.#asked = []
  }

  readonly #placeAll = (calls: readonly Placed[]): void => {
    for (const call of calls) this.#placeOnIdle(call)
  }

  #placeOnIdle(call: Placed): void {
    if (call.isOver) return
    const connection = this.#takeIdle()
    if (connection === null) this.#placeOnNew(call)
    else {
      call.placed(connection)
      connection.carry(call)
    }
  }

  #placeOnNew(call: Placed): void {
    if (this.#isDestroyed) {
      call.broken(destroyed(), false)
      return
    }
    const connection = new UpstreamConnection(this.#connect, call, this)
    this.#open.add(connection)
    call.placed(connection)
  }

  #takeIdle(): UpstreamConnection | null {
    const nowMs = performance.now()
    for (let idle = this.#idle.shift(); idle !== undefined; idle = this.#idle.shift()) {
      if (idle.untilMs > nowMs && idle.connection.isOpen) return idle.connection
      idle.connection.close()
    }
    return null
  }

  readonly #sweepIdle = (): void => {
    this.#sweep = null
    const nowMs = performance.now()
    const expired = this.#idle.filter(({ untilMs }) => untilMs <= nowMs)
    this.#idle = this.#idle.filter(({ untilMs }) => untilMs > nowMs)
    for (const { connection } of expired) connection.close()
    if (this.#idle.length > 0) this.#sweep = setTimeout(this.#sweepIdle, SWEEP_MS).unref()
  }
}

function destroyed(): Error {
  return new UpstreamBroke('UPSTREAM_LET_GO', 'the connection was let go of')
}

const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelay: 60_000, noDelay: true } as const

function connectorOf(url: URL): Connect {
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
  return url.protocol === 'https:' ? secureConnector(host, url) : plainConnector(host, url)
}

function plainConnector(host: string, url: URL): Connect {
  const port = url.port === '' ? 80 : Number(url.port)
  return (onChunk) => {
    const socket = connectPlain({ host, port, ...KEEP_ALIVE, onread: readInto(onChunk) })
    return { socket, readyEvent: 'connect' }
  }
}

function secureConnector(host: string, url: URL): Connect {
  const port = url.port === '' ? 443 : Number(url.port)
  // One context for all connections: creating one takes about 0.3 ms.
  const secureContext = createSecureContext()
  let session: Buffer | undefined
  return (onChunk) => {
    const socket = connectSecurely({
      host,
      port,
      servername: isIP(host) === 0 ? host : '',
      secureContext,
      // HTTP/2 would lower-case header names and lose the reason phrase.
      ALPNProtocols: ['http/1.1'],
      ...(session === undefined ? {} : { session }),
    })
    socket.setKeepAlive(true, KEEP_ALIVE.keepAliveInitialDelay)
    socket.setNoDelay(true)
    socket.on('data', onChunk)
    socket.on('session', (given: Buffer) => {
      session = given
    })
    return { socket, readyEvent: 'secureConnect' }
  }
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

/** One upstream call, with back-pressure in both directions. No request is sent twice: that would be a second bill. */
export function callUpstream(
  pool: UpstreamPool,
  request: UpstreamRequest,
  receiver: ReplyReceiver,
): UpstreamCall {
  const head = composeHead(request)
  if (head instanceof Unsendable) return refusedCall(head)
  const call = new PlacedCall(
    { method: request.method, head, body: request.body },
    receiver,
    request.upgrades,
  )
  pool.place(call)
  return call
}

export const HANDSHAKE_TIMEOUT = 'UPSTREAM_HANDSHAKE_TIMEOUT'

class PlacedCall implements UpstreamCall, Placed {
  readonly ended: Promise<CallEnd>
  readonly method: string
  readonly upgrades: boolean
  readonly #receiver: ReplyReceiver
  readonly #finish: (end: CallEnd) => void
  #sendable: Sendable | null
  #connection: UpstreamConnection | null = null
  #handshakeTimer: NodeJS.Timeout | undefined
  #isSent = false
  #hasHead = false
  #isOver = false

  constructor(sendable: Sendable, receiver: ReplyReceiver, upgrades = false) {
    const { promise, resolve } = Promise.withResolvers<CallEnd>()
    this.ended = promise
    this.#finish = resolve
    this.method = sendable.method
    this.upgrades = upgrades
    this.#sendable = sendable
    this.#receiver = receiver
    // Watch handshake and body from the start: they may fail before there is a connection.
    if (upgrades) this.#limitHandshake()
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

  takeSendable(): Sendable {
    const sendable = this.#sendable
    if (sendable === null) throw new Error('a request is sent once')
    this.#sendable = null
    return sendable
  }

  placed(connection: UpstreamConnection): void {
    this.#connection = connection
  }

  begun(): void {
    this.#isSent = true
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

function refusedCall(error: Unsendable): UpstreamCall {
  return {
    ended: Promise.resolve({ kind: 'failed', error, sent: false, whole: false }),
    resume() {},
    abandon() {},
  }
}
