import type { Exchange } from '../http/exchange.ts'
import { hasHeader } from '../http/raw-headers.ts'
import { limits } from '../kernel/limits.ts'
import type { ReplyReceiver } from './forward.ts'
import { toReplyHeaders } from './reply-headers.ts'

export interface StreamedAnswer extends ReplyReceiver {
  /** Upstream ended before its body did. The client must not take what it got for the whole. */
  cut(): void
}

export interface AnswerParts {
  /** Our header lines, made when upstream's head has arrived. */
  addedHeaders(): string[]
  /** The client has room again. */
  onDrain(): void
}

const EMPTY = Buffer.alloc(0)

/**
 * Hands upstream's reply to the client as it arrives: each chunk is written when it comes, and when the client
 * reads slowly, upstream is told to wait.
 */
export function answerStreamed(exchange: Exchange, parts: AnswerParts): StreamedAnswer {
  const { req, res } = exchange
  const speaks11 = req.httpVersion === '1.1'
  let begun = false
  /** Only the end of the connection ends the body: HTTP/1.0 without a length. */
  let endsByClose = false
  let stall: NodeJS.Timeout | null = null

  res.on('drain', () => {
    if (stall !== null) clearTimeout(stall)
    stall = null
    parts.onDrain()
  })
  res.once('close', () => {
    if (stall !== null) clearTimeout(stall)
  })

  return {
    interim(status, headers) {
      // Interim responses may be dropped; one that is not at the head of its connection must be.
      if (!speaks11 || res.headersSent || res.destroyed || res.socket === null) return
      res.writeInformation(
        status,
        toReplyHeaders(headers, { chunkable: false, ownPrefix: exchange.names.prefix }),
      )
    },

    head(status, reason, headers) {
      if (res.destroyed) return
      const hasBody = exchange.method !== 'HEAD' && status !== 204 && status !== 304
      const lines = toReplyHeaders(headers, {
        chunkable: speaks11 && hasBody,
        ownPrefix: exchange.names.prefix,
      })
      endsByClose = hasBody && !speaks11 && !hasHeader(lines, 'content-length')
      lines.push(...parts.addedHeaders())
      res.sendDate = false
      res.writeHead(status, printable(reason), lines)
      // The head leaves with the first bytes of the body if they came in the same packet, alone otherwise: a
      // client may wait for it long before there is a body. flushHeaders() would encode it as UTF-8.
      queueMicrotask(() => {
        if (!begun && hasBody && !res.destroyed) res.write(EMPTY)
      })
    },

    data(chunk) {
      begun = true
      if (res.write(chunk) || res.destroyed) return true
      stall ??= setTimeout(() => res.destroy(), limits.replyStallTimeoutMs)
      return false
    },

    end(trailers) {
      begun = true
      if (res.destroyed) return
      const theirs = pairs(trailers).filter(([name]) => !name.toLowerCase().startsWith(exchange.names.prefix))
      if (theirs.length > 0) res.addTrailers(theirs)
      res.end()
    },

    cut() {
      // Never res.end(): a chunked body would get its final chunk, and a cut stream would pass for a whole one.
      // What was written still leaves, then the connection ends where the framing says it must not.
      exchange.turn.then(() => {
        const { socket } = res
        if (socket === null || res.destroyed) res.destroy()
        else if (endsByClose) socket.write(EMPTY, () => socket.resetAndDestroy())
        else socket.end(() => socket.destroy())
      })
    },
  }
}

/** Node refuses to send a reason phrase with other characters, and undici may have changed them already. */
function printable(reason: string): string {
  return /^[\t\x20-\x7e]*$/.test(reason) ? reason : ''
}

function pairs(flat: string[]): [string, string][] {
  const out: [string, string][] = []
  for (let i = 0; i < flat.length; i += 2) out.push([flat[i] ?? '', flat[i + 1] ?? ''])
  return out
}
