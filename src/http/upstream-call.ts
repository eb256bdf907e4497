import { connect as connectPlain, isIP } from 'node:net'
import { connect as connectSecurely, createSecureContext } from 'node:tls'
import type { Log } from '../kernel/log.ts'
import type { Secret } from '../kernel/secret.ts'
import { readInto } from './node-sockets.ts'
import { composeRequest, UpstreamBroke, type UpstreamRequest } from './send-request.ts'
import {
  type Connect,
  type ConnectionPool,
  PooledCall,
  type ReplyReceiver,
  type UpstreamCall,
  UpstreamConnection,
} from './upstream-connection.ts'

export {
  type CallEnd,
  HANDSHAKE_TIMEOUT,
  type ReplyReceiver,
  type UpstreamCall,
} from './upstream-connection.ts'

export const UPSTREAM_IDLE_CONNECTIONS_MAX = 1_000

export interface Upstream {
  readonly url: URL
  readonly key: Secret | null
  readonly pool: UpstreamPool
}

export function openUpstream({ url, key }: Pick<Upstream, 'url' | 'key'>, log: Pick<Log, 'error'>): Upstream {
  const onUnsolicited = () =>
    log.error(
      { upstream: url.host },
      'upstream sent bytes without a request; they were dropped, and its idle connections were closed',
    )
  return { url, key, pool: new UpstreamPool(connectorOf(url), onUnsolicited) }
}

/** The connections to one upstream: one per call, and idle ones for the next calls. */
export class UpstreamPool implements ConnectionPool {
  readonly #connect: Connect
  readonly #onUnsolicited: () => void
  readonly #open = new Set<UpstreamConnection>()
  /** The connection that has been idle longest is used next: if upstream has closed it, we have probably noticed. */
  #idle: UpstreamConnection[] = []
  #queued: PooledCall[] = []
  #isDestroyed = false

  constructor(connect: Connect, onUnsolicited: () => void) {
    this.#connect = connect
    this.#onUnsolicited = onUnsolicited
  }

  send(call: PooledCall): void {
    // Bytes, an end or a reset may have arrived on an idle connection while we were busy, and must be read first: an
    // unsolicited reply would be taken for this call's reply. Sockets are polled once per turn of the event loop,
    // usually before this code, so wait for one whole turn.
    if (this.#idle.length === 0) this.#connectFor(call)
    else if (this.#queued.push(call) === 1) setImmediate(this.#afterThisTurn)
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

  /** An upstream that sent an unsolicited reply on one connection may do so on others, so idle ones are discarded. */
  unsolicited(): void {
    const idle = this.#idle
    this.#idle = []
    for (const connection of idle) connection.close()
    this.#onUnsolicited()
  }

  gone(connection: UpstreamConnection): void {
    if (!this.#open.delete(connection)) return
    const at = this.#idle.lastIndexOf(connection)
    if (at !== -1) this.#idle.splice(at, 1)
  }

  readonly #afterThisTurn = (): void => {
    setImmediate(this.#assignAll, this.#queued)
    this.#queued = []
  }

  readonly #assignAll = (calls: readonly PooledCall[]): void => {
    for (const call of calls) this.#assignIdle(call)
  }

  #assignIdle(call: PooledCall): void {
    if (call.isOver) return
    const connection = this.#takeIdle()
    if (connection === null) this.#connectFor(call)
    else connection.carry(call)
  }

  #connectFor(call: PooledCall): void {
    if (this.#isDestroyed) {
      call.broken(destroyed(), false)
      return
    }
    this.#open.add(new UpstreamConnection(this.#connect, call, this))
  }

  #takeIdle(): UpstreamConnection | null {
    for (let idle = this.#idle.shift(); idle !== undefined; idle = this.#idle.shift()) {
      if (idle.isOpen) return idle
    }
    return null
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
  return (onChunk) => connectPlain({ host, port, ...KEEP_ALIVE, onread: readInto(onChunk) })
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
    return socket
  }
}

/** One upstream call, with back-pressure in both directions. No request is sent twice: that would be a second bill. */
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
