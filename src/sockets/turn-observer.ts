import { limits } from '../kernel/limits.ts'
import { FrameMessages, type FramePart } from './frames.ts'
import type { SocketTurns } from './socket-turns.ts'

/** Shows the turns of a socket each message that upstream has sent. */
export class TurnObserver {
  readonly #turns: SocketTurns
  readonly #onReady: () => void
  readonly #messages = new FrameMessages(limits.socketMessageBytesMax)
  #pending = 0

  /** `onReady`: the turns can be shown more. */
  constructor(turns: SocketTurns, onReady: () => void) {
    this.#turns = turns
    this.#onReady = onReady
  }

  /** Whether the turns are not ready for more. */
  get isBusy(): boolean {
    return this.#pending > 0
  }

  /** Returns false if a message cannot be read. It may have stated usage, or begun a turn. */
  observe(part: FramePart): boolean {
    const message = this.#messages.push(part)
    if (message === null) return true
    if (message.kind === 'unreadable') return false
    const pending = this.#turns.observe(message.payload)
    if (pending !== null) this.#waitFor(pending)
    return true
  }

  stop(): void {
    this.#messages.clear()
  }

  #waitFor(pending: Promise<void>): void {
    this.#pending += 1
    pending.finally(() => {
      this.#pending -= 1
      this.#onReady()
    })
  }
}
