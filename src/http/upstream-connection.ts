import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import { limits } from '../kernel/limits.ts'
import type { Log } from '../kernel/log.ts'
import type { Secret } from '../kernel/secret.ts'
import { DIRECT, type EgressRoute, type EgressRules, routeTo } from './egress.ts'
import { type MessageHead, MessageReader, type MessageReceiver } from './message-reader.ts'
import { holdFailedWrites, RawConnection } from './node-sockets.ts'
import { ProxyTunnel } from './proxy-tunnel.ts'
import { firstValue, hasHeader, type RawHeaders } from './raw-headers.ts'
import {
  composeRequest,
  PooledCall,
  type ReplyReceiver,
  sendRequest,
  type Upload,
  UpstreamBroke,
  type UpstreamCall,
  type UpstreamRequest,
} from './upstream-call.ts'

const UPSTREAM_IDLE_CONNECTIONS_MAX = 1_000

export interface Upstream {
  readonly url: URL
  readonly key: Secret | null
  /** Lines that every call gets. They replace the client's lines of the same names. */
  readonly fixedHeaders: RawHeaders
  readonly pool: UpstreamPool
}

type UpstreamAddress = Pick<Upstream, 'url' | 'key'> & { readonly fixedHeaders?: RawHeaders }

export function openUpstream(
  { url, key, fixedHeaders = [] }: UpstreamAddress,
  log: Pick<Log, 'error'>,
  egress: EgressRules = DIRECT,
): Upstream {
  const onUnsolicited = () =>
    log.error(
      { upstream: url.host },
      'upstream sent bytes without a request; they were dropped, and its idle connections were closed',
    )
  return { url, key, fixedHeaders, pool: new UpstreamPool(routeTo(url, egress), onUnsolicited) }
}

/** The connections to one upstream: one per call, and idle ones for the next calls. */
export class UpstreamPool {
  readonly #route: EgressRoute
  readonly #onUnsolicited: () => void
  readonly #open = new Set<UpstreamConnection | ProxyTunnel>()
  /** The oldest idle connection is used first: if upstream has closed it, that has probably been noticed. */
  #idle: UpstreamConnection[] = []
  #isDestroyed = false

  constructor(route: EgressRoute, onUnsolicited: () => void) {
    this.#route = route
    this.#onUnsolicited = onUnsolicited
  }

  send(call: PooledCall): void {
    if (this.#idle.length === 0) this.#connectFor(call)
    // Until the second one, sockets are polled: an unsolicited reply may have arrived on an idle connection.
    else setImmediate(() => setImmediate(this.#assignIdle, call))
  }

  get connections(): { readonly busy: number; readonly idle: number } {
    const idle = this.#idle.length
    return { busy: this.#open.size - idle, idle }
  }

  destroy(): void {
    this.#isDestroyed = true
    for (const connection of [...this.#open]) connection.fail(destroyed())
  }

  idle(connection: UpstreamConnection): void {
    if (this.#idle.length >= UPSTREAM_IDLE_CONNECTIONS_MAX) connection.close()
    else this.#idle.push(connection)
  }

  /** An upstream that sent an unsolicited reply on one connection may do so on others. */
  unsolicited(): void {
    const idle = this.#idle
    this.#idle = []
    for (const connection of idle) connection.close()
    this.#onUnsolicited()
  }

  /** Forgets a connection that cannot carry more requests. Can be called again. */
  gone(connection: UpstreamConnection | ProxyTunnel): void {
    if (!this.#open.delete(connection) || connection instanceof ProxyTunnel) return
    const at = this.#idle.lastIndexOf(connection)
    if (at !== -1) this.#idle.splice(at, 1)
  }

  opened(tunnel: ProxyTunnel, socket: Socket, call: PooledCall, timeoutMs: number): void {
    this.#open.delete(tunnel)
    const connect = (onChunk: (chunk: Buffer) => void) => this.#route.connect(onChunk, socket)
    this.#open.add(new UpstreamConnection(connect, call, this, timeoutMs))
  }

  readonly #assignIdle = (call: PooledCall): void => {
    if (call.isOver) return
    let idle = this.#idle.shift()
    while (idle?.isOpen === false) idle = this.#idle.shift()
    if (idle === undefined) this.#connectFor(call)
    else idle.carry(call)
  }

  #connectFor(call: PooledCall): void {
    if (this.#isDestroyed) {
      call.broken(destroyed(), false)
      return
    }
    const { proxy, authority, connect } = this.#route
    this.#open.add(
      proxy === null
        ? new UpstreamConnection(connect, call, this)
        : new ProxyTunnel(proxy, authority, call, this),
    )
  }
}

function destroyed(): Error {
  return new UpstreamBroke('UPSTREAM_DESTROYED', 'the connection pool was destroyed')
}

/** Sends the request once: a retry would be a second bill. */
export function callUpstream(
  pool: UpstreamPool,
  request: UpstreamRequest,
  receiver: ReplyReceiver,
): UpstreamCall {
  try {
    const call = new PooledCall(composeRequest(request), receiver)
    pool.send(call)
    return call
  } catch (error) {
    const failed = new UpstreamBroke('UPSTREAM_UNSENDABLE', (error as Error).message)
    const ended = Promise.resolve({ kind: 'failed', error: failed, sent: false, whole: false } as const)
    return { ended, resume() {}, abandon() {} }
  }
}

export class UpstreamConnection implements MessageReceiver {
  readonly #socket: Socket
  readonly #owner: UpstreamPool
  readonly #reader = new MessageReader('response', this)
  #call: PooledCall | null
  #upload: Upload | null = null
  #wasReset = false
  #hasUnsolicitedBytes = false
  #reusableMs = 0
  #raw: RawConnection | null = null

  constructor(
    connect: EgressRoute['connect'],
    first: PooledCall,
    owner: UpstreamPool,
    timeoutMs: number = limits.upstreamConnectTimeoutMs,
  ) {
    const socket = connect((chunk) => this.#onData(chunk))
    this.#socket = socket
    this.#owner = owner
    this.#call = first
    first.assigned(this)
    const timer = setTimeout(
      () =>
        this.fail(new UpstreamBroke('UPSTREAM_CONNECT_TIMEOUT', 'upstream did not accept the connection')),
      timeoutMs,
    )
    socket.once(socket instanceof TLSSocket ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer)
      if (this.#call !== null) this.carry(this.#call)
    })
    socket.on('drain', () => {
      this.#upload?.drained()
      this.#raw?.drained()
    })
    // The timer goes on during a call, because setting it again for each call takes longer.
    socket.on('timeout', () => {
      if (this.#call === null) this.close()
    })
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

  carry(call: PooledCall): void {
    this.#call = call
    this.#reusableMs = 0
    this.#reader.hasNoBody = call.method === 'HEAD'
    this.#upload = sendRequest(this.#socket, call.begin(this), (error) => this.fail(error))
  }

  resume(): void {
    this.#socket.resume()
  }

  abandon(): boolean {
    const whole = this.#upload?.isDone ?? true
    this.close()
    return whole
  }

  close(): void {
    this.#call = null
    this.#upload?.stop()
    this.#upload = null
    this.#socket.destroy()
    this.#owner.gone(this)
  }

  fail(error: Error): void {
    const call = this.#call
    const whole = this.#upload?.isDone ?? true
    this.close()
    call?.broken(error, whole)
  }

  head(head: MessageHead): void {
    const call = this.#call
    const { status } = head
    if (call === null) this.#hasUnsolicitedBytes = true
    else if (status === 101 && call.upgrades) {
      this.#call = null
      this.#socket.setTimeout(0)
      this.#reader.stop()
      this.#raw = new RawConnection(this.#socket)
      call.switched(head, this.#raw)
    } else if (status === 101) {
      this.fail(new UpstreamBroke('UPSTREAM_UNSOLICITED', 'upstream answered 101, which was not asked for'))
    } else if (status < 100 || status > 999) {
      this.fail(new Error(`upstream answered with status ${status}`))
    } else {
      if (status >= 200) this.#reusableMs = reusableMs(head, call.method)
      // The gateway forwards no `Expect`: a 100 is not meant for the client, and the reply follows it.
      if (status !== 100) call.head(head)
    }
  }

  data(chunk: Buffer): boolean {
    if (this.#call !== null && !this.#call.data(chunk)) this.#socket.pause()
    return true
  }

  end(trailers: string[]): void {
    const call = this.#call
    if (call === null || !call.hasHead) return
    this.#call = null
    // Unsent bytes of this request would precede the next one.
    const isSent = (this.#upload?.isDone ?? true) && this.#socket.writableLength === 0
    if (!isSent) this.#reusableMs = 0
    this.#upload?.stop()
    this.#upload = null
    call.end(trailers)
  }

  afterMessage(chunk: Buffer): void {
    this.#raw?.arrived(chunk)
  }

  #onData(chunk: Buffer): void {
    if (this.#raw !== null) {
      this.#raw.arrived(chunk)
      return
    }
    if (this.#call === null) {
      this.#failUnsolicited()
      return
    }
    const error = this.#reader.read(chunk)
    if (this.#call !== null) {
      if (error !== null) this.fail(error)
    } else if (this.isOpen && this.#raw === null) this.#becomeIdle(error)
  }

  #becomeIdle(error: Error | null): void {
    if (error !== null || this.#hasUnsolicitedBytes || this.#reader.hasPartialMessage) this.#failUnsolicited()
    else if (this.#reusableMs === 0) this.close()
    else {
      if (this.#socket.isPaused()) this.#socket.resume()
      if (this.#socket.timeout !== this.#reusableMs) this.#socket.setTimeout(this.#reusableMs)
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
    if (!this.#wasReset) this.#reader.finish()
    this.fail(new UpstreamBroke('UPSTREAM_CLOSED', 'upstream closed the connection'))
  }
}

const IDLE_MS = 4_000
const IDLE_MS_MAX = 600_000

/** How long before upstream's timeout we close an idle connection, so that no request crosses upstream's close. */
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

/** If a 204 or 304 announces a body, upstream may send it, and it would be read as the next reply. */
function mayHaveUnannouncedBody({ status, headers }: MessageHead): boolean {
  if (status !== 204 && status !== 304) return false
  return Number(firstValue(headers, 'content-length') ?? 0) > 0 || hasHeader(headers, 'transfer-encoding')
}
