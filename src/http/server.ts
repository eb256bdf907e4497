import { type AddressInfo, createServer, type Socket } from 'node:net'
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
import { type CertificatePair, createTlsHandshakes } from './tls-handshakes.ts'

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

export type HttpServer = ReturnType<typeof createHttpServer>

type Connection = Pick<ClientConnection, 'isIdle' | 'reply' | 'checkTimeouts' | 'destroy'>

const TIME_CHECK_MS = 1_000

/** How long a reply to bytes that are not a request may take to be sent. */
const RAW_REPLY_MS = 1_000

export function createHttpServer(options: ServerOptions) {
  const { connectionsMax = limits.connectionsMax, connectionsPerAddressMax = null } = options
  const { trustedProxies = null, certificate = null } = options
  const tls = certificate === null ? null : createTlsHandshakes(certificate)
  /** Connections by network. */
  const counts = new Tally()
  const connections = new Map<Connection, string | null>()
  let draining = false
  let onNoneLeft = (): void => {}

  const owner: ConnectionOwner = {
    get isDraining() {
      return draining
    },
    monotonicMs: () => options.clock.monotonicMs(),
    nowMs: () => options.clock.nowMs(),
    onRequest(request, reply) {
      options.onExchange(exchangeOf(request, reply))
    },
    onBroken(socket, error, head) {
      const refusal = explainClientError(error)
      if (refusal === null) socket.destroy()
      else answerBroken(socket, refusal, head)
    },
    onClosed: removeConnection,
  }

  function removeConnection(connection: Connection): void {
    const network = connections.get(connection) ?? null
    if (network !== null) counts.remove(network)
    connections.delete(connection)
    if (connections.size === 0) onNoneLeft()
  }

  /** Begins a TLS handshake. The connection counts from now on, even if the handshake never completes. */
  function startTlsHandshake(accepted: Socket, network: string | null): void {
    const acceptedMs = options.clock.monotonicMs()
    const handshake: Connection = {
      isIdle: true,
      reply: null,
      checkTimeouts(nowMs) {
        if (nowMs - acceptedMs >= limits.tlsHandshakeTimeoutMs) accepted.destroy()
      },
      destroy: () => accepted.destroy(),
    }
    connections.set(handshake, network)
    const onSecure = (secure: Socket) => {
      connections.delete(handshake)
      connections.set(new ClientConnection(secure, owner, accepted), network)
    }
    tls?.receive(accepted, onSecure, () => removeConnection(handshake))
  }

  function exchangeOf(request: IncomingRequest, reply: OutgoingReply): Exchange {
    const { method, headers } = request.head
    const { remoteAddress } = request.source
    return {
      req: request,
      res: reply,
      requestId: `req_${options.nextUlid()}`,
      names: options.names,
      startedMs: options.clock.monotonicMs(),
      method,
      headers,
      clientIp: trustedProxies === null ? remoteAddress : trustedProxies.clientOf(remoteAddress, headers),
    }
  }

  /** Answers on the bare socket, because there is no parsed request, and closes the connection. */
  function answerBroken(socket: Socket, refusal: Refusal, head: string): void {
    const requestId = `req_${options.nextUlid()}`
    const reply = options.shapeBroken(refusal, head, requestId)
    const lines = [...reply.headers, options.names.requestId, requestId, 'connection', 'close']
    const headText = `${statusLine(reply.status, undefined)}${serialiseHeaders(lines)}\r\n`
    writeParts(socket, headText, reply.body, '')
    endWithin(RAW_REPLY_MS, socket)
  }

  const server = createServer({ noDelay: true }, (socket) => {
    const address = socket.remoteAddress ?? ''
    const isCounted = connectionsPerAddressMax !== null && trustedProxies?.has(address) !== true
    const network = isCounted ? networkOf(address) : null
    if (connections.size >= connectionsMax) socket.destroy()
    else if (network === null || counts.add(network, connectionsPerAddressMax ?? Infinity)) {
      if (tls === null) connections.set(new ClientConnection(socket, owner), network)
      else startTlsHandshake(socket, network)
    } else {
      socket.destroy()
      options.onCrowded?.(network)
    }
  })

  const timeCheck = setInterval(() => {
    const nowMs = options.clock.monotonicMs()
    for (const connection of connections.keys()) connection.checkTimeouts(nowMs)
  }, TIME_CHECK_MS)
  timeCheck.unref()

  return {
    /** `reusePort`: other processes may listen on the same address, and the kernel spreads connections over them. */
    listen(host: string, port: number, reusePort = false): Promise<AddressInfo> {
      return new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen({ port, host, reusePort, backlog: CONNECTIONS_WAITING_MAX }, () => {
          server.off('error', reject)
          resolve(server.address() as AddressInfo)
        })
      })
    },

    useCertificate: (next: CertificatePair): void => tls?.use(next),

    /** Lets running exchanges finish for up to `drainMs`. Returns how many were cut. */
    async drain(drainMs: number): Promise<number> {
      draining = true
      for (const { reply } of connections.keys()) {
        if (reply?.headersSent === false) reply.shouldKeepAlive = false
      }
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      const noneLeft = new Promise<void>((resolve) => {
        onNoneLeft = resolve
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
      clearInterval(timeCheck)
      clearTimeout(deadline)
      return cut
    },
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
