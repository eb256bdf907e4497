import { limits } from '../kernel/limits.ts'
import { clientLeft, discardRest, type Exchange } from './exchange.ts'

/** A response of our own that is made while it is being sent. */
export interface StreamedReply {
  readonly status: number
  /** Flat name, value pairs, without a length. */
  readonly headers: readonly string[]
  /** No further one is asked for before the client has room for it, nor after it has left. Empty ones are not sent. */
  readonly chunks: AsyncIterable<Buffer>
}

/**
 * Sends it chunk by chunk. The head leaves with the first chunk, so a failure before it can still become an error;
 * a later one breaks the connection off, because what has been sent must not pass for the whole.
 */
export async function sendStream(exchange: Exchange, reply: StreamedReply): Promise<void> {
  const { req, res } = exchange
  const begin = () => {
    if (res.headersSent) return
    res.writeHead(reply.status, undefined, [...reply.headers, exchange.names.requestId, exchange.requestId])
    discardRest(req)
  }
  if (clientLeft(exchange)) return
  try {
    for await (const chunk of reply.chunks) {
      if (clientLeft(exchange)) return
      begin()
      if (chunk.length > 0 && !res.write(chunk)) await untilRoom(exchange)
      if (clientLeft(exchange)) return
    }
    begin()
    res.end()
  } catch (error) {
    if (clientLeft(exchange)) return
    // A reset, because in HTTP/1.0 the end of the connection is the end of the body.
    if (res.headersSent) res.reset()
    throw error
  }
}

/** Resolves when the client has room or has left. One that takes nothing at all for a long time is cut off. */
function untilRoom({ res }: Exchange): Promise<void> {
  return new Promise((resolve) => {
    let taken = res.bytesTaken
    const stall = setInterval(() => {
      const nowTaken = res.bytesTaken
      if (nowTaken === taken) res.destroy()
      taken = nowTaken
    }, limits.replyStallTimeoutMs)
    const done = () => {
      clearInterval(stall)
      res.whenDrained.remove(done)
      res.whenClosed.remove(done)
      resolve()
    }
    res.whenDrained.add(done)
    res.whenClosed.add(done)
  })
}
