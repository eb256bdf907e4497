import type { IncomingMessage, ServerResponse } from 'node:http'
import type { HeaderNames } from '../kernel/header-names.ts'
import { limits } from '../kernel/limits.ts'
import type { RawHeaders } from './raw-headers.ts'

/** One request and the response to it, with what the whole service needs to know of them. */
export interface Exchange {
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly requestId: string
  readonly names: HeaderNames
  /** Monotonic. */
  readonly startedMs: number
  readonly method: string
  readonly headers: RawHeaders
  /** The client waits for `100 Continue` before it sends its body. */
  readonly expectsContinue: boolean
  /**
   * Resolves when the responses before this one on its connection have left. A pipelined response that is not at
   * the head of its connection has no socket: Node keeps its bytes, but mixes interim responses into them, and
   * forgets that it was destroyed.
   */
  readonly turn: Promise<void>
}

export interface WholeReply {
  readonly status: number
  /** Flat name, value pairs. */
  readonly headers: readonly string[]
  readonly body: Buffer
}

/** Answers with a response of our own. Does nothing if a response has begun or the client has left. */
export function sendWhole(exchange: Exchange, reply: WholeReply, options?: { close?: boolean }): void {
  const { req, res } = exchange
  if (res.headersSent || res.destroyed) return
  if (options?.close === true) res.shouldKeepAlive = false
  res.writeHead(reply.status, [...reply.headers, exchange.names.requestId, exchange.requestId])
  if (exchange.method === 'HEAD' || reply.body.length === 0) res.end()
  else res.end(reply.body)
  discardRest(req)
}

/**
 * Reads and throws away what the client is still uploading, for a while. Closing the connection instead would
 * reset it, and a reset overtakes the answer: 13 of 40 clients lost it that way, none of 40 this way.
 */
export function discardRest(req: IncomingMessage): void {
  if (req.complete || req.destroyed) return
  const timer = setTimeout(() => req.destroy(), limits.earlyAnswerDrainMs)
  timer.unref()
  req.once('close', () => clearTimeout(timer))
  req.once('end', () => clearTimeout(timer))
  req.resume()
}

export function clientLeft(exchange: Exchange): boolean {
  return exchange.res.destroyed || exchange.res.closed
}

/** Answers `Expect: 100-continue`, when it is this request's turn to be answered anything. */
export function inviteBody({ expectsContinue, res, turn }: Exchange): void {
  if (!expectsContinue) return
  if (res.socket !== null) res.writeContinue()
  else {
    turn.then(() => {
      if (!res.headersSent && !res.destroyed) res.writeContinue()
    })
  }
}
