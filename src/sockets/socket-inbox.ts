import { limits } from '../kernel/limits.ts'
import type { ClientGate } from './client-gate.ts'
import type { FramePart } from './frames.ts'
import type { MessageQueue, WaitingMessage } from './message-queue.ts'
import type { MeteredSocket, Verdict } from './socket-protocol.ts'

interface InboxSession extends MeteredSocket {
  forward(wires: readonly Buffer[]): void
}

/** Sends the messages of a client upstream, in order, each after it was checked. */
export class SocketInbox {
  readonly #session: InboxSession
  readonly #gate: Pick<ClientGate, 'check'>
  readonly #queue: MessageQueue
  #state: 'open' | 'paused' | 'stopped' = 'open'
  #isChecking = false
  #refusedInRow = 0

  constructor(session: InboxSession, gate: Pick<ClientGate, 'check'>, queue: MessageQueue) {
    this.#session = session
    this.#gate = gate
    this.#queue = queue
  }

  get isFull(): boolean {
    return (this.#isChecking || this.#state === 'paused') && this.#queue.isFull
  }

  take(part: FramePart): void {
    if (this.#state === 'stopped') return
    const added = this.#queue.add(part)
    if (added === 'too_large')
      this.#session.close(1009, `A message has more than ${limits.socketMessageBytesMax} bytes.`)
    else if (added === 'no_memory')
      this.#session.close(1013, 'The gateway has no memory left for this message. Retry later.')
    else if (!this.#isChecking) this.#work()
  }

  pause(): void {
    if (this.#state === 'open') this.#state = 'paused'
  }

  stop(): void {
    this.#state = 'stopped'
    this.#queue.clear()
  }

  /** After a defect, it does not continue. */
  async #work(): Promise<void> {
    this.#isChecking = true
    try {
      for (
        let next = this.#queue.first;
        next !== undefined && this.#state === 'open';
        next = this.#queue.first
      ) {
        this.#apply(await this.#gate.check(next.message), next)
        this.#session.resume()
      }
      this.#isChecking = false
    } catch {
      this.#session.close(1011, 'The gateway failed to process a message.')
    }
  }

  #apply(verdict: Verdict, { wires }: WaitingMessage): void {
    if (this.#state === 'stopped') {
      if (verdict.kind === 'pass') verdict.unsent?.()
      return
    }
    this.#queue.shift()
    if (verdict.kind === 'pass') {
      this.#refusedInRow = 0
      this.#session.forward(wires)
      verdict.sent?.()
    } else if (verdict.kind === 'refused') {
      this.#refusedInRow += 1
      this.#session.refuse(verdict.refusal, verdict.about)
      if (verdict.refusal.code === 'invalid_api_key') this.#session.keyRevoked()
      if (this.#refusedInRow === limits.refusedInRowMax)
        this.#session.close(1008, `The gateway refused ${limits.refusedInRowMax} messages in a row.`)
    }
  }
}
