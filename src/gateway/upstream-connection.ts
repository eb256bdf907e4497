import type { Socket } from 'node:net'
import type { MessageHead } from '../http/message-head.ts'
import { MessageReader, type MessageReceiver } from '../http/message-reader.ts'
import { limits } from '../kernel/limits.ts'
import type { Connect } from './connect-upstream.ts'
import { holdFailedWrites } from './hold-failed-writes.ts'
import { reusableMs } from './reuse.ts'
import { type Sendable, sendRequest, type Upload } from './upload.ts'

/** A request with its reply, as a connection sees it. `whole` or `broken` comes last, and once. */
export interface Carried {
  readonly method: string
  /** To be asked for once: nothing is sent twice, and what was sent is not kept. */
  takeSendable(): Sendable
  /** From here on upstream may have seen it. */
  begun(): void
  interim(status: number, headers: string[]): void
  head(status: number, reason: string, headers: string[]): void
  /** Whether more may come at once. The chunk is good until this returns. */
  data(chunk: Buffer): boolean
  whole(trailers: string[]): void
  /** `whole`: nothing of the request was left to be handed to the socket. */
  broken(error: Error, whole: boolean): void
}

export interface ConnectionOwner {
  /** It can carry another request within this time. */
  idle(connection: UpstreamConnection, forMs: number): void
  /** Bytes came that belong to no request. The connection is closed. */
  unasked(): void
  /** It can carry nothing more. May be told again. */
  gone(connection: UpstreamConnection): void
}

/** What went wrong between upstream and us. The code keeps it apart from replies that are no HTTP. */
export class UpstreamBroke extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

const HEAD_LIMITS = { headBytesMax: limits.upstreamHeadBytesMax, headLinesMax: limits.headLinesMax }

/** A connection to upstream, which carries one request at a time. */
export class UpstreamConnection implements MessageReceiver {
  readonly #socket: Socket
  readonly #owner: ConnectionOwner
  readonly #reader = new MessageReader('response', this, HEAD_LIMITS)
  #carried: Carried | null
  #upload: Upload | null = null
  #isInterim = false
  #hasHead = false
  #wasReset = false
  /** Behind the reply came the head of another. */
  #hasUnasked = false
  /** After the reply; 0 if the connection has to close. */
  #reusableMs = 0

  constructor(connect: Connect, first: Carried, owner: ConnectionOwner) {
    const { socket, readyEvent } = connect((chunk) => this.#onData(chunk))
    this.#socket = socket
    this.#owner = owner
    this.#carried = first
    const timer = setTimeout(
      () =>
        this.fail(new UpstreamBroke('UPSTREAM_CONNECT_TIMEOUT', 'upstream did not accept the connection')),
      limits.upstreamConnectTimeoutMs,
    )
    socket.once(readyEvent, () => {
      clearTimeout(timer)
      if (this.#carried !== null) this.carry(this.#carried)
    })
    socket.on('drain', () => this.#upload?.drained())
    socket.on('end', () => this.#onEnd())
    socket.on('error', (error) => this.fail(error))
    socket.on('close', () => {
      clearTimeout(timer)
      this.fail(new UpstreamBroke('UPSTREAM_CLOSED', 'the connection closed'))
      this.#reader.close()
    })
    holdFailedWrites(socket, () => {
      this.#wasReset = true
    })
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  /** Sends a request. The connection is ready, and nothing else is on it. */
  carry(carried: Carried): void {
    this.#carried = carried
    this.#hasHead = false
    this.#isInterim = false
    this.#reusableMs = 0
    carried.begun()
    this.#upload = sendRequest(this.#socket, carried.takeSendable(), (error) => this.fail(error))
  }

  /** The receiver has room again. */
  resume(carried: Carried): void {
    if (this.#carried === carried) this.#socket.resume()
  }

  /** Nobody wants the reply any more. Upstream sees the connection close, and never the end of a body it lacks. */
  abandon(carried: Carried): void {
    if (this.#carried === carried) this.close()
  }

  /** Nobody hears of it. */
  close(): void {
    this.#carried = null
    this.#upload?.stop()
    this.#upload = null
    this.#socket.destroy()
    this.#owner.gone(this)
  }

  /** Closes it; whoever is on it hears why. */
  fail(error: Error): void {
    const carried = this.#carried
    const whole = this.#upload?.isDone ?? true
    this.close()
    carried?.broken(error, whole)
  }

  head(head: MessageHead): 'as_framed' | 'none' {
    const carried = this.#carried
    const { status, headers } = head
    if (carried === null) this.#hasUnasked = true
    else if (status === 100 || status === 101) {
      this.fail(new UpstreamBroke('UPSTREAM_UNASKED', `upstream answered ${status}, which nobody asked for`))
    } else if (status < 100 || status > 999) {
      this.fail(new Error(`upstream answered with status ${status}`))
    } else if (status < 200) {
      this.#isInterim = true
      carried.interim(status, headers)
    } else {
      const { method } = carried
      this.#hasHead = true
      this.#reusableMs = reusableMs(head, method)
      carried.head(status, head.reason, headers)
      return method === 'HEAD' ? 'none' : 'as_framed'
    }
    return 'none'
  }

  body(chunk: Buffer): void {
    if (this.#carried !== null && !this.#carried.data(chunk)) this.#socket.pause()
  }

  end(trailers: string[]): void {
    const carried = this.#carried
    if (carried === null) return
    if (this.#isInterim) {
      this.#isInterim = false
      return
    }
    this.#carried = null
    // What upstream has not taken of the request would stand before the next one.
    const isSent = (this.#upload?.isDone ?? true) && this.#socket.writableLength === 0
    if (!isSent) this.#reusableMs = 0
    this.#upload?.stop()
    this.#upload = null
    carried.whole(trailers)
  }

  #onData(chunk: Buffer): void {
    if (this.#carried === null) {
      this.#refuseUnasked()
      return
    }
    const error = this.#reader.read(chunk)
    if (this.#carried !== null) {
      if (error !== null) this.fail(error)
    } else if (this.isOpen) this.#rest(error)
  }

  /** The reply is over. */
  #rest(error: Error | null): void {
    if (error !== null || this.#hasUnasked || this.#reader.isWithin) this.#refuseUnasked()
    else if (this.#reusableMs === 0) this.close()
    else {
      if (this.#socket.isPaused()) this.#socket.resume()
      this.#owner.idle(this, this.#reusableMs)
    }
  }

  #refuseUnasked(): void {
    const wasOpen = this.isOpen
    this.close()
    if (wasOpen) this.#owner.unasked()
  }

  #onEnd(): void {
    // Where only the end of the connection ends a body, a reset must not pass for it.
    if (this.#hasHead && !this.#wasReset) this.#reader.finish()
    this.fail(new UpstreamBroke('UPSTREAM_CLOSED', 'upstream closed the connection'))
  }
}
