import { Readable } from 'node:stream'
import { composeHead, Unsendable, type UpstreamRequest } from './request-head.ts'
import type { Sendable } from './upload.ts'
import type { UpstreamConnection } from './upstream-connection.ts'
import type { Placed, UpstreamPool } from './upstream-pool.ts'

/**
 * What upstream says, in order. A chunk is good until `data` returns; what that returns says whether more may come at
 * once. If not, `resume()` the call later.
 */
export interface ReplyReceiver {
  interim(status: number, headers: string[]): void
  head(status: number, reason: string, headers: string[]): void
  data(chunk: Buffer): boolean
}

/** How a call ended. Exactly one of these, once, whatever happened. */
export type CallEnd =
  | { readonly kind: 'complete'; readonly trailers: string[] }
  /** The head had arrived, the rest will not. */
  | { readonly kind: 'cut'; readonly error: Error }
  /** There was no head. `sent`: upstream may have seen something of the request; `whole`: all of it. */
  | {
      readonly kind: 'failed'
      readonly error: Error
      readonly sent: boolean
      readonly whole: boolean
    }
  /** We gave it up because the client left. */
  | { readonly kind: 'abandoned'; readonly sent: boolean }

export interface Call {
  readonly ended: Promise<CallEnd>
  resume(): void
  abandon(): void
}

/**
 * One call upstream: bytes out with back-pressure, the reply handed on chunk by chunk as it arrives. Nothing is ever
 * sent twice, since that would be a second bill.
 */
export function forward(pool: UpstreamPool, request: UpstreamRequest, receiver: ReplyReceiver): Call {
  const head = composeHead(request)
  if (head instanceof Unsendable) return refusedCall(head)
  const call = new ForwardedCall({ method: request.method, head, body: request.body }, receiver)
  pool.place(call)
  return call
}

class ForwardedCall implements Call, Placed {
  readonly ended: Promise<CallEnd>
  readonly method: string
  readonly #receiver: ReplyReceiver
  readonly #finish: (end: CallEnd) => void
  #sendable: Sendable | null
  #connection: UpstreamConnection | null = null
  #isSent = false
  #hasHead = false
  #isOver = false

  constructor(sendable: Sendable, receiver: ReplyReceiver) {
    const { promise, resolve } = Promise.withResolvers<CallEnd>()
    this.ended = promise
    this.#finish = resolve
    this.method = sendable.method
    this.#sendable = sendable
    this.#receiver = receiver
    // From the beginning, since it may break while there is no connection yet.
    if (sendable.body instanceof Readable) sendable.body.once('error', (error) => this.#breakOff(error))
  }

  get isOver(): boolean {
    return this.#isOver
  }

  takeSendable(): Sendable {
    const sendable = this.#sendable
    if (sendable === null) throw new Error('a request is sent once')
    this.#sendable = null
    return sendable
  }

  placed(connection: UpstreamConnection): void {
    this.#connection = connection
  }

  begun(): void {
    this.#isSent = true
  }

  interim(status: number, headers: string[]): void {
    try {
      this.#receiver.interim(status, headers)
    } catch (error) {
      this.#breakOff(error)
    }
  }

  head(status: number, reason: string, headers: string[]): void {
    this.#hasHead = true
    try {
      this.#receiver.head(status, reason, headers)
    } catch (error) {
      this.#breakOff(error)
    }
  }

  data(chunk: Buffer): boolean {
    try {
      return this.#receiver.data(chunk)
    } catch (error) {
      this.#breakOff(error)
      return false
    }
  }

  whole(trailers: string[]): void {
    this.#end({ kind: 'complete', trailers })
  }

  broken(error: Error, whole: boolean): void {
    if (this.#hasHead) this.#end({ kind: 'cut', error })
    else this.#end({ kind: 'failed', error, sent: this.#isSent, whole: this.#isSent && whole })
  }

  resume(): void {
    this.#connection?.resume(this)
  }

  abandon(): void {
    if (this.#isOver) return
    this.#connection?.abandon(this)
    this.#end({ kind: 'abandoned', sent: this.#isSent })
  }

  /** The body broke, or whoever takes the reply: neither may go on. */
  #breakOff(cause: unknown): void {
    if (this.#isOver) return
    this.#connection?.abandon(this)
    this.broken(cause instanceof Error ? cause : new Error(String(cause)), false)
  }

  #end(end: CallEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#connection = null
    this.#finish(end)
  }
}

function refusedCall(error: Unsendable): Call {
  return {
    ended: Promise.resolve({ kind: 'failed', error, sent: false, whole: false }),
    resume() {},
    abandon() {},
  }
}
