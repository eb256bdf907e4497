import type { Exchange } from '../http/exchange.ts'
import type { MessageHead } from '../http/message-reader.ts'
import { hasHeader } from '../http/raw-headers.ts'
import {
  announcedTrailers,
  type Figures,
  figureLines,
  printable,
  toReplyHeaders,
  withoutOutdated,
  withoutOwnHeaders,
} from './permitted-changes.ts'

export type ReplyHead = Pick<MessageHead, 'status' | 'reason' | 'headers'>

/** Writes upstream's reply to the client, with the figures as headers or trailers. */
export class ReplyWriter {
  readonly head: ReplyHead
  readonly upstreamMs: () => number
  readonly #exchange: Exchange
  /** The body is changed, so headers that depend on its exact bytes are left out. */
  readonly #isEdited: boolean
  #hasTrailers = false
  #bytesOut = 0

  constructor(exchange: Exchange, head: ReplyHead, isEdited: boolean, upstreamMs: () => number) {
    this.#exchange = exchange
    this.head = head
    this.#isEdited = isEdited
    this.upstreamMs = upstreamMs
  }

  get hasTrailers(): boolean {
    return this.#hasTrailers
  }

  get bytesOut(): number {
    return this.#bytesOut
  }

  /** `figures`: null if they follow as trailers, where the client supports these. */
  begin(figures: Figures | null, figuresFollow = false, upstreamMs = this.upstreamMs()): void {
    const { req, res, names, method, requestId } = this.#exchange
    if (res.destroyed) return
    const { status, reason } = this.head
    const headers = this.#isEdited ? withoutOutdated(this.head.headers) : this.head.headers
    const hasBody = method !== 'HEAD' && status !== 204 && status !== 304
    const isChunkable = req.head.httpVersion === '1.1' && hasBody
    const lines = toReplyHeaders(headers, names.prefix, isChunkable)
    this.#hasTrailers = figuresFollow && isChunkable && !hasHeader(lines, 'content-length')
    lines.push(names.requestId, requestId, ...figureLines(names, figures, upstreamMs))
    if (this.#hasTrailers) lines.push('Trailer', announcedTrailers(names))
    res.writeHead(status, printable(reason), lines, false)
  }

  /** False: the client applies back-pressure. */
  write(chunk: Buffer): boolean {
    this.#bytesOut += chunk.length
    return this.#exchange.res.write(chunk)
  }

  end(chunks: readonly Buffer[], figures: Figures | null, trailers: string[]): void {
    const { res, names } = this.#exchange
    const passed = this.#isEdited ? withoutOutdated(trailers) : trailers
    const lines = passed.length > 0 ? withoutOwnHeaders(passed, names.prefix) : []
    if (this.#hasTrailers) lines.push(...figureLines(names, figures, this.upstreamMs()))
    const last = chunks.at(-1)
    const isMany = chunks.length > 1
    if (isMany) {
      res.cork()
      for (const chunk of chunks.slice(0, -1)) this.write(chunk)
    }
    this.#bytesOut += last?.length ?? 0
    res.end(last, lines)
    if (isMany) res.uncork()
  }
}
