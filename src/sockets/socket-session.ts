import type { ReservedBytes } from '../calls/key-shares.ts'
import type { RawConnection } from '../http/node-sockets.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Refusal } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import {
  closeFrame,
  type FramePart,
  FrameReader,
  type Message,
  MessageReader,
  maskedFrame,
  OPCODE,
  textFrame,
} from './frames.ts'
import { SocketInbox } from './socket-inbox.ts'
import type { MeteredSocket, RefusedTurn } from './socket-protocol.ts'
import type { SocketTurns } from './socket-turns.ts'

const SOCKET_CLOSE_MS = 2_000

/** The codes with which the gateway closes a socket. */
const CLOSE = { policy: 1008, failed: 1011, restart: 1012 } as const

/** Close codes by which upstream says that the client's messages were invalid. */
const BLAMES_CLIENT: ReadonlySet<number> = new Set([1002, 1003, 1007, 1008, 1009])

const RESTARTING = 'The gateway is restarting.'
const REVOKED = 'The API key is no longer valid.'

/**
 * How many frames of a client are processed before other sockets get their turn, and how many bytes are read at once
 * while frames may be small: 64 KB of tiny messages took 4 s of a busy machine.
 */
export const FRAMES_AT_ONCE = 32
const PIECE_BYTES = 256

interface SessionOptions {
  readonly client: RawConnection
  readonly upstream: RawConnection
  /** Null on a socket that is not metered. */
  readonly turns: SocketTurns | null
  readonly clock: Clock
  readonly memory: ReservedBytes
  failed(error: unknown): void
  errorEvent(refusal: Refusal, about: RefusedTurn): string
}

/** Upstream's bytes pass at once, the client's by message: one that begins a turn waits for admission. */
export class SocketSession implements MeteredSocket {
  /** Resolves when both connections are closed and every turn is settled. */
  readonly ended: Promise<void>
  readonly #resolveEnded: () => void
  readonly #options: SessionOptions
  readonly #client: RawConnection
  readonly #upstream: RawConnection
  readonly #turns: SocketTurns | null
  readonly #inbox: SocketInbox | null
  readonly #fromClient = new FrameReader('client')
  readonly #fromUpstream = new FrameReader('server')
  readonly #upstreamMessages = new MessageReader(limits.socketMessageBytesMax)
  #clientBytes: Buffer = Buffer.alloc(0)
  #framesRead = 0
  /** The gateway's own messages to the client, which wait until the current upstream message ends. */
  #notices: Buffer[] = []
  /** The close frame for the client, after which nothing is written. */
  #closing: Buffer | null = null
  /** Whether the client has left: it closed the socket, its connection ended, or the gateway closes the socket. */
  #hasLeft = false
  #isClientGone = false
  #isCloseSent = false
  #isOver = false
  #isSettled = false
  #isClientFull = false
  /** Whether the client does not read the gateway's own messages. */
  #areNoticesBlocked = false
  #isUpstreamFull = false
  /** Whether the client left with unread data. Then turns may have begun that were not observed yet. */
  #hasUnreadData = false
  #pendingObservations = 0
  #isPaused = false
  #leaveTimer: NodeJS.Timeout | null = null
  #hasDrained = false
  /** When the client last read bytes, or had nothing to read. */
  #lastReadMs: number
  #isDraining = false
  #isRevoked = false

  constructor(options: SessionOptions) {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.ended = promise
    this.#resolveEnded = resolve
    this.#options = options
    this.#client = options.client
    this.#upstream = options.upstream
    this.#turns = options.turns
    this.#lastReadMs = options.clock.monotonicMs()
    this.#inbox = options.turns && new SocketInbox(this, options.turns, options.memory)
  }

  start(): void {
    this.#turns?.start(this)
    this.#upstream.receive({
      data: (chunk) => this.#upstreamSent(chunk),
      drained: () => {
        this.#isUpstreamFull = false
        this.#updateFlow()
      },
      closed: () => this.#upstreamClosed(),
    })
    this.#client.receive({
      data: (chunk) => this.#clientSent(chunk),
      drained: () => {
        this.#isClientFull = false
        this.#hasDrained = true
        this.#areNoticesBlocked = false
        this.#updateFlow()
      },
      closed: () => this.#clientClosed(),
    })
  }

  get #running(): number {
    return this.#turns?.running ?? 0
  }

  drain(): void {
    this.#isDraining = true
    this.#inbox?.pause()
    this.#closeIfIdle()
  }

  /** Closes the socket for a restart. Returns how many turns are cut. */
  closeForRestart(): number {
    const running = this.#running
    this.close(CLOSE.restart, RESTARTING)
    return running
  }

  keyRevoked(): void {
    this.#isRevoked = true
    this.#turns?.keyRevoked()
    this.#inbox?.pause()
    this.#closeIfIdle()
  }

  checkTimeouts(nowMs: number): void {
    // Treat a client that reads slowly as one that does not read: upstream cannot be observed while data waits.
    if (this.#client.bytesWaiting === 0 || this.#hasDrained) this.#lastReadMs = nowMs
    this.#hasDrained = false
    if (nowMs - this.#lastReadMs >= limits.replyStallTimeoutMs) this.#client.destroy()
    this.#turns?.checkTimeouts(nowMs)
    this.#closeIfIdle()
    // While the client does not read, the end of the last turn would go unnoticed.
    if (this.#isRevoked && this.#isClientFull) this.close(CLOSE.policy, REVOKED)
  }

  /** Closes the socket with a code and a reason. Running turns are billed as if the client had left. */
  close(code: number, reason: string): void {
    if (this.#closing !== null || this.#isClientGone) return
    this.#closing = closeFrame(code, reason, false)
    this.#inbox?.stop()
    this.#writeNotices()
    // The close frame cannot be written in the middle of an upstream frame, whose rest may never come.
    if (!this.#isClientGone) setTimeout(() => this.#client.destroy(), SOCKET_CLOSE_MS).unref()
    this.#onClientLeft()
  }

  #clientSent(bytes: Buffer): void {
    this.#clientBytes = this.#clientBytes.length === 0 ? bytes : Buffer.concat([this.#clientBytes, bytes])
    this.resumeReading()
  }

  /** Reads the client again. Call it when there may be memory for more of its bytes. */
  resumeReading(): void {
    this.#readClient()
    this.#updateFlow()
  }

  /** Splits client bytes into frames while there is room. One chunk may contain thousands of messages. */
  #readClient(): void {
    const inbox = this.#inbox
    while (this.#clientBytes.length > 0 && inbox?.isFull !== true && this.#closing === null) {
      if (this.#framesRead >= FRAMES_AT_ONCE) return
      const piece = this.#clientBytes.subarray(0, Math.max(PIECE_BYTES, this.#fromClient.bytesLeft))
      this.#clientBytes = this.#clientBytes.subarray(piece.length)
      const violation = this.#fromClient.read(piece, (part) => {
        if (part.endsFrame) this.#countFrame()
        if (part.opcode === OPCODE.close) this.#onClientClose(part)
        else if (part.kind === 'control' || inbox === null) this.forward([part.wire])
        else inbox.take(part)
      })
      if (violation !== null) this.close(violation.closeCode, violation.reason)
    }
  }

  /** Once enough frames were read, the next are read after the event loop has served the other sockets. */
  #countFrame(): void {
    this.#framesRead += 1
    if (this.#framesRead !== FRAMES_AT_ONCE) return
    setImmediate(() => {
      this.#framesRead = 0
      this.resumeReading()
    })
  }

  forward(wires: readonly Buffer[]): void {
    if (this.#isCloseSent) return
    for (const wire of wires) if (!this.#upstream.write(wire)) this.#isUpstreamFull = true
    this.#updateFlow()
  }

  /** The client's close frame passes at once; waiting messages are dropped. Upstream may still state usage. */
  #onClientClose({ wire, payload }: FramePart): void {
    this.#inbox?.stop()
    this.forward([wire])
    this.#isCloseSent = true
    // A client that closes with unread data will not read it.
    if (this.#isClientFull) this.#client.destroy()
    // After upstream's close frame, this is the client's answer to it.
    else if (!this.#isOver) this.#onClientLeft()
    // Upstream may not answer the close in time. Do not let the client wait.
    const code = payload.length < 2 ? 1000 : payload.readUInt16BE(0)
    setTimeout(() => this.close(code, ''), SOCKET_CLOSE_MS).unref()
  }

  #upstreamSent(bytes: Buffer): void {
    if (this.#isOver) return
    const parts: FramePart[] = []
    const violation = this.#fromUpstream.read(bytes, (part) => parts.push(part))
    // Usually there is one part, and corked writes are slower in Node.
    const isCorked = parts.length > 1
    if (isCorked) this.#client.cork()
    for (const part of parts) this.#passToClient(part)
    if (isCorked) this.#client.uncork()
    for (const part of parts) {
      if (part.opcode === OPCODE.close) this.#onUpstreamClose(part)
      else if (this.#turns !== null) this.#observe(this.#upstreamMessages.push(part))
    }
    if (violation !== null) this.#upstreamFailed(`upstream broke the protocol: ${violation.reason}`)
    this.#updateFlow()
  }

  #passToClient(part: FramePart): void {
    if (this.#isClientGone) {
      if (part.opcode === OPCODE.ping) this.#upstream.write(maskedFrame(OPCODE.pong, part.payload))
      return
    }
    this.#writeClient(part.wire)
    if (this.#notices.length === 0 && this.#closing === null) return
    if (part.endsMessage) this.#writeNotices(true)
    else if (part.endsFrame && this.#closing !== null) this.#writeClose()
  }

  #writeClient(wire: Buffer): void {
    if (this.#client.write(wire)) return
    // Do not wait for a client that has closed the socket and does not read.
    if (this.#hasLeft) this.#client.destroy()
    else this.#isClientFull = true
  }

  #observe(message: Message | null): void {
    if (message === null) return
    // A message that cannot be read may have stated the usage, or begun a turn.
    if (message.kind === 'unreadable') {
      this.#upstreamFailed('an upstream message could not be read')
      return
    }
    const pending = this.#turns?.observe(message.payload) ?? null
    if (pending === null) return
    this.#pendingObservations += 1
    pending.finally(() => {
      this.#pendingObservations -= 1
      this.#updateFlow()
    })
  }

  #upstreamFailed(reason: string): void {
    if (this.#isOver) return
    this.#finish(this.#hasLeft)
    this.close(CLOSE.failed, reason)
    this.#upstream.destroy()
  }

  refuse(refusal: Refusal, about: RefusedTurn): void {
    this.#notices.push(textFrame(this.#options.errorEvent(refusal, about)))
    this.#writeNotices()
    this.#updateFlow()
  }

  /** `isBetween`: whether the written bytes end between messages. The reader may be ahead of them. */
  #writeNotices(isBetween = this.#fromUpstream.isBetweenMessages): void {
    if (this.#isClientGone) return
    if (isBetween) {
      for (const notice of this.#notices.splice(0)) {
        if (this.#client.write(notice)) continue
        this.#isClientFull = true
        this.#areNoticesBlocked = true
      }
    }
    if (isBetween || this.#fromUpstream.isBetweenFrames) this.#writeClose()
  }

  #writeClose(): void {
    if (this.#closing === null) return
    this.#isClientGone = true
    this.#client.write(this.#closing)
    this.#client.end(SOCKET_CLOSE_MS)
  }

  #updateFlow(): void {
    // Every refusal is answered, so stop reading a client that does not read these answers.
    const isBlocked = this.#areNoticesBlocked || this.#notices.length > 0
    const isAhead = this.#clientBytes.length > 0 || this.#inbox?.isFull === true || this.#isUpstreamFull
    const isSlow = this.#isClientFull && !this.#isClientGone
    // Also stop reading a client that blocks upstream: turns that its messages begin could not be observed.
    const isUnseen = isSlow && this.#turns?.upstreamBegins === true
    if (!this.#isClientGone && (isAhead || isBlocked || isUnseen)) this.#client.pause()
    else this.#client.resume()
    const isPaused = isSlow || this.#pendingObservations > 0
    if (isPaused === this.#isPaused) return
    this.#isPaused = isPaused
    if (isPaused) this.#upstream.pause()
    else this.#upstream.resume()
    this.#turns?.paused(isPaused)
  }

  turnEnded(): void {
    this.#closeIfIdle()
    if (!this.#hasLeft || this.#running > 0 || this.#hasUnreadData || this.#leaveTimer === null) return
    // Upstream has the client's close frame, and may still answer it.
    if (this.#isCloseSent) this.#closeUpstreamIn(SOCKET_CLOSE_MS)
    else this.#closeUpstream()
  }

  #closeIfIdle(): void {
    if (this.#isRevoked && this.#turns?.runsPermittedTurn !== true) this.close(CLOSE.policy, REVOKED)
    else if (this.#isDraining && this.#running === 0) this.close(CLOSE.restart, RESTARTING)
  }

  #clientClosed(): void {
    this.#isClientGone = true
    this.#inbox?.stop()
    this.#onClientLeft()
    this.#endIfOver()
  }

  /** Handles the end of the client. Upstream is read for as long as the bill needs it. */
  #onClientLeft(): void {
    this.#hasLeft = true
    this.#hasUnreadData ||= this.#isClientFull
    if (this.#isClientGone) this.#isClientFull = false
    this.#updateFlow()
    if (this.#upstream.isClosed || this.#leaveTimer !== null) return
    const minimumMs = this.#hasUnreadData ? limits.readOnMs : this.#isCloseSent ? SOCKET_CLOSE_MS : 0
    const ms = Math.max(minimumMs, this.#turns?.readOnMs() ?? 0)
    if (ms === 0) this.#closeUpstream()
    else this.#closeUpstreamIn(ms)
  }

  #closeUpstreamIn(ms: number): void {
    if (this.#leaveTimer !== null) clearTimeout(this.#leaveTimer)
    this.#leaveTimer = setTimeout(() => this.#closeUpstream(), ms)
  }

  #closeUpstream(): void {
    if (!this.#isCloseSent) this.#upstream.write(closeFrame(1000, '', true))
    this.#isCloseSent = true
    this.#upstream.end(SOCKET_CLOSE_MS)
    this.#finish(true)
  }

  /** Handles upstream's close frame. Upstream sends nothing more, and the client answers the frame. */
  #onUpstreamClose({ payload }: FramePart): void {
    this.#inbox?.stop()
    const code = payload.length < 2 ? 0 : payload.readUInt16BE(0)
    this.#finish(this.#hasLeft || BLAMES_CLIENT.has(code))
    this.#closeUpstreamIn(SOCKET_CLOSE_MS)
  }

  #upstreamClosed(): void {
    this.#inbox?.stop()
    this.#finish(this.#hasLeft)
    if (this.#leaveTimer !== null) clearTimeout(this.#leaveTimer)
    if (!this.#isClientGone) this.#client.end(SOCKET_CLOSE_MS)
    this.#endIfOver()
  }

  #finish(abandoned: boolean): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#inbox?.stop()
    this.#upstreamMessages.clear()
    const ended = this.#turns?.end(abandoned) ?? Promise.resolve()
    ended
      .catch((error: unknown) => this.#options.failed(error))
      .finally(() => {
        this.#isSettled = true
        this.#endIfOver()
      })
  }

  #endIfOver(): void {
    if (this.#isSettled && this.#client.isClosed && this.#upstream.isClosed) this.#resolveEnded()
  }
}
