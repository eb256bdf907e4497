import type { Socket } from 'node:net'
import { limits } from '../kernel/limits.ts'
import { type MessageHead, MessageReader, type MessageReceiver } from './message-reader.ts'
import { holdFailedWrites, RawConnection } from './node-sockets.ts'
import { firstValue, hasHeader } from './raw-headers.ts'
import { type Sendable, sendRequest, type Upload } from './send-request.ts'

export interface Connecting {
  readonly socket: Socket
  readonly readyEvent: 'connect' | 'secureConnect'
}

export type Connect = (onChunk: (chunk: Buffer) => void) => Connecting

/** A request and its reply, as seen by a connection. `end` or `broken` comes last, once. */
export interface CarriedCall extends MessageReceiver {
  readonly method: string
  /** Call once: no request is sent twice, and a sent request is not retained. */
  takeSendable(): Sendable
  begun(): void
  /** `whole`: the whole request was handed to the socket. */
  broken(error: Error, whole: boolean): void
  /** Whether the request asks for an upgrade. If upstream agrees, `switched` comes last. */
  readonly upgrades: boolean
  switched(head: MessageHead, connection: RawConnection): void
}

export interface ConnectionPool {
  idle(connection: UpstreamConnection, forMs: number): void
  unasked(): void
  /** The connection can carry no more requests. Idempotent. */
  gone(connection: UpstreamConnection): void
}

/** The connection to upstream failed. The code distinguishes this from replies that are not HTTP. */
export class UpstreamBroke extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

const HEAD_LIMITS = { headBytesMax: limits.upstreamHeadBytesMax, headLinesMax: limits.headLinesMax }

export class UpstreamConnection implements MessageReceiver {
  readonly #socket: Socket
  readonly #owner: ConnectionPool
  readonly #reader = new MessageReader('response', this, HEAD_LIMITS)
  #carried: CarriedCall | null
  #upload: Upload | null = null
  #isInterim = false
  #hasHead = false
  #wasReset = false
  #hasUnasked = false
  #reusableMs = 0
  #raw: RawConnection | null = null

  constructor(connect: Connect, first: CarriedCall, owner: ConnectionPool) {
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
    socket.on('drain', () => {
      this.#upload?.drained()
      this.#raw?.drained()
    })
    socket.on('end', () => this.#onEnd())
    socket.on('error', (error) => this.fail(error))
    socket.on('close', () => {
      clearTimeout(timer)
      this.fail(new UpstreamBroke('UPSTREAM_CLOSED', 'the connection closed'))
      this.#reader.close()
      this.#raw?.closed()
    })
    holdFailedWrites(socket, () => {
      this.#wasReset = true
    })
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed
  }

  carry(carried: CarriedCall): void {
    this.#carried = carried
    this.#hasHead = false
    this.#isInterim = false
    this.#reusableMs = 0
    this.#reader.hasNoBody = carried.method === 'HEAD'
    carried.begun()
    this.#upload = sendRequest(this.#socket, carried.takeSendable(), (error) => this.fail(error))
  }

  resume(carried: CarriedCall): void {
    if (this.#carried === carried) this.#socket.resume()
  }

  /** Closes the connection. Returns whether the whole request had been handed to the socket. */
  abandon(carried: CarriedCall): boolean {
    const whole = this.#upload?.isDone ?? true
    if (this.#carried === carried) this.close()
    return whole
  }

  close(): void {
    this.#carried = null
    this.#upload?.stop()
    this.#upload = null
    this.#socket.destroy()
    this.#owner.gone(this)
  }

  fail(error: Error): void {
    const carried = this.#carried
    const whole = this.#upload?.isDone ?? true
    this.close()
    carried?.broken(error, whole)
  }

  head(head: MessageHead): void {
    const carried = this.#carried
    const { status } = head
    if (carried === null) this.#hasUnasked = true
    else if (status === 101 && carried.upgrades) {
      this.#carried = null
      this.#reader.stop()
      this.#raw = new RawConnection(this.#socket)
      carried.switched(head, this.#raw)
    } else if (status === 100 || status === 101) {
      this.fail(new UpstreamBroke('UPSTREAM_UNASKED', `upstream answered ${status}, which was not asked for`))
    } else if (status < 100 || status > 999) {
      this.fail(new Error(`upstream answered with status ${status}`))
    } else {
      this.#isInterim = status < 200
      this.#hasHead = !this.#isInterim
      if (this.#hasHead) this.#reusableMs = reusableMs(head, carried.method)
      carried.head(head)
    }
  }

  data(chunk: Buffer): boolean {
    if (this.#carried !== null && !this.#carried.data(chunk)) this.#socket.pause()
    return true
  }

  end(trailers: string[]): void {
    const carried = this.#carried
    if (carried === null) return
    if (this.#isInterim) {
      this.#isInterim = false
      return
    }
    this.#carried = null
    // Unsent bytes of this request would precede the next one.
    const isSent = (this.#upload?.isDone ?? true) && this.#socket.writableLength === 0
    if (!isSent) this.#reusableMs = 0
    this.#upload?.stop()
    this.#upload = null
    carried.end(trailers)
  }

  beyond(chunk: Buffer): void {
    this.#raw?.arrived(chunk)
  }

  #onData(chunk: Buffer): void {
    if (this.#raw !== null) {
      this.#raw.arrived(chunk)
      return
    }
    if (this.#carried === null) {
      this.#refuseUnasked()
      return
    }
    const error = this.#reader.read(chunk)
    if (this.#carried !== null) {
      if (error !== null) this.fail(error)
    } else if (this.isOpen && this.#raw === null) this.#rest(error)
  }

  #rest(error: Error | null): void {
    if (error !== null || this.#hasUnasked || this.#reader.hasPartialMessage) this.#refuseUnasked()
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
    if (this.#raw !== null) return
    // A reset must not look like the normal end of a close-delimited body.
    if (this.#hasHead && !this.#wasReset) this.#reader.finish()
    this.fail(new UpstreamBroke('UPSTREAM_CLOSED', 'upstream closed the connection'))
  }
}

const IDLE_MS = 4_000
const IDLE_MS_MAX = 600_000

/** We close idle connections this long before upstream would, so that no request crosses upstream's close. */
const MARGIN_MS = 2_000

function reusableMs(head: MessageHead, method: string): number {
  const { headers } = head
  // If upstream wrongly sends a body for HEAD, it would become part of the next reply, perhaps another key's.
  if (method === 'HEAD' || !head.keepAlive || mayHaveUnannouncedBody(head)) return 0
  // A 408 may have been sent before our request arrived.
  if (head.status === 408) return 0
  const timeout = /timeout=(\d+)/.exec(firstValue(headers, 'keep-alive') ?? '')?.[1]
  if (timeout === undefined) return IDLE_MS
  return Math.max(0, Math.min(Number(timeout) * 1_000 - MARGIN_MS, IDLE_MS_MAX))
}

/** 204 and 304 have no body. If their headers announce one, upstream may send it, and it would be read as the next reply. */
function mayHaveUnannouncedBody({ status, headers }: MessageHead): boolean {
  if (status !== 204 && status !== 304) return false
  return Number(firstValue(headers, 'content-length') ?? 0) > 0 || hasHeader(headers, 'transfer-encoding')
}
