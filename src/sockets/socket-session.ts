import type { ReservedBytes } from '../calls/key-shares.ts'
import type { RawConnection } from '../http/node-sockets.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Refusal } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { ClientGate } from './client-gate.ts'
import { ClientReader } from './client-reader.ts'
import { ClientSide, SOCKET_CLOSE_MS } from './client-side.ts'
import { type FramePart, OPCODE } from './frames.ts'
import { SocketInbox } from './socket-inbox.ts'
import type { MeteredSocket, RefusedTurn } from './socket-protocol.ts'
import type { SocketTurns } from './socket-turns.ts'
import { UpstreamSide } from './upstream-side.ts'

/** The codes with which the gateway closes a socket. */
const CLOSE = { policy: 1008, failed: 1011, restart: 1012 } as const

/** Close codes by which upstream says that the client's messages were invalid. */
const BLAMES_CLIENT: ReadonlySet<number> = new Set([1002, 1003, 1007, 1008, 1009])

const NO_CODE = 0

interface SessionOptions {
  readonly client: RawConnection
  readonly upstream: RawConnection
  /** Null on a socket that is not metered. */
  readonly metered: { readonly turns: SocketTurns; readonly gate: Pick<ClientGate, 'check'> } | null
  readonly clock: Clock
  readonly memory: ReservedBytes
  failed(error: unknown): void
  errorEvent(refusal: Refusal, about: RefusedTurn): string
}

/** Upstream's bytes pass at once, the client's by message: one that begins a turn waits for admission. */
export class SocketSession implements MeteredSocket {
  readonly #options: SessionOptions
  readonly #client: ClientSide
  readonly #upstream: UpstreamSide
  readonly #reader: ClientReader
  readonly #inbox: SocketInbox | null
  /** How the socket closes once no turn runs that was sent until then. */
  #idleClose: { readonly code: number; readonly reason: string; readonly sentUntilMs: number } | null = null
  readonly #over = Promise.withResolvers<void>()

  constructor(options: SessionOptions) {
    const { client, upstream, metered, memory, clock } = options
    this.#options = options
    this.#client = new ClientSide(client, clock.monotonicMs())
    this.#upstream = new UpstreamSide(upstream)
    this.#reader = new ClientReader(
      (part) => this.#clientPart(part),
      () => this.resume(),
    )
    this.#inbox = metered && new SocketInbox(this, metered.gate, memory)
  }

  /** Resolves when both connections are closed and every turn is settled. */
  get ended(): Promise<void> {
    return this.#over.promise
  }

  get #turns(): SocketTurns | null {
    return this.#options.metered?.turns ?? null
  }

  start(): void {
    this.#turns?.start(this)
    this.#options.upstream.receive({
      data: (chunk) => this.#upstreamSent(chunk),
      drained: () => {
        this.#upstream.isFull = false
        this.#updateFlow()
      },
      closed: () => this.#upstreamClosed(),
    })
    this.#options.client.receive({
      data: (chunk) => {
        this.#reader.add(chunk)
        this.resume()
      },
      drained: () => {
        this.#client.drained(this.#options.clock.monotonicMs())
        this.#updateFlow()
      },
      closed: () => this.#clientClosed(),
    })
  }

  drain(): void {
    const reason = 'The gateway is restarting.'
    this.#idleClose ??= { code: CLOSE.restart, reason, sentUntilMs: Infinity }
    this.#inbox?.pause()
    this.#closeIfIdle()
  }

  /** Closes the socket for a restart. Returns how many turns are cut. */
  closeForRestart(): number {
    const cut = this.#turns?.count ?? 0
    this.close(CLOSE.restart, 'The gateway is restarting.')
    return cut
  }

  keyRevoked(): void {
    const reason = 'The API key is no longer valid.'
    if (this.#idleClose?.code !== CLOSE.policy)
      this.#idleClose = { code: CLOSE.policy, reason, sentUntilMs: this.#options.clock.monotonicMs() }
    this.#inbox?.pause()
    this.#closeIfIdle()
  }

  checkTimeouts(nowMs: number): void {
    this.#client.checkStall(nowMs)
    if (!this.#client.isSlow) this.#turns?.endSilent(nowMs)
    this.#closeIfIdle()
    // While the client of a revoked key does not read, the end of its last turn would go unnoticed.
    if (this.#idleClose?.code === CLOSE.policy && this.#client.isSlow)
      this.close(CLOSE.policy, this.#idleClose.reason)
  }

  /** Closes the socket with a code and a reason. Running turns are billed as if the client had left. */
  close(code: number, reason: string): void {
    if (!this.#client.close(code, reason)) return
    this.#inbox?.stop()
    this.#clientLeft()
  }

  refuse(refusal: Refusal, about: RefusedTurn): void {
    this.#client.say(this.#options.errorEvent(refusal, about))
    this.#updateFlow()
  }

  forward(wires: readonly Buffer[]): void {
    for (const wire of wires) this.#upstream.write(wire)
    this.#updateFlow()
  }

  turnEnded(): void {
    this.#closeIfIdle()
    if (this.#upstream.state !== 'left' || this.#turns?.runs(Infinity)) return
    // Upstream has the client's close frame, and may still answer it.
    if (this.#upstream.isCloseSent) this.#closeUpstreamIn(SOCKET_CLOSE_MS)
    else this.#closeUpstream()
  }

  resume(): void {
    const violation = this.#reader.read(() => this.#inbox?.isFull !== true && !this.#client.isClosing)
    if (violation !== null) this.close(violation.closeCode, violation.reason)
    this.#updateFlow()
  }

  #clientPart(part: FramePart): void {
    if (part.opcode === OPCODE.close) this.#clientClosing(part)
    else if (part.kind === 'control' || this.#inbox === null) this.#upstream.write(part.wire)
    else this.#inbox.take(part)
  }

  /** The client's close frame passes at once; waiting messages are dropped. Upstream may still state usage. */
  #clientClosing({ wire, payload }: FramePart): void {
    this.#inbox?.stop()
    this.#upstream.writeClose(wire)
    this.#client.left()
    this.#clientLeft()
    // Upstream may not answer the close in time. Do not let the client wait.
    const code = codeOf(payload) === NO_CODE ? 1000 : codeOf(payload)
    setTimeout(() => this.close(code, ''), SOCKET_CLOSE_MS).unref()
  }

  #clientClosed(): void {
    this.#client.lost()
    this.#inbox?.stop()
    this.#clientLeft()
    this.#resolveIfOver()
  }

  /** Handles the end of the client. Upstream is read for as long as the bill needs it. */
  #clientLeft(): void {
    const { isFull } = this.#client
    const isFirst = this.#upstream.to(isFull ? 'leaveUnread' : 'leave')
    this.#updateFlow()
    if (!isFirst) return
    const minimumMs = isFull ? limits.readOnMs : this.#upstream.isCloseSent ? SOCKET_CLOSE_MS : 0
    const ms = Math.max(minimumMs, this.#turns?.readOnMs() ?? 0)
    if (ms === 0) this.#closeUpstream()
    else this.#closeUpstreamIn(ms)
  }

  #upstreamSent(bytes: Buffer): void {
    if (this.#upstream.isOver) return
    const parts: FramePart[] = []
    const violation = this.#client.fromUpstream.read(bytes, (part) => parts.push(part))
    this.#client.pass(parts)
    for (const part of parts) this.#upstreamPart(part)
    if (violation !== null) this.#upstreamFailed(`upstream broke the protocol: ${violation.reason}`)
    this.#updateFlow()
  }

  #upstreamPart(part: FramePart): void {
    if (part.opcode === OPCODE.close) this.#upstreamClosing(part)
    else if (part.opcode === OPCODE.ping && this.#client.isGone) this.#upstream.pong(part.payload)
    else if (this.#turns?.observe(part) === false)
      this.#upstreamFailed('an upstream message could not be read')
  }

  #upstreamFailed(reason: string): void {
    if (this.#upstream.isOver) return
    this.#finish(!this.#client.isOpen)
    this.close(CLOSE.failed, reason)
    this.#options.upstream.destroy()
  }

  /** Handles upstream's close frame. Upstream sends nothing more, and the client answers the frame. */
  #upstreamClosing({ payload }: FramePart): void {
    this.#finish(!this.#client.isOpen || BLAMES_CLIENT.has(codeOf(payload)))
    this.#closeUpstreamIn(SOCKET_CLOSE_MS)
  }

  #upstreamClosed(): void {
    this.#finish(!this.#client.isOpen)
    this.#upstream.stopTimer()
    this.#client.end()
    this.#resolveIfOver()
  }

  #closeUpstreamIn(ms: number): void {
    this.#upstream.in(ms, () => this.#closeUpstream())
  }

  #closeUpstream(): void {
    this.#upstream.close()
    this.#finish(true)
  }

  /** Ends and settles the turns. `abandoned`: the client left, upstream did not break. */
  #finish(abandoned: boolean): void {
    this.#inbox?.stop()
    if (!this.#upstream.to('finish')) return
    const ended = this.#turns?.end(abandoned) ?? Promise.resolve()
    ended
      .catch((error: unknown) => this.#options.failed(error))
      .finally(() => {
        this.#upstream.to('settle')
        this.#resolveIfOver()
      })
  }

  #resolveIfOver(): void {
    const { client, upstream } = this.#options
    if (this.#upstream.state === 'settled' && client.isClosed && upstream.isClosed) this.#over.resolve()
  }

  #closeIfIdle(): void {
    if (this.#idleClose === null) return
    const { code, reason, sentUntilMs } = this.#idleClose
    if (!this.#turns?.runs(sentUntilMs)) this.close(code, reason)
  }

  /** Stops reading one side while the other cannot take more. */
  #updateFlow(): void {
    const { isSlow, isDeaf } = this.#client
    const isAhead = this.#reader.isAhead || this.#inbox?.isFull === true || this.#upstream.isFull
    // Turns that the messages of a client begin could not be observed while it blocks upstream.
    const isUnseen = isSlow && this.#turns?.upstreamBegins === true
    this.#client.setReading(!isAhead && !isDeaf && !isUnseen)
    const isPaused = isSlow || this.#turns?.isBusy === true
    if (this.#upstream.setPaused(isPaused)) this.#turns?.paused(isPaused)
  }
}

/** The code of a close frame. */
function codeOf(payload: Buffer): number {
  return payload.length < 2 ? NO_CODE : payload.readUInt16BE(0)
}
