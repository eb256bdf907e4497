import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { Clock } from '../kernel/clock.ts'
import { ERRORS, type Refusal, refuse } from '../kernel/errors.ts'
import type { HeaderNames } from '../kernel/header-names.ts'
import type { IdSource } from '../kernel/ids.ts'
import { limits } from '../kernel/limits.ts'
import { Tally } from '../kernel/tally.ts'
import { networkOf, type TrustedProxies } from './addresses.ts'
import { ClientConnection, type ConnectionOwner, HEAD_TIMEOUT } from './client-connection.ts'
import type { Exchange, WholeReply } from './exchange.ts'
import type { IncomingRequest } from './incoming-request.ts'
import { HEADER_OVERFLOW, type WireError } from './message-reader.ts'
import { endWithin, writeParts } from './node-sockets.ts'
import { type OutgoingReply, statusLine } from './outgoing-reply.ts'
import { serialiseHeaders } from './raw-headers.ts'
import { type CertificatePair, createTlsHandshakes, type TlsHandshakes } from './tls-handshakes.ts'

/** Listen backlog. With Node's 511, 100 of 2,000 streams opened within five seconds on a busy core. */
const CONNECTIONS_WAITING_MAX = 4_096

export interface ServerOptions {
  readonly clock: Clock
  readonly nextUlid: IdSource
  readonly names: HeaderNames
  onExchange(exchange: Exchange): void
  /** Shapes a refusal without a parsed request. `head` is the text received so far. */
  shapeBroken(refusal: Refusal, head: string, requestId: string): WholeReply
  readonly connectionsMax?: number
  readonly connectionsPerAddressMax?: number | null
  onCrowded?(address: string): void
  readonly certificate?: CertificatePair | null
  readonly trustedProxies?: TrustedProxies | null
}

type Connection = Pick<ClientConnection, 'isIdle' | 'reply' | 'checkTimeouts' | 'destroy'>

const TIME_CHECK_MS = 1_000

/** How long a reply to bytes that are not a request may take to be sent. */
const RAW_REPLY_MS = 1_000

export class HttpServer implements ConnectionOwner {
  readonly #options: ServerOptions
  readonly #tls: TlsHandshakes | null
  /** Connections by network. */
  readonly #counts = new Tally()
  readonly #connections = new Map<Connection, string | null>()
  readonly #server: Server
  readonly #timeCheck: NodeJS.Timeout
  isDraining = false
  #onNoneLeft = (): void => {}

  constructor(options: ServerOptions) {
    this.#options = options
    this.#tls = options.certificate == null ? null : createTlsHandshakes(options.certificate)
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket))
    this.#timeCheck = setInterval(() => {
      const nowMs = this.monotonicMs()
      for (const connection of this.#connections.keys()) connection.checkTimeouts(nowMs)
    }, TIME_CHECK_MS).unref()
  }

  monotonicMs(): number {
    return this.#options.clock.monotonicMs()
  }

  nowMs(): number {
    return this.#options.clock.nowMs()
  }

  onRequest(request: IncomingRequest, reply: OutgoingReply): void {
    const { nextUlid, names, trustedProxies = null } = this.#options
    const { method, headers } = request.head
    const { remoteAddress } = request.source
    this.#options.onExchange({
      req: request,
      res: reply,
      requestId: `req_${nextUlid()}`,
      names,
      startedMs: this.monotonicMs(),
      method,
      headers,
      clientIp: trustedProxies === null ? remoteAddress : trustedProxies.clientOf(remoteAddress, headers),
    })
  }

  /** Answers on the bare socket, because there is no parsed request, and closes the connection. */
  onBroken(socket: Socket, error: WireError, head: string): void {
    const refusal = explainClientError(error)
    if (refusal === null) {
      socket.destroy()
      return
    }
    const { nextUlid, names, shapeBroken } = this.#options
    const requestId = `req_${nextUlid()}`
    const reply = shapeBroken(refusal, head, requestId)
    const lines = [...reply.headers, names.requestId, requestId, 'connection', 'close']
    const headText = `${statusLine(reply.status, undefined)}${serialiseHeaders(lines)}\r\n`
    writeParts(socket, headText, reply.body, '')
    endWithin(RAW_REPLY_MS, socket)
  }

  onClosed(connection: Connection): void {
    const network = this.#connections.get(connection) ?? null
    if (network !== null) this.#counts.remove(network)
    this.#connections.delete(connection)
    if (this.#connections.size === 0) this.#onNoneLeft()
  }

  /** `reusePort`: other processes may listen on the same address, and the kernel spreads connections over them. */
  listen(host: string, port: number, reusePort = false): Promise<AddressInfo> {
    const server = this.#server
    return new Promise((resolve, reject) => {
      server.once('error', reject)
      server.listen({ port, host, reusePort, backlog: CONNECTIONS_WAITING_MAX }, () => {
        server.off('error', reject)
        resolve(server.address() as AddressInfo)
      })
    })
  }

  useCertificate(next: CertificatePair): void {
    this.#tls?.use(next)
  }

  /** Lets running exchanges finish for up to `drainMs`. Returns how many were cut. */
  async drain(drainMs: number): Promise<number> {
    const connections = this.#connections
    this.isDraining = true
    for (const { reply } of connections.keys()) {
      if (reply?.headersSent === false) reply.shouldKeepAlive = false
    }
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()))
    const noneLeft = new Promise<void>((resolve) => {
      this.#onNoneLeft = resolve
    })
    let cut = 0
    const deadline = setTimeout(() => {
      for (const connection of connections.keys()) {
        // Do not count WebSockets here: their turns are cut, and each turn is counted as a call.
        if (connection.reply?.maySwitch === false) cut += 1
        connection.destroy()
      }
    }, drainMs)
    for (const connection of connections.keys()) if (connection.isIdle) connection.destroy()
    await closed
    if (connections.size > 0) await noneLeft
    clearInterval(this.#timeCheck)
    clearTimeout(deadline)
    return cut
  }

  #accept(socket: Socket): void {
    const { connectionsMax = limits.connectionsMax, connectionsPerAddressMax: perAddressMax = null } =
      this.#options
    const address = socket.remoteAddress ?? ''
    const isCounted = perAddressMax !== null && this.#options.trustedProxies?.has(address) !== true
    const network = isCounted ? networkOf(address) : null
    if (this.#connections.size >= connectionsMax) socket.destroy()
    else if (network === null || this.#counts.add(network, perAddressMax ?? Infinity)) {
      if (this.#tls === null) this.#connections.set(new ClientConnection(socket, this), network)
      else this.#startTlsHandshake(this.#tls, socket, network)
    } else {
      socket.destroy()
      this.#options.onCrowded?.(network)
    }
  }

  /** Begins a TLS handshake. The connection counts from now on, even if the handshake never completes. */
  #startTlsHandshake(tls: TlsHandshakes, accepted: Socket, network: string | null): void {
    const acceptedMs = this.monotonicMs()
    const handshake: Connection = {
      isIdle: true,
      reply: null,
      checkTimeouts(nowMs) {
        if (nowMs - acceptedMs >= limits.tlsHandshakeTimeoutMs) accepted.destroy()
      },
      destroy: () => accepted.destroy(),
    }
    this.#connections.set(handshake, network)
    const onSecure = (secure: Socket) => {
      this.#connections.delete(handshake)
      this.#connections.set(new ClientConnection(secure, this, accepted), network)
    }
    tls.receive(accepted, onSecure, () => this.onClosed(handshake))
  }
}

function explainClientError(error: WireError): Refusal | null {
  switch (error.code) {
    case HEADER_OVERFLOW:
      return refuse('head_too_large', `${ERRORS.head_too_large.meaning} Send fewer or shorter headers.`)
    case HEAD_TIMEOUT:
      return refuse('request_timeout', 'The request head did not arrive in time. Retry.')
    default:
      if (!error.code.startsWith('HPE_')) return null
      return refuse(
        'bad_request',
        'The request is not well-formed HTTP/1.1. Check the client, and any proxy in front of this gateway.',
      )
  }
}
