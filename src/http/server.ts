import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Clock } from '../kernel/clock.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import type { HeaderNames } from '../kernel/header-names.ts'
import type { IdSource } from '../kernel/ids.ts'
import { limits } from '../kernel/limits.ts'
import { explainClientError, writeRawReply } from './broken-request.ts'
import type { Exchange, WholeReply } from './exchange.ts'

export interface ServerParts {
  readonly clock: Clock
  readonly nextUlid: IdSource
  readonly names: HeaderNames
  /** Takes over an exchange. Must not throw; what it returns is not awaited. */
  onExchange(exchange: Exchange): void
  /** Gives a refusal its form when there is no parsed request: `head` is the text that came, as far as it came. */
  shapeBroken(refusal: Refusal, head: string, requestId: string): WholeReply
  /** Refuses an exchange before anything else looks at it. */
  refuseExchange(exchange: Exchange, refusal: Refusal): void
}

export interface HttpServer {
  listen(host: string, port: number): Promise<AddressInfo>
  /** Stops accepting, lets running exchanges finish for up to `drainMs`, then cuts them. How many were cut. */
  drain(drainMs: number): Promise<number>
}

const AT_ONCE = Promise.resolve()

/** Node gives the connection to the next response when this one has finished, before it tells us. */
function whenLeft(res: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    res.once('finish', resolve)
    res.once('close', resolve)
  })
}

/** How often connections that became idle are closed while draining. */
const IDLE_SWEEP_MS = 50

export function createHttpServer(parts: ServerParts): HttpServer {
  const server = createServer({
    // Judged by us, because the answers of the parser would lack our headers and the surface's shape.
    requireHostHeader: false,
    maxHeaderSize: limits.headBytesMax,
    headersTimeout: limits.headTimeoutMs,
    connectionsCheckingInterval: 1_000,
    // Node's own limit would cut slow uploads that are making progress; the body has an idle limit instead.
    requestTimeout: 0,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    // A half-closed client is treated as gone: otherwise one that left could not be told from one that waits.
    noDelay: true,
  })
  server.maxHeadersCount = limits.headLinesMax
  server.maxConnections = limits.connectionsMax

  const running = new Set<Exchange>()
  const bySocket = new WeakMap<Duplex, Set<Exchange>>()
  let draining = false

  function begin(req: IncomingMessage, res: ServerResponse, expectsContinue: boolean): Exchange {
    const siblings = bySocket.get(req.socket) ?? new Set<Exchange>()
    const previous = [...siblings].at(-1)
    const exchange: Exchange = {
      req,
      res,
      requestId: `req_${parts.nextUlid()}`,
      names: parts.names,
      startedMs: parts.clock.monotonicMs(),
      method: req.method ?? '',
      headers: req.rawHeaders,
      expectsContinue,
      turn: previous === undefined ? AT_ONCE : whenLeft(previous.res),
    }
    // HTTP/1.0 has no reliable way to keep a connection: its Keep-Alive was a proposal that proxies pass on unread.
    if (draining || req.httpVersion === '1.0') res.shouldKeepAlive = false
    bySocket.set(req.socket, siblings.add(exchange))
    running.add(exchange)
    res.once('close', () => {
      running.delete(exchange)
      siblings.delete(exchange)
    })
    // Errors of either side also close the response, and that is where they are dealt with.
    req.on('error', () => {})
    res.on('error', () => {})
    return exchange
  }

  server.on('request', (req, res) => parts.onExchange(begin(req, res, false)))
  server.on('checkContinue', (req, res) => parts.onExchange(begin(req, res, true)))
  server.on('checkExpectation', (req, res) => {
    const refusal = refuse('expectation_failed', 'The only expectation served here is 100-continue.')
    parts.refuseExchange(begin(req, res, false), refusal)
  })

  function answerBroken(socket: Duplex, refusal: Refusal, head: string): void {
    const requestId = `req_${parts.nextUlid()}`
    writeRawReply(socket, parts.shapeBroken(refusal, head, requestId), parts.names.requestId, requestId)
  }

  server.on('connect', (req, socket) => {
    answerBroken(socket, refuse('method_not_allowed', 'CONNECT is not served here.'), headOf(req))
  })

  server.on('clientError', (error: NodeJS.ErrnoException & { rawPacket?: Buffer }, socket) => {
    const unfinished = bySocket.get(socket)
    const last = unfinished === undefined ? undefined : [...unfinished].at(-1)
    if (last === undefined) {
      const refusal = explainClientError(error)
      if (refusal === null) socket.destroy()
      else answerBroken(socket, refusal, error.rawPacket?.toString('latin1') ?? '')
    } else if (last.req.complete && error.code?.startsWith('HPE_') === true) {
      // The request is whole; the bytes behind it are not a request. It keeps its answer, then we part.
      last.res.shouldKeepAlive = false
      last.res.once('close', () => socket.destroy())
    } else if (unfinished?.size === 1 && !last.res.headersSent) {
      const refusal = explainClientError(error)
      if (refusal === null) socket.destroy()
      else answerBroken(socket, refusal, headOf(last.req))
    } else {
      socket.destroy()
    }
  })

  return {
    listen(host, port) {
      return new Promise((resolve, reject) => {
        server.once('error', reject)
        server.listen(port, host, () => {
          server.off('error', reject)
          resolve(server.address() as AddressInfo)
        })
      })
    },

    async drain(drainMs) {
      draining = true
      for (const exchange of running) if (!exchange.res.headersSent) exchange.res.shouldKeepAlive = false
      const closed = new Promise<void>((resolve) => server.close(() => resolve()))
      const sweep = setInterval(() => server.closeIdleConnections(), IDLE_SWEEP_MS)
      let cut = 0
      const deadline = setTimeout(() => {
        cut = running.size
        server.closeAllConnections()
      }, drainMs)
      server.closeIdleConnections()
      await closed
      clearInterval(sweep)
      clearTimeout(deadline)
      return cut
    },
  }
}

/** Enough of a parsed head to choose the surface that an error should speak. */
function headOf(req: IncomingMessage): string {
  const lines = [`${req.method} ${req.url} HTTP/${req.httpVersion}`]
  for (let i = 0; i < req.rawHeaders.length; i += 2)
    lines.push(`${req.rawHeaders[i]}: ${req.rawHeaders[i + 1]}`)
  return lines.join('\r\n')
}
