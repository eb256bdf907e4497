import type { HeaderNames } from '../kernel/header-names.ts'
import type { IncomingRequest } from './incoming-request.ts'
import type { OutgoingReply } from './outgoing-reply.ts'
import type { RawHeaders } from './raw-headers.ts'

export interface Exchange {
  readonly req: IncomingRequest
  readonly res: OutgoingReply
  readonly requestId: string
  readonly names: HeaderNames
  readonly startedMs: number
  readonly method: string
  readonly headers: RawHeaders
  readonly clientIp: string
}

export interface WholeReply {
  readonly status: number
  readonly headers: readonly string[]
  readonly body: Buffer
}

/** Sends a complete response of our own. Does nothing if a response has begun or the client has left. */
export function sendWhole(exchange: Exchange, reply: WholeReply, options?: { close?: boolean }): void {
  const { req, res } = exchange
  if (res.headersSent || res.destroyed) return
  if (options?.close === true) res.shouldKeepAlive = false
  res.writeHead(reply.status, undefined, [...reply.headers, exchange.names.requestId, exchange.requestId])
  res.end(reply.body)
  if (!res.isOver) {
    countUnread(res, reply.body.length)
    res.whenClosed.add(() => forget(res))
  }
  req.discard()
}

/** Maximum memory of our own replies that clients have not read yet. */
export const UNREAD_BYTES_MAX = 128 * 1024 ** 2

const unread = new Map<OutgoingReply, number>()
let unreadBytes = 0

/** Clients that read nothing must not use up the memory: closes the connection that has waited longest. */
function countUnread(res: OutgoingReply, bytes: number): void {
  unread.set(res, bytes)
  unreadBytes += bytes
  for (const oldest of unread.keys()) {
    if (unreadBytes <= UNREAD_BYTES_MAX) return
    forget(oldest)
    oldest.destroy()
  }
}

function forget(res: OutgoingReply): void {
  unreadBytes -= unread.get(res) ?? 0
  unread.delete(res)
}

export interface StreamedReply {
  readonly status: number
  readonly headers: readonly string[]
  /** The body. Chunks are requested only while the client reads, and empty chunks are not sent. */
  readonly chunks: AsyncIterable<Buffer>
}

/** The head goes with the first chunk, so an earlier failure can still become an error response. */
export async function sendStream(exchange: Exchange, reply: StreamedReply): Promise<void> {
  const { req, res } = exchange
  const begin = () => {
    if (res.headersSent) return
    res.writeHead(reply.status, undefined, [...reply.headers, exchange.names.requestId, exchange.requestId])
    req.discard()
  }
  if (res.isOver) return
  try {
    for await (const chunk of reply.chunks) {
      if (res.isOver) return
      begin()
      if (chunk.length > 0 && !res.write(chunk)) {
        countUnread(res, chunk.length)
        await untilWritable(exchange)
        forget(res)
      }
      if (res.isOver) return
    }
    begin()
    res.end()
  } catch (error) {
    if (res.isOver) return
    // Reset, because in HTTP/1.0 a normal close means the end of the body.
    if (res.headersSent) res.reset()
    throw error
  }
}

function untilWritable({ res }: Exchange): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      res.whenDrained.remove(done)
      res.whenClosed.remove(done)
      resolve()
    }
    res.whenDrained.add(done)
    res.whenClosed.add(done)
  })
}
