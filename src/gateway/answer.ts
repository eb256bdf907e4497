import type { Exchange } from '../http/exchange.ts'
import { hasHeader } from '../http/raw-headers.ts'
import type { HeaderNames } from '../kernel/header-names.ts'
import { limits } from '../kernel/limits.ts'
import { ChunkList } from '../kernel/memory.ts'
import { formatUsd, type Nanos } from '../kernel/money.ts'
import type { ByteBudget } from './key-shares.ts'
import { toReplyHeaders } from './permitted-changes.ts'

/** The last event of a stream waits for the figures, for up to a second. A larger event does not wait. */
export const LAST_EVENT_BYTES_MAX = 64 * 1024

const LAST_EVENT_WAIT_MS = 1_000

export interface ReplyHead {
  readonly status: number
  readonly reason: string
  readonly headers: string[]
}

/** When the client gets the figures: `now` in the head, `whole` in the head of a buffered reply, `after` as trailers. */
export type FiguresCome =
  | { readonly when: 'now'; readonly figures: Figures }
  | { readonly when: 'whole' }
  | { readonly when: 'after' }

export interface AnswerParts {
  readonly memory: ByteBudget
  readonly keyName: string
  upstreamMs(): number
  onDrain(): void
}

/** Writes upstream's reply to the client chunk by chunk. A slow client pauses upstream. */
export class Answer {
  readonly #exchange: Exchange
  readonly #parts: AnswerParts
  readonly #speaks11: boolean
  #heldHead: ReplyHead | null = null
  /** Time to upstream's head, needed if a buffered reply has to be streamed after all. */
  #heldHeadMs: number | null = null
  readonly #held = new ChunkList()
  #heldBytes = 0
  #trailing = false
  #lastEvent: Buffer[] = []
  #lastEventBytes = 0
  #lastEventTimer: NodeJS.Timeout | null = null
  #stall: NodeJS.Timeout | null = null
  #bytesOut = 0

  constructor(exchange: Exchange, parts: AnswerParts) {
    this.#exchange = exchange
    this.#parts = parts
    this.#speaks11 = exchange.req.httpVersion === '1.1'
    exchange.res.whenDrained.add(() => this.#onDrain())
    exchange.res.whenClosed.add(() => this.#onClose())
  }

  get bytesOut(): number {
    return this.#bytesOut
  }

  get bytesHeld(): number {
    return this.#lastEventBytes + (this.#heldHead === null ? 0 : this.#heldBytes)
  }

  get hasTrailers(): boolean {
    return this.#trailing
  }

  interim({ status, reason, headers }: ReplyHead): void {
    const { res, names } = this.#exchange
    if (!this.#speaks11) return
    const lines = toReplyHeaders(headers, { chunkable: false, ownPrefix: names.prefix })
    res.writeInterim(status, printable(reason), lines)
  }

  begin(head: ReplyHead, come: FiguresCome): void {
    if (come.when === 'whole') {
      this.#heldHead = head
      this.#heldHeadMs = this.#parts.upstreamMs()
      return
    }
    this.#writeHead(head, come.when === 'now' ? come.figures : null, come.when === 'after')
    // Send the head with the first body bytes if they came in the same packet, else alone: a client may need the head
    // long before there is a body.
    queueMicrotask(() => this.#exchange.res.flushHead())
  }

  data(chunk: Buffer): boolean {
    // The client has left: no back-pressure, the rest of the reply is only observed.
    if (this.#exchange.res.destroyed) return true
    if (this.#heldHead === null) return this.#write(chunk)
    const fits =
      this.#heldBytes + chunk.length <= limits.heldReplyBytesMax &&
      this.#parts.memory.tryTake(chunk.length, this.#parts.keyName)
    if (fits) {
      this.#heldBytes += chunk.length
      this.#held.append(chunk)
      return true
    }
    this.#release(null, true)
    return this.#write(chunk)
  }

  /**
   * Buffers the last event until `finish`: clients stop reading there and would miss the trailers. False: wait for
   * `onDrain`.
   */
  keepLast(bytes: Buffer): boolean {
    if (this.#exchange.res.destroyed) return true
    this.#lastEvent.push(Buffer.from(bytes))
    this.#lastEventBytes += bytes.length
    if (this.#lastEventBytes > LAST_EVENT_BYTES_MAX) return this.#releaseLast()
    this.#lastEventTimer ??= setTimeout(() => this.#releaseLast(), LAST_EVENT_WAIT_MS)
    return true
  }

  finish(figures: Figures | null, trailers: string[]): void {
    const { res, names } = this.#exchange
    const held = [...this.#beginHeld(figures, false), ...this.#takeLast()]
    if (trailers.length > 0) res.addTrailers(withoutOurs(trailers, names.prefix))
    if (this.#trailing) res.addTrailers(figureLines(names, figures, this.#parts.upstreamMs()))
    const last = held.at(-1)
    const isMany = held.length > 1
    if (isMany) res.cork()
    for (const chunk of held.slice(0, -1)) this.#write(chunk)
    this.#bytesOut += last?.length ?? 0
    res.end(last)
    if (isMany) res.uncork()
  }

  /** Upstream ended mid-body. The client must not mistake the part it got for the whole reply. */
  cut(): void {
    this.#release(null, false)
    this.#releaseLast()
    // Not res.end(): it would send the final chunk, and the cut stream would look complete.
    this.#exchange.res.cut()
  }

  #release(figures: Figures | null, figuresFollow: boolean): void {
    for (const chunk of this.#beginHeld(figures, figuresFollow)) this.#write(chunk)
  }

  #releaseLast(): boolean {
    let hasRoom = true
    for (const bytes of this.#takeLast()) hasRoom = this.#write(bytes)
    return hasRoom
  }

  #takeLast(): readonly Buffer[] {
    const last = this.#lastEvent
    if (this.#lastEventTimer !== null) clearTimeout(this.#lastEventTimer)
    this.#lastEventTimer = null
    if (last.length === 0) return last
    this.#lastEvent = []
    this.#lastEventBytes = 0
    return [Buffer.concat(last)]
  }

  /** Writes the buffered head, if any, and returns the buffered body, which the caller must write. */
  #beginHeld(figures: Figures | null, figuresFollow: boolean): readonly Buffer[] {
    const head = this.#heldHead
    if (head === null) return []
    this.#heldHead = null
    this.#writeHead(head, figures, figuresFollow)
    return this.#held.all()
  }

  #writeHead({ status, reason, headers }: ReplyHead, figures: Figures | null, figuresFollow: boolean): void {
    const { res, names, method, requestId } = this.#exchange
    if (res.destroyed) return
    const hasBody = method !== 'HEAD' && status !== 204 && status !== 304
    const lines = toReplyHeaders(headers, { chunkable: this.#speaks11 && hasBody, ownPrefix: names.prefix })
    this.#trailing = figuresFollow && hasBody && this.#speaks11 && !hasHeader(lines, 'content-length')
    const upstreamMs = (figuresFollow ? this.#heldHeadMs : null) ?? this.#parts.upstreamMs()
    lines.push(names.requestId, requestId, ...figureLines(names, figures, upstreamMs))
    if (this.#trailing) lines.push('Trailer', announcedTrailers(names))
    res.sendDate = false
    res.writeHead(status, printable(reason), lines)
  }

  #write(chunk: Buffer): boolean {
    this.#bytesOut += chunk.length
    if (this.#exchange.res.write(chunk)) return true
    this.#watchStall()
    return false
  }

  /** Disconnects a client that reads nothing at all for a long time. A slow reader is not disconnected. */
  #watchStall(): void {
    const { res } = this.#exchange
    const taken = res.bytesTaken
    this.#stall ??= setTimeout(() => {
      this.#stall = null
      if (res.bytesTaken === taken) res.destroy()
      else this.#watchStall()
    }, limits.replyStallTimeoutMs)
  }

  #stopStall(): void {
    if (this.#stall !== null) clearTimeout(this.#stall)
    this.#stall = null
  }

  #onDrain(): void {
    this.#stopStall()
    this.#parts.onDrain()
  }

  #onClose(): void {
    this.#stopStall()
    this.#takeLast()
    // Freed only when the socket closes: until then the bytes are in its buffer.
    if (this.#heldBytes > 0) this.#parts.memory.giveBack(this.#heldBytes, this.#parts.keyName)
    this.#heldBytes = 0
    this.#heldHead = null
    this.#held.clear()
  }
}

/** A reason phrase with characters other than tabs and printable ASCII is not sent. */
function printable(reason: string): string {
  return /^[\t\x20-\x7e]*$/.test(reason) ? reason : ''
}

export function withoutOurs(lines: string[], prefix: string): string[] {
  const out: string[] = []
  for (let i = 0; i < lines.length; i += 2) {
    const name = lines[i] ?? ''
    if (!name.toLowerCase().startsWith(prefix)) out.push(name, lines[i + 1] ?? '')
  }
  return out
}

export interface Figures {
  readonly costNanos: Nanos
  readonly listNanos: Nanos
  readonly balanceNanos: Nanos | null
}

export function figureLines(
  names: HeaderNames,
  figures: Figures | null,
  upstreamMs: number | null,
): string[] {
  const lines: string[] = []
  if (figures !== null) {
    lines.push(names.costUsd, formatUsd(figures.costNanos), names.listCostUsd, formatUsd(figures.listNanos))
  }
  if (upstreamMs !== null) lines.push(names.upstreamMs, String(upstreamMs))
  if (names.balanceUsd !== null && figures !== null && figures.balanceNanos !== null) {
    lines.push(names.balanceUsd, formatUsd(figures.balanceNanos))
  }
  return lines
}

function announcedTrailers(names: HeaderNames): string {
  const { costUsd, listCostUsd, upstreamMs, balanceUsd } = names
  return [costUsd, listCostUsd, upstreamMs, ...(balanceUsd === null ? [] : [balanceUsd])].join(', ')
}
