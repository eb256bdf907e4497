import type { RawConnection } from '../../http/raw-connection.ts'
import type { Refusal } from '../../kernel/errors.ts'
import { limits } from '../../kernel/limits.ts'
import { type Borrowed, copyIfBorrowed } from '../../kernel/memory.ts'
import { type FramePart, FrameReader, OPCODE } from '../../sockets/frame-reader.ts'
import { closeFrame, pongFrame, textFrame } from '../../sockets/frame-writer.ts'
import { type Extensions, type Message, MessageReader, messageOf } from '../../sockets/message-reader.ts'
import { SocketInbox } from './socket-inbox.ts'
import type { SocketMeter } from './socket-meter.ts'

/** Why we close a socket ourselves, by the codes of RFC 6455 and those registered since. */
const CLOSE = { policy: 1008, failed: 1011, restart: 1012 } as const

const RESTARTING = 'The gateway is restarting.'
const REVOKED = 'The API key is not in force any more.'

/** How much is read at once between frames, where messages may be short. */
const PIECE_BYTES = 4 * 1024

interface SessionParts {
  readonly client: RawConnection
  readonly upstream: RawConnection
  readonly extensions: Extensions | null
  readonly meter: SocketMeter
  /** Waits for a turn to decode a message of the client. Null: the client has left by then. */
  decode<T>(work: () => Promise<T>): Promise<T | null>
  /** Takes and gives back memory for messages that wait; false where there is none. */
  takeMemory(bytes: number): boolean
  giveMemoryBack(bytes: number): void
  /** The meter could not end. */
  failed(error: unknown): void
  /** The text of the event that tells a refusal. */
  errorEvent(
    refusal: Refusal,
    about: { readonly requestId: string; readonly streamId: string | null },
  ): string
}

/**
 * The bytes of a WebSocket, passed between its two ends as they are: upstream's at once, the client's message by message,
 * since one that begins a turn waits for its admission. Control frames wait for nothing but a close, which keeps its place.
 */
export class SocketSession {
  /** Resolves when both connections are closed and every turn is settled. */
  readonly ended: Promise<void>
  readonly #parts: SessionParts
  readonly #client: RawConnection
  readonly #upstream: RawConnection
  readonly #meter: SocketMeter
  readonly #inbox: SocketInbox
  readonly #fromClient: FrameReader
  readonly #fromUpstream: FrameReader
  readonly #upstreamMessages: MessageReader
  #resolveEnded = () => {}
  /** Bytes of the client that are not split into frames yet. */
  #clientBytes: Buffer = Buffer.alloc(0)
  /** Messages of the gateway for the client, which wait for the end of a message of upstream. */
  #notices: Buffer[] = []
  /** The close frame for the client, after which nothing is written. */
  #closing: Buffer | null = null
  #isClientGone = false
  #isUpstreamClosing = false
  /** The client's own close frame went upstream. */
  #isCloseSent = false
  #isUpstreamGone = false
  #isOver = false
  #isSettled = false
  #isClientFull = false
  /** The client does not read the gateway's own messages. */
  #areNoticesBlocked = false
  #isUpstreamFull = false
  /** Upstream is not read; `#isSlow`: because the client does not read. */
  #isPaused = false
  #isSlow = false
  /** The client has left without having read, so that upstream was not read either: turns that have begun are still to be seen. */
  #isCatchingUp = false
  /** How many reads of compressed messages upstream waits for. */
  #decodesPending = 0
  #observing: Promise<void> | null = null
  #leaveTimer: NodeJS.Timeout | null = null
  /** Since when a client that does not read has stalled. */
  #hasDrained = false
  #takenSinceMs = 0
  #isDraining = false
  #isRevoked = false

  constructor(parts: SessionParts) {
    this.#parts = parts
    this.#client = parts.client
    this.#upstream = parts.upstream
    this.#meter = parts.meter
    const { extensions } = parts
    this.#fromClient = new FrameReader({ from: 'client', compression: extensions !== null })
    this.#fromUpstream = new FrameReader({ from: 'server', compression: extensions !== null })
    const messageBytesMax = limits.socketMessageBytesMax
    this.#upstreamMessages = new MessageReader({ inflate: extensions?.server ?? null, messageBytesMax })
    this.#inbox = new SocketInbox({
      messages: new MessageReader({ inflate: extensions?.client ?? null, messageBytesMax }),
      keepsContext: extensions?.client.contextTakeover ?? false,
      judge: (message) => this.#meter.judge(message),
      forward: (wires) => this.#sendUpstream(wires),
      refuse: (refusal, about) => this.#tell(parts.errorEvent(refusal, about)),
      close: (code, reason) => this.close(code, reason),
      revoked: () => this.revoked(),
      clientCloses: (part) => this.#clientCloses(part),
      flowChanged: () => {
        this.#readClient()
        this.#flow()
      },
      decode: parts.decode,
      takeMemory: parts.takeMemory,
      giveMemoryBack: parts.giveMemoryBack,
    })
    this.ended = new Promise((resolve) => {
      this.#resolveEnded = resolve
    })
  }

  start(): void {
    this.#meter.start({
      hasClientLeft: () => (this.#isClientGone || this.#closing !== null) && !this.#isCatchingUp,
      close: (code, reason) => this.close(code, reason),
      refuse: (refusal, about) => this.#tell(this.#parts.errorEvent(refusal, about)),
      revoked: () => this.revoked(),
      turnEnded: () => this.#turnEnded(),
    })
    this.#upstream.receive({
      data: (chunk) => this.#upstreamSent(chunk),
      drained: () => {
        this.#isUpstreamFull = false
        this.#flow()
      },
      closed: () => this.#upstreamClosed(),
    })
    this.#client.receive({
      data: (chunk) => this.#clientSent(chunk),
      drained: () => {
        this.#isClientFull = false
        this.#hasDrained = true
        this.#areNoticesBlocked = false
        this.#flow()
      },
      closed: () => this.#clientClosed(),
    })
  }

  /** No more turns begin, and the socket closes with the last one. */
  drain(): void {
    this.#isDraining = true
    this.#inbox.hold()
    this.#closeIfIdle()
  }

  /** Closes the socket for a restart. Returns how many turns are cut. */
  restart(): number {
    this.close(CLOSE.restart, RESTARTING)
    return this.#meter.running
  }

  /** The key is not in force any more, so that no turn is admitted. The socket closes with the last one. */
  revoked(): void {
    this.#isRevoked = true
    this.#inbox.hold()
    this.#closeIfIdle()
  }

  checkTime(nowMs: number): void {
    // A client that takes a byte now and then does not read: upstream is not seen while the rest waits.
    if (this.#client.bytesWaiting === 0 || this.#hasDrained) this.#takenSinceMs = nowMs
    this.#hasDrained = false
    if (nowMs - this.#takenSinceMs >= limits.replyStallTimeoutMs) this.#client.destroy()
    // The end of the last turn would not be seen behind a client that does not read.
    if (this.#isRevoked && this.#isClientFull) this.close(CLOSE.policy, REVOKED)
  }

  /** Closes the socket with a code and a reason. Turns under way are billed as if the client had left. */
  close(code: number, reason: string): void {
    if (this.#closing !== null || this.#isClientGone) return
    this.#closing = closeFrame(code, reason, false)
    this.#inbox.stop()
    this.#writeNotices()
    // The close frame cannot be written in the middle of a frame of upstream, whose rest may never come.
    if (!this.#isClientGone) setTimeout(() => this.#client.destroy(), limits.socketCloseMs).unref()
    this.#leave()
  }

  #clientSent(chunk: Borrowed): void {
    const bytes = copyIfBorrowed(chunk)
    this.#clientBytes = this.#clientBytes.length === 0 ? bytes : Buffer.concat([this.#clientBytes, bytes])
    this.#readClient()
    this.#flow()
  }

  /** Splits bytes of the client into frames as far as there is room. Between frames a piece may be thousands of messages. */
  #readClient(): void {
    while (this.#clientBytes.length > 0 && !this.#inbox.isFull && this.#closing === null) {
      const isWithin = !this.#fromClient.isBetweenFrames && !this.#inbox.isBusy
      const piece = isWithin ? this.#clientBytes : this.#clientBytes.subarray(0, PIECE_BYTES)
      this.#clientBytes = this.#clientBytes.subarray(piece.length)
      const violation = this.#fromClient.read(piece, (part) => {
        if (this.#isUpstreamClosing) this.#sendClosing(part)
        // A close keeps its place behind messages that wait; other control frames do not wait.
        else if (part.kind === 'data' || part.opcode === OPCODE.close) this.#inbox.take(part)
        else this.#sendUpstream([part.wire])
      })
      if (violation !== null) this.close(violation.closeCode, violation.reason)
    }
  }

  /** Upstream is not read on before its compressed messages are. */
  #waitFor(caughtUp: Promise<void> | null): void {
    if (caughtUp === null) return
    this.#decodesPending += 1
    caughtUp.finally(() => {
      this.#decodesPending -= 1
      this.#flow()
    })
  }

  #sendUpstream(wires: readonly Buffer[]): void {
    if (this.#isUpstreamGone) return
    for (const wire of wires) if (!this.#upstream.write(wire)) this.#isUpstreamFull = true
    this.#flow()
  }

  /** Passes on a frame of the client when upstream, or the client itself, closes the socket. */
  #sendClosing({ opcode, wire }: FramePart): void {
    if (opcode === OPCODE.close) this.#isCloseSent = true
    this.#sendUpstream([wire])
  }

  #upstreamSent(chunk: Borrowed): void {
    if (this.#isOver) return
    const bytes = copyIfBorrowed(chunk)
    if (this.#passWhole(bytes)) return
    const parts: FramePart[] = []
    const violation = this.#fromUpstream.read(bytes, (part) => parts.push(part))
    // Mostly there is one part, and corked writes take a longer way through Node.
    const isCorked = parts.length > 1
    if (isCorked) this.#client.cork()
    for (const part of parts) this.#passOn(part)
    if (isCorked) this.#client.uncork()
    for (const part of parts) {
      if (part.kind === 'data') this.#observePart(part)
      else if (part.opcode === OPCODE.close) this.#upstreamCloses()
    }
    const reason = `upstream broke the protocol: ${violation?.reason}`
    if (violation !== null) this.#whenRead(() => this.#upstreamFailed(reason))
    this.#waitFor(this.#upstreamMessages.caughtUp())
    this.#flow()
  }

  /** The short way for a chunk that is one whole message. Between messages no notice waits to be written. */
  #passWhole(bytes: Buffer): boolean {
    if (this.#parts.extensions !== null || this.#isClientGone) return false
    const payloadAt = this.#fromUpstream.wholeText(bytes)
    if (payloadAt === -1) return false
    if (!this.#client.write(bytes)) {
      this.#isClientFull = true
      this.#flow()
    }
    this.#observe(messageOf(OPCODE.text, bytes.subarray(payloadAt)))
    return true
  }

  #passOn(part: FramePart): void {
    if (this.#isClientGone) {
      if (part.opcode === OPCODE.ping) this.#upstream.write(pongFrame(part.payload))
      return
    }
    if (!this.#client.write(part.wire)) this.#isClientFull = true
    if (this.#notices.length === 0 && this.#closing === null) return
    if (part.endsMessage) this.#writeNotices(true)
    else if (part.endsFrame && this.#closing !== null) this.#writeClose()
  }

  /** Shows the meter a message when it is whole. */
  #observePart(part: FramePart): void {
    const message = this.#upstreamMessages.push(part)
    if (message === null) return
    if (!(message instanceof Promise) && this.#observing === null) {
      this.#observe(message)
      return
    }
    const looking = (this.#observing ?? Promise.resolve())
      .then(() => message)
      .then((read) => {
        if (this.#observing === looking) this.#observing = null
        this.#observe(read)
      })
    this.#observing = looking
  }

  #observe(message: Message): void {
    // A message that cannot be read may have stated the usage, or begun a turn.
    if (message.kind === 'unreadable') this.#upstreamFailed('a message of upstream could not be read')
    else this.#meter.observe(message.payload)
  }

  /** Upstream cannot be followed any more. Its turns are billed as observed until now. */
  #upstreamFailed(reason: string): void {
    if (this.#isOver) return
    this.#finish(false)
    this.close(CLOSE.failed, reason)
    this.#upstream.destroy()
  }

  #tell(event: string): void {
    this.#notices.push(textFrame(event))
    this.#writeNotices()
    this.#flow()
  }

  /** `isBetween`: between messages by what was written; the reader may be further. */
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
    this.#client.end(limits.socketCloseMs)
  }

  /** Back-pressure both ways. */
  #flow(): void {
    // Each refusal is answered, so a client that does not read the answers is not read either.
    const isBlocked = this.#areNoticesBlocked || this.#notices.length > 0
    const isAhead = this.#clientBytes.length > 0 || this.#inbox.isFull || this.#isUpstreamFull
    const isSlow = this.#isClientFull && !this.#isClientGone
    // Nor is a client that lets upstream wait: turns that its messages begin would not be seen.
    const isUnseen = isSlow && this.#meter.upstreamStartsTurns
    if (!this.#isClientGone && (isAhead || isBlocked || isUnseen)) this.#client.pause()
    else this.#client.resume()
    const isPaused = isSlow || this.#decodesPending > 0
    if (isPaused === this.#isPaused && isSlow === this.#isSlow) return
    this.#isPaused = isPaused
    this.#isSlow = isSlow
    if (isPaused) this.#upstream.pause()
    else this.#upstream.resume()
    this.#meter.paused(isPaused, isSlow)
  }

  /** The close frame of the client has its turn: all messages before it were sent upstream, or refused. */
  #clientCloses(part: FramePart): void {
    const { payload } = part
    // With the close frame upstream would stop, and state no usage. The client is answered here instead.
    const mayCost = this.#isClientFull || this.#meter.running > 0 || this.#meter.readOnMs() > 0
    if (mayCost) this.close(payload.length < 2 ? 1000 : payload.readUInt16BE(0), '')
    else {
      this.#sendClosing(part)
      this.#leaveTimer ??= setTimeout(() => this.#closeUpstream(), limits.socketCloseMs)
    }
  }

  #turnEnded(): void {
    this.#closeIfIdle()
    if (this.#isClientGone && this.#meter.running === 0 && !this.#isCatchingUp) this.#closeUpstream()
  }

  #closeIfIdle(): void {
    if (this.#meter.running > 0) return
    if (this.#isRevoked) this.close(CLOSE.policy, REVOKED)
    else if (this.#isDraining) this.close(CLOSE.restart, RESTARTING)
  }

  #clientClosed(): void {
    this.#isClientGone = true
    this.#inbox.stop()
    this.#leave()
    this.#endIfOver()
  }

  /** The client has left, or is being closed. Upstream is read on as long as the bill needs it. */
  #leave(): void {
    if (this.#isUpstreamGone || this.#isCatchingUp) return
    const isBehind = this.#isClientFull
    this.#isClientFull = false
    this.#flow()
    if (isBehind) {
      this.#isCatchingUp = true
      this.#leaveTimer ??= setTimeout(() => this.#caughtUp(), limits.readOnMs)
      return
    }
    const ms = this.#meter.readOnMs()
    if (ms === 0) this.#closeUpstream()
    else this.#leaveTimer ??= setTimeout(() => this.#closeUpstream(), ms)
  }

  #caughtUp(): void {
    this.#isCatchingUp = false
    this.#leaveTimer = null
    this.#leave()
  }

  #closeUpstream(): void {
    if (this.#isUpstreamGone) return
    if (!this.#isCloseSent) this.#upstream.write(closeFrame(1000, '', true))
    this.#upstream.end(limits.socketCloseMs)
    this.#finish(true)
  }

  /** Upstream sends nothing more, and the client answers its close frame. */
  #upstreamCloses(): void {
    this.#isUpstreamClosing = true
    this.#inbox.stop()
    this.#whenRead(() => this.#finish(false))
    this.#leaveTimer ??= setTimeout(() => this.#closeUpstream(), limits.socketCloseMs)
  }

  /** Acts when all messages that have come are read. */
  #whenRead(act: () => void): void {
    Promise.resolve(this.#observing).then(act)
  }

  #upstreamClosed(): void {
    this.#isUpstreamGone = true
    this.#inbox.stop()
    this.#whenRead(() => this.#finish(false))
    if (this.#leaveTimer !== null) clearTimeout(this.#leaveTimer)
    if (!this.#isClientGone) this.#client.end(limits.socketCloseMs)
    this.#endIfOver()
  }

  /** Ends the meter. `abandoned`: the gateway stops to read, and not upstream to send. */
  #finish(abandoned: boolean): void {
    if (this.#isOver) return
    this.#isOver = true
    const ended = this.#meter.end(abandoned).catch((error: unknown) => this.#parts.failed(error))
    ended.finally(() => {
      this.#upstreamMessages.dispose()
      this.#inbox.dispose()
      this.#isSettled = true
      this.#endIfOver()
    })
  }

  #endIfOver(): void {
    if (this.#isSettled && this.#client.isClosed && this.#upstream.isClosed) this.#resolveEnded()
  }
}
