import type { Exchange } from '../http/exchange.ts'
import { hasHeader } from '../http/raw-headers.ts'
import { limits } from '../kernel/limits.ts'
import type { ByteBudget } from './byte-budget.ts'
import { ChunkList } from './chunk-list.ts'
import { announcedTrailers, type Figures, figureLines } from './figures.ts'
import { toReplyHeaders } from './reply-headers.ts'

/** Upstream's head, as it came. */
export interface ReplyHead {
  readonly status: number
  readonly reason: string
  readonly headers: string[]
}

/**
 * When the figures of a call reach the client.
 * `now`: they are known with the head, and are headers. `whole`: the reply is held back until it is whole, then
 * they are headers. `after`: the reply streams and they follow as trailers, where its framing has a place for them.
 */
export type FiguresCome =
  | { readonly when: 'now'; readonly figures: Figures }
  | { readonly when: 'whole' }
  | { readonly when: 'after' }

export interface Answer {
  interim(status: number, headers: string[]): void
  begin(head: ReplyHead, figures: FiguresCome): void
  /** False: the client has no room, wait for `onDrain`. */
  data(chunk: Buffer): boolean
  finish(figures: Figures | null, trailers: string[]): void
  /** Upstream ended before its body did. The client must not take what it got for the whole. */
  cut(): void
  readonly bytesOut: number
}

export interface AnswerParts {
  readonly memory: ByteBudget
  /** Milliseconds spent upstream until now. */
  upstreamMs(): number
  /** The client has room again. */
  onDrain(): void
}

const EMPTY = Buffer.alloc(0)

/**
 * Hands upstream's reply to the client. A streamed reply is written chunk by chunk as it comes, and when the client
 * reads slowly, upstream is told to wait.
 */
export function openAnswer(exchange: Exchange, parts: AnswerParts): Answer {
  const { req, res, names } = exchange
  const speaks11 = req.httpVersion === '1.1'
  let held: { readonly head: ReplyHead; readonly chunks: ChunkList } | null = null
  let heldBytes = 0
  let written = false
  let trailing = false
  /** Only the end of the connection ends the body: HTTP/1.0 without a length. */
  let endsByClose = false
  let stall: NodeJS.Timeout | null = null
  let bytesOut = 0

  const stopStall = () => {
    if (stall !== null) clearTimeout(stall)
    stall = null
  }
  res.on('drain', () => {
    stopStall()
    parts.onDrain()
  })
  res.once('close', () => {
    stopStall()
    // Not before: until then the bytes wait in the socket.
    parts.memory.giveBack(heldBytes)
    heldBytes = 0
    held = null
  })

  /** Cuts off a client that takes nothing at all for a long time; one that reads slowly is reading. */
  function watchStall(): void {
    const taken = res.socket?.bytesWritten ?? 0
    stall ??= setTimeout(() => {
      stall = null
      if ((res.socket?.bytesWritten ?? 0) === taken) res.destroy()
      else watchStall()
    }, limits.replyStallTimeoutMs)
  }

  function writeHead(
    { status, reason, headers }: ReplyHead,
    figures: Figures | null,
    figuresFollow: boolean,
  ): void {
    if (res.destroyed) return
    const hasBody = exchange.method !== 'HEAD' && status !== 204 && status !== 304
    const lines = toReplyHeaders(headers, { chunkable: speaks11 && hasBody, ownPrefix: names.prefix })
    const sized = hasHeader(lines, 'content-length')
    endsByClose = hasBody && !speaks11 && !sized
    trailing = figuresFollow && hasBody && speaks11 && !sized
    lines.push(names.requestId, exchange.requestId, ...figureLines(names, figures, parts.upstreamMs()))
    if (trailing) lines.push('Trailer', announcedTrailers(names))
    res.sendDate = false
    res.writeHead(status, printable(reason), lines)
    // The head leaves with the first bytes of the body if they came in the same packet, alone otherwise: a client
    // may wait for it long before there is a body. flushHeaders() would encode it as UTF-8.
    queueMicrotask(() => {
      if (!written && hasBody && !res.destroyed) res.write(EMPTY)
    })
  }

  function write(chunk: Buffer): boolean {
    written = true
    // Nobody is there to wait for; what still comes is only looked at.
    if (res.destroyed) return true
    bytesOut += chunk.length
    if (res.write(chunk)) return true
    watchStall()
    return false
  }

  /** Sends what was held back. Afterwards the reply streams. */
  function release(figures: Figures | null, figuresFollow: boolean): boolean {
    if (held === null) return true
    const { head, chunks } = held
    held = null
    writeHead(head, figures, figuresFollow)
    let room = true
    for (const chunk of chunks.all()) room = write(chunk)
    return room
  }

  return {
    get bytesOut() {
      return bytesOut
    },

    interim(status, headers) {
      // Interim responses may be dropped; one that is not at the head of its connection must be.
      if (!speaks11 || res.headersSent || res.destroyed || res.socket === null) return
      res.writeInformation(status, toReplyHeaders(headers, { chunkable: false, ownPrefix: names.prefix }))
    },

    begin(head, come) {
      if (come.when === 'now') writeHead(head, come.figures, false)
      else if (come.when === 'after') writeHead(head, null, true)
      else held = { head, chunks: new ChunkList() }
    },

    data(chunk) {
      if (held === null) return write(chunk)
      const fits = heldBytes + chunk.length <= limits.heldReplyBytesMax && parts.memory.tryTake(chunk.length)
      if (fits) {
        heldBytes += chunk.length
        held.chunks.append(chunk)
        return true
      }
      release(null, true)
      return write(chunk)
    },

    finish(figures, trailers) {
      if (held !== null) release(figures, false)
      written = true
      if (res.destroyed) return
      const ours = trailing ? figureLines(names, figures, parts.upstreamMs()) : []
      const theirs = pairs(trailers).filter(([name]) => !name.toLowerCase().startsWith(names.prefix))
      const all = [...theirs, ...pairs(ours)]
      if (all.length > 0) res.addTrailers(all)
      res.end()
    },

    cut() {
      release(null, false)
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
