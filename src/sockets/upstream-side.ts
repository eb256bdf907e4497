import type { RawConnection } from '../http/node-sockets.ts'
import { SOCKET_CLOSE_MS } from './client-side.ts'
import { closeFrame, maskedFrame, OPCODE } from './frames.ts'

/**
 * `left`: the client has left, and upstream is read for the bill. `unseen`: the same, but turns may have begun in data
 * that was not read. `over`: nothing more is read, and the turns end. `settled`: every turn is settled.
 */
type UpstreamState = 'open' | 'left' | 'unseen' | 'over' | 'settled'

type Event = 'leave' | 'leaveUnread' | 'finish' | 'settle'

const NEXT: Readonly<Record<UpstreamState, Partial<Record<Event, UpstreamState>>>> = {
  open: { leave: 'left', leaveUnread: 'unseen', finish: 'over' },
  left: { finish: 'over' },
  unseen: { finish: 'over' },
  over: { settle: 'settled' },
  settled: {},
}

/** Upstream: what is written to it, and how long it is read. */
export class UpstreamSide {
  readonly #connection: RawConnection
  state: UpstreamState = 'open'
  #timer: NodeJS.Timeout | null = null
  #isCloseSent = false
  #isPaused = false
  isFull = false

  constructor(connection: RawConnection) {
    this.#connection = connection
  }

  get isOver(): boolean {
    return this.state === 'over' || this.state === 'settled'
  }

  get isCloseSent(): boolean {
    return this.#isCloseSent
  }

  to(event: Event): boolean {
    const next = NEXT[this.state][event]
    this.state = next ?? this.state
    return next !== undefined
  }

  /** Nothing may follow a close frame. */
  write(wire: Buffer): void {
    if (!this.#isCloseSent && !this.#connection.write(wire)) this.isFull = true
  }

  writeClose(wire: Buffer): void {
    this.write(wire)
    this.#isCloseSent = true
  }

  pong(payload: Buffer): void {
    this.write(maskedFrame(OPCODE.pong, payload))
  }

  /** Returns whether this changed something. */
  setPaused(isPaused: boolean): boolean {
    if (isPaused === this.#isPaused) return false
    this.#isPaused = isPaused
    if (isPaused) this.#connection.pause()
    else this.#connection.resume()
    return true
  }

  in(ms: number, run: () => void): void {
    this.stopTimer()
    this.#timer = setTimeout(run, ms)
  }

  stopTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
  }

  close(): void {
    if (!this.#isCloseSent) this.writeClose(closeFrame(1000, '', true))
    this.#connection.end(SOCKET_CLOSE_MS)
  }
}
