import { Readable } from 'node:stream'
import { limits } from '../kernel/limits.ts'
import type { MessageHead, MessageReceiver } from './message-reader.ts'
import type { RawConnection } from './raw-connection.ts'
import { composeHead, type Sendable, Unsendable, type UpstreamRequest } from './send-request.ts'
import { UpstreamBroke, type UpstreamConnection } from './upstream-connection.ts'
import type { Placed, UpstreamPool } from './upstream-pool.ts'

/** Takes upstream's reply. Where `data` wants no more at once, `resume()` the call later. */
export type ReplyReceiver = Pick<MessageReceiver, 'head' | 'data'>

/** How a call ended. Exactly one of these, once, whatever happened. */
export type CallEnd =
  | { readonly kind: 'complete'; readonly trailers: string[] }
  | { readonly kind: 'cut'; readonly error: Error }
  /** There was no head. `sent`: upstream may have seen something of the request; `whole`: all of it. */
  | {
      readonly kind: 'failed'
      readonly error: Error
      readonly sent: boolean
      readonly whole: boolean
    }
  | { readonly kind: 'switched'; readonly head: MessageHead; readonly connection: RawConnection }
  /** We gave the call up because the client left. `partly`: upstream cannot have seen all of the request. */
  | { readonly kind: 'abandoned'; readonly sent: boolean; readonly partly?: boolean }

export interface UpstreamCall {
  readonly ended: Promise<CallEnd>
  resume(): void
  abandon(): void
}

/**
 * One call upstream: bytes out with back-pressure, the reply handed on chunk by chunk as it arrives. No request is
 * ever sent twice, since that would be a second bill.
 */
export function callUpstream(
  pool: UpstreamPool,
  request: UpstreamRequest,
  receiver: ReplyReceiver,
): UpstreamCall {
  const head = composeHead(request)
  if (head instanceof Unsendable) return refusedCall(head)
  const call = new PlacedCall(
    { method: request.method, head, body: request.body },
    receiver,
    request.upgrades,
  )
  pool.place(call)
  return call
}

export const HANDSHAKE_TIMEOUT = 'UPSTREAM_HANDSHAKE_TIMEOUT'

class PlacedCall implements UpstreamCall, Placed {
  readonly ended: Promise<CallEnd>
  readonly method: string
  readonly upgrades: boolean
  readonly #receiver: ReplyReceiver
  readonly #finish: (end: CallEnd) => void
  #sendable: Sendable | null
  #connection: UpstreamConnection | null = null
  #handshakeTimer: NodeJS.Timeout | undefined
  #isSent = false
  #hasHead = false
  #isOver = false

  constructor(sendable: Sendable, receiver: ReplyReceiver, upgrades = false) {
    const { promise, resolve } = Promise.withResolvers<CallEnd>()
    this.ended = promise
    this.#finish = resolve
    this.method = sendable.method
    this.upgrades = upgrades
    this.#sendable = sendable
    this.#receiver = receiver
    // Handshake and body are watched from the beginning, since they may fail while there is no connection yet.
    if (upgrades) this.#limitHandshake()
    if (sendable.body instanceof Readable) sendable.body.once('error', (error) => this.#breakOff(error))
  }

  /** The handshake of a WebSocket has a timeout: its client cannot distinguish a slow answer from a lost one. */
  #limitHandshake(): void {
    this.#handshakeTimer = setTimeout(() => {
      this.#breakOff(new UpstreamBroke(HANDSHAKE_TIMEOUT, 'upstream did not answer the handshake'))
    }, limits.socketHandshakeMs)
    this.ended.then(() => clearTimeout(this.#handshakeTimer))
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

  head(head: MessageHead): void {
    this.#hasHead = head.status >= 200
    if (this.#hasHead) clearTimeout(this.#handshakeTimer)
    try {
      this.#receiver.head(head)
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

  end(trailers: string[]): void {
    this.#end({ kind: 'complete', trailers })
  }

  switched(head: MessageHead, connection: RawConnection): void {
    // The call was given up while upstream answered.
    if (this.#isOver) connection.destroy()
    this.#end({ kind: 'switched', head, connection })
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
    const partly = this.#connection?.abandon(this) === false
    this.#end({ kind: 'abandoned', sent: this.#isSent, partly })
  }

  /** The body or the receiver of the reply has failed, or the handshake is late: the call cannot go on. */
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

function refusedCall(error: Unsendable): UpstreamCall {
  return {
    ended: Promise.resolve({ kind: 'failed', error, sent: false, whole: false }),
    resume() {},
    abandon() {},
  }
}
