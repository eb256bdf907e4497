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

/** What is read at once where messages may be short. */
const PIECE_BYTES = 4 * 1024

interface SessionParts {
  readonly client: RawConnection
  readonly upstream: RawConnection
  readonly extensions: Extensions | null
  readonly meter: SocketMeter
  /** Waits for a turn to decode a message of the client's. Null: it has left by then. */
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
  readonly #seen: MessageReader
  #resolveEnded = () => {}
  /** What has come of the client's and was not read yet. */
  #unread: Buffer = Buffer.alloc(0)
  /** Text of our own for the client, that waits for the end of a message of upstream's. */
  #notices: Buffer[] = []
  /** The close frame that the client is to get, and nothing after it. */
  #closing: Buffer | null = null
  #isClientGone = false
  #isUpstreamClosing = false
  /** The client's own close frame went upstream. */
  #isCloseSent = false
  #isUpstreamGone = false
  #isOver = false
  #isSettled = false
  #isClientFull = false
  /** And does not read what we have to say. */
  #isDeaf = false
  #isUpstreamFull = false
  /** Upstream is not read, and whether that is because the client does not read. */
  #isPaused = false
  #isSlow = false
  /** The client has left without having read, so that upstream was not read either: what it has begun meanwhile is to be seen. */
  #isCatchingUp = false
  /** Compressed messages are read later than they come: how often that is waited for. */
  #behind = 0
  #looking: Promise<void> | null = null
  #leaveTimer: NodeJS.Timeout | null = null
  /** The stall of a client that does not read. */
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
    this.#seen = new MessageReader({ inflate: extensions?.server ?? null, messageBytesMax })
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
      isLeft: () => (this.#isClientGone || this.#closing !== null) && !this.#isCatchingUp,
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
        this.#isDeaf = false
        this.#flow()
      },
      closed: () => this.#clientClosed(),
    })
  }

  /** Nothing more begins; it closes with the last turn. */
  drain(): void {
    this.#isDraining = true
    this.#inbox.hold()
    this.#closeIfIdle()
  }

  /** Closes it for a restart. How many turns are cut by it. */
  restart(): number {
    this.close(CLOSE.restart, RESTARTING)
    return this.#meter.running
  }

  /** The key is not in force any more. No turn is admitted in any case; the socket closes with the last one. */
  revoked(): void {
    this.#isRevoked = true
    this.#inbox.hold()
    this.#closeIfIdle()
  }

  checkTime(nowMs: number): void {
    // To take a byte now and then is not to read: while all else waits, upstream is not seen.
    if (this.#client.bytesWaiting === 0 || this.#hasDrained) this.#takenSinceMs = nowMs
    this.#hasDrained = false
    if (nowMs - this.#takenSinceMs >= limits.replyStallTimeoutMs) this.#client.destroy()
    // That its last turn ends would not be seen.
    if (this.#isRevoked && this.#isClientFull) this.close(CLOSE.policy, REVOKED)
  }

  /** Tells the client why, and parts. Turns under way are billed as if it had left. */
  close(code: number, reason: string): void {
    if (this.#closing !== null || this.#isClientGone) return
    this.#closing = closeFrame(code, reason, false)
    this.#inbox.stop()
    this.#writeNotices()
    // In the middle of a frame of upstream's there is no place for it, and the rest may never come.
    if (!this.#isClientGone) setTimeout(() => this.#client.destroy(), limits.socketCloseMs).unref()
    this.#leave()
  }

  #clientSent(chunk: Borrowed): void {
    const bytes = copyIfBorrowed(chunk)
    this.#unread = this.#unread.length === 0 ? bytes : Buffer.concat([this.#unread, bytes])
    this.#readClient()
    this.#flow()
  }

  /** As far as there is room. Between frames little is read at once: it may be thousands of messages. */
  #readClient(): void {
    while (this.#unread.length > 0 && !this.#inbox.isFull && this.#closing === null) {
      const isWithin = !this.#fromClient.isBetweenFrames && !this.#inbox.isBusy
      const piece = isWithin ? this.#unread : this.#unread.subarray(0, PIECE_BYTES)
      this.#unread = this.#unread.subarray(piece.length)
      const violation = this.#fromClient.read(piece, (part) => {
        if (this.#isUpstreamClosing) this.#sendClosing(part)
        // Where a close waits its turn, what is behind it may wait as well.
        else if (part.kind === 'data' || part.opcode === OPCODE.close) this.#inbox.take(part)
        else this.#sendUpstream([part.wire])
      })
      if (violation !== null) this.close(violation.closeCode, violation.reason)
    }
  }

  /** Upstream waits until what it has sent compressed is read. */
  #waitFor(caughtUp: Promise<void> | null): void {
    if (caughtUp === null) return
    this.#behind += 1
    caughtUp.finally(() => {
      this.#behind -= 1
      this.#flow()
    })
  }

  #sendUpstream(wires: readonly Buffer[]): void {
    if (this.#isUpstreamGone) return
    for (const wire of wires) if (!this.#upstream.write(wire)) this.#isUpstreamFull = true
    this.#flow()
  }

  /** What of the client's goes upstream at the end of a socket. */
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
    // Mostly there is one, and what is corked takes a longer way through Node.
    const isCorked = parts.length > 1
    if (isCorked) this.#client.cork()
    for (const part of parts) this.#passOn(part)
    if (isCorked) this.#client.uncork()
    for (const part of parts) {
      if (part.kind === 'data') this.#look(part)
      else if (part.opcode === OPCODE.close) this.#upstreamCloses()
    }
    if (violation !== null) this.#upstreamFailed(`upstream broke the protocol: ${violation.reason}`)
    this.#waitFor(this.#seen.caughtUp())
    this.#flow()
  }

  /** The short way of what is a message and nothing else. Between messages nothing of our own waits to be written. */
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

  /** The meter sees a message when it is whole. */
  #look(part: FramePart): void {
    const message = this.#seen.push(part)
    if (message === null) return
    if (!(message instanceof Promise) && this.#looking === null) {
      this.#observe(message)
      return
    }
    const looking = (this.#looking ?? Promise.resolve())
      .then(() => message)
      .then((read) => {
        if (this.#looking === looking) this.#looking = null
        this.#observe(read)
      })
    this.#looking = looking
  }

  #observe(message: Message): void {
    // What cannot be read may have been the figures, or the beginning of a turn.
    if (message.kind === 'unreadable') this.#upstreamFailed('a message of upstream could not be read')
    else this.#meter.observe(message.payload)
  }

  /** Upstream is not worth trusting any more. What it was paid for until now is counted. */
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

  /** `isBetween`: the reader may be further already than what was written. */
  #writeNotices(isBetween = this.#fromUpstream.isBetweenMessages): void {
    if (this.#isClientGone) return
    if (isBetween) {
      for (const notice of this.#notices.splice(0)) {
        if (this.#client.write(notice)) continue
        this.#isClientFull = true
        this.#isDeaf = true
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
    // What is refused is answered, so that a client that does not read that is not read either.
    const isDeaf = this.#isDeaf || this.#notices.length > 0
    const isAhead = this.#unread.length > 0 || this.#inbox.isFull || this.#isUpstreamFull
    const isSlow = this.#isClientFull && !this.#isClientGone
    // Nor is one that lets upstream wait: what its messages have upstream begin would not be seen.
    const isUnseen = isSlow && this.#meter.beginsByItself
    if (!this.#isClientGone && (isAhead || isDeaf || isUnseen)) this.#client.pause()
    else this.#client.resume()
    const isPaused = isSlow || this.#behind > 0
    if (isPaused === this.#isPaused && isSlow === this.#isSlow) return
    this.#isPaused = isPaused
    this.#isSlow = isSlow
    if (isPaused) this.#upstream.pause()
    else this.#upstream.resume()
    this.#meter.paused(isPaused, isSlow)
  }

  /** Its close frame had its turn: all that it sent before is upstream, or refused. */
  #clientCloses(part: FramePart): void {
    const { payload } = part
    // Upstream would stop to work, and to say what that took. The client is answered here instead.
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

  /** The client is gone or is being told to go. Upstream is read on for as long as that is worth for the bill. */
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

  /** It says nothing more. What the client still says is its answer to that. */
  #upstreamCloses(): void {
    this.#isUpstreamClosing = true
    this.#inbox.stop()
    this.#finishWhenRead()
    this.#leaveTimer ??= setTimeout(() => this.#closeUpstream(), limits.socketCloseMs)
  }

  #finishWhenRead(): void {
    const read = this.#looking ?? Promise.resolve()
    read.then(() => this.#finish(false))
  }

  #upstreamClosed(): void {
    this.#isUpstreamGone = true
    this.#inbox.stop()
    this.#finishWhenRead()
    if (this.#leaveTimer !== null) clearTimeout(this.#leaveTimer)
    if (!this.#isClientGone) this.#client.end(limits.socketCloseMs)
    this.#endIfOver()
  }

  /** Nothing that upstream says is heard any more. `abandoned`: it was us who stopped. */
  #finish(abandoned: boolean): void {
    if (this.#isOver) return
    this.#isOver = true
    const ended = this.#meter.end(abandoned).catch((error: unknown) => this.#parts.failed(error))
    ended.finally(() => {
      this.#seen.dispose()
      this.#inbox.dispose()
      this.#isSettled = true
      this.#endIfOver()
    })
  }

  #endIfOver(): void {
    if (this.#isSettled && this.#client.isClosed && this.#upstream.isClosed) this.#resolveEnded()
  }
}
