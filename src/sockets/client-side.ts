import type { RawConnection } from '../http/node-sockets.ts'
import { limits } from '../kernel/limits.ts'
import { closeFrame, type FramePart, FrameReader, textFrame } from './frames.ts'

/** How long a side may take to answer a close frame, or to read one. */
export const SOCKET_CLOSE_MS = 2_000

/**
 * `left`: the client has closed the socket, and may still read. `closing`: the gateway's close frame waits for the end
 * of upstream's frame. `gone`: nothing more is written.
 */
type ClientState = 'open' | 'left' | 'closing' | 'gone'

const NEXT: Readonly<Record<ClientState, Partial<Record<'leave' | 'close' | 'lose', ClientState>>>> = {
  open: { leave: 'left', close: 'closing', lose: 'gone' },
  left: { close: 'closing', lose: 'gone' },
  closing: { lose: 'gone' },
  gone: {},
}

/** The client: what is written to it, upstream's frames and the gateway's own messages between them. */
export class ClientSide {
  readonly #connection: RawConnection
  readonly fromUpstream = new FrameReader('server')
  #state: ClientState = 'open'
  /** Messages that wait until the current upstream message ends. */
  #notices: Buffer[] = []
  /** The close frame, after which nothing is written. */
  #closing: Buffer | null = null
  #isFull = false
  #areNoticesUnread = false
  /** When the client last read bytes, or had nothing to read. */
  #lastReadMs: number

  constructor(connection: RawConnection, nowMs: number) {
    this.#connection = connection
    this.#lastReadMs = nowMs
  }

  get isOpen(): boolean {
    return this.#state === 'open'
  }

  get isGone(): boolean {
    return this.#state === 'gone'
  }

  get isClosing(): boolean {
    return this.#state === 'closing' || this.isGone
  }

  /** Whether it had not read everything when it was last written to. */
  get isFull(): boolean {
    return this.#isFull
  }

  get isSlow(): boolean {
    return this.#isFull && !this.isGone
  }

  /** Whether it does not read the gateway's own messages. Each of its messages could cause another one. */
  get isDeaf(): boolean {
    return this.#areNoticesUnread || this.#notices.length > 0
  }

  drained(nowMs: number): void {
    this.#isFull = false
    this.#areNoticesUnread = false
    this.#lastReadMs = nowMs
  }

  /** Treats a client that reads slowly as one that does not read: upstream cannot be observed while data waits. */
  checkStall(nowMs: number): void {
    if (this.#connection.bytesWaiting === 0) this.#lastReadMs = nowMs
    if (nowMs - this.#lastReadMs >= limits.replyStallTimeoutMs) this.#connection.destroy()
  }

  setReading(isReading: boolean): void {
    if (isReading || this.isGone) this.#connection.resume()
    else this.#connection.pause()
  }

  /** Writes the parts that upstream sent in one chunk. */
  pass(parts: readonly FramePart[]): void {
    // Usually there is one part, and corked writes are slower in Node.
    const isCorked = parts.length > 1
    if (isCorked) this.#connection.cork()
    for (const part of parts) if (!this.isGone) this.#pass(part)
    if (isCorked) this.#connection.uncork()
  }

  say(text: string): void {
    this.#notices.push(textFrame(text))
    this.#writeOwn(this.fromUpstream.isBetweenMessages)
  }

  /** Returns false if the socket is being closed already. */
  close(code: number, reason: string): boolean {
    if (!this.#to('close')) return false
    this.#closing = closeFrame(code, reason, false)
    this.#writeOwn(this.fromUpstream.isBetweenMessages)
    // The close frame cannot be written in the middle of an upstream frame, whose rest may never come.
    if (!this.isGone) setTimeout(() => this.#connection.destroy(), SOCKET_CLOSE_MS).unref()
    return true
  }

  /** The client has sent a close frame. If it has unread data, it will not read it. */
  left(): void {
    this.#to('leave')
    if (this.#isFull) this.#connection.destroy()
  }

  /** Its connection has closed. */
  lost(): void {
    this.#to('lose')
  }

  /** Upstream's connection has closed. */
  end(): void {
    if (!this.isGone) this.#connection.end(SOCKET_CLOSE_MS)
  }

  #to(event: 'leave' | 'close' | 'lose'): boolean {
    const next = NEXT[this.#state][event]
    this.#state = next ?? this.#state
    return next !== undefined
  }

  #pass({ wire, endsFrame, endsMessage }: FramePart): void {
    if (!this.#connection.write(wire)) {
      // Do not wait for a client that has closed the socket and does not read.
      if (this.isOpen) this.#isFull = true
      else this.#connection.destroy()
    }
    if (endsMessage) this.#writeOwn(true)
    else if (endsFrame) this.#writeClose()
  }

  /** `isBetween`: whether the written bytes end between messages. The reader may be ahead of them. */
  #writeOwn(isBetween: boolean): void {
    if (this.isGone) return
    if (isBetween) {
      for (const notice of this.#notices) {
        if (this.#connection.write(notice)) continue
        this.#isFull = true
        this.#areNoticesUnread = true
      }
      this.#notices = []
    }
    if (isBetween || this.fromUpstream.isBetweenFrames) this.#writeClose()
  }

  #writeClose(): void {
    if (this.#closing === null) return
    this.#to('lose')
    this.#connection.write(this.#closing)
    this.#connection.end(SOCKET_CLOSE_MS)
  }
}
