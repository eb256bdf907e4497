import type { ReservedBytes } from '../calls/key-shares.ts'
import { ChunkList } from '../kernel/chunk-list.ts'
import { limits } from '../kernel/limits.ts'
import type { ClientGate } from './client-gate.ts'
import { FrameMessages, type FramePart, type Message } from './frames.ts'
import type { MeteredSocket, Verdict } from './socket-protocol.ts'

/** How many bytes and messages are read ahead while a message is checked. Beyond either limit, the client waits. */
const AHEAD_BYTES_MAX = 1024 ** 2
const AHEAD_MESSAGES_MAX = 64

/** Memory is accounted in steps of this size; smaller messages are not counted. */
const MEMORY_STEP_BYTES = 64 * 1024

interface InboxSession extends MeteredSocket {
  forward(wires: readonly Buffer[]): void
}

interface WaitingMessage {
  readonly message: Message
  /** Its bytes as received. */
  readonly wires: readonly Buffer[]
  readonly bytes: number
}

/** Sends the messages of a client upstream, in order, each after it was checked. */
export class SocketInbox {
  readonly #session: InboxSession
  readonly #gate: Pick<ClientGate, 'check'>
  readonly #memory: ReservedBytes
  readonly #reader = new FrameMessages(limits.socketMessageBytesMax)
  /** The raw bytes of the message that arrives in parts. */
  #wires = new ChunkList()
  #arrivedBytes = 0
  readonly #waiting: WaitingMessage[] = []
  #waitingBytes = 0
  #state: 'open' | 'paused' | 'stopped' = 'open'
  #isChecking = false
  #refusedInRow = 0

  constructor(session: InboxSession, gate: Pick<ClientGate, 'check'>, memory: ReservedBytes) {
    this.#session = session
    this.#gate = gate
    this.#memory = memory
  }

  /** Whether enough messages wait. Further ones can wait in the kernel's buffers. */
  get isFull(): boolean {
    if (!this.#isChecking && this.#state !== 'paused') return false
    const aheadBytes = this.#waitingBytes + this.#arrivedBytes
    return this.#waiting.length > AHEAD_MESSAGES_MAX || aheadBytes > AHEAD_BYTES_MAX
  }

  take(part: FramePart): void {
    if (this.#state === 'stopped') return
    this.#arrivedBytes += part.wire.length
    if (this.#arrivedBytes > limits.socketMessageBytesMax)
      this.#session.close(1009, `A message has more than ${limits.socketMessageBytesMax} bytes.`)
    else if (!this.#reserveMemory())
      this.#session.close(1013, 'The gateway has no memory left for this message. Retry later.')
    else {
      this.#add(part)
      if (!this.#isChecking) this.#work()
    }
  }

  pause(): void {
    if (this.#state === 'open') this.#state = 'paused'
  }

  stop(): void {
    this.#state = 'stopped'
    this.#waiting.length = 0
    this.#wires.clear()
    this.#reader.clear()
    this.#releaseMemory(0)
  }

  #add(part: FramePart): void {
    const bytes = this.#arrivedBytes
    const isWhole = part.endsMessage && bytes === part.wire.length
    if (!isWhole) this.#wires.append(part.wire)
    const message = this.#reader.push(part)
    if (message === null) return
    this.#waiting.push({ message, bytes, wires: isWhole ? [part.wire] : this.#wires.all() })
    this.#waitingBytes += bytes
    this.#arrivedBytes = 0
    if (!isWhole) this.#wires = new ChunkList()
  }

  /** After a defect, it does not continue. */
  async #work(): Promise<void> {
    this.#isChecking = true
    try {
      for (let [next] = this.#waiting; next !== undefined && this.#state === 'open'; [next] = this.#waiting) {
        this.#apply(await this.#gate.check(next.message), next)
        this.#session.resume()
      }
      this.#isChecking = false
    } catch {
      this.#session.close(1011, 'The gateway failed to process a message.')
    }
  }

  #apply(verdict: Verdict, { wires, bytes }: WaitingMessage): void {
    if (this.#state === 'stopped') {
      if (verdict.kind === 'pass') verdict.unsent?.()
      return
    }
    this.#waiting.shift()
    this.#waitingBytes -= bytes
    this.#releaseMemory(this.#neededBytes)
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

  /** Messages are in memory twice, masked and unmasked. */
  get #neededBytes(): number {
    return 2 * (this.#waitingBytes + this.#arrivedBytes)
  }

  #reserveMemory(): boolean {
    while (this.#neededBytes - this.#memory.bytes > MEMORY_STEP_BYTES)
      if (!this.#memory.tryReserve(MEMORY_STEP_BYTES)) return false
    return true
  }

  #releaseMemory(neededBytes: number): void {
    while (this.#memory.bytes > neededBytes) this.#memory.release(MEMORY_STEP_BYTES)
  }
}
