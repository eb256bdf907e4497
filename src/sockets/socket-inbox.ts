import type { ReservedBytes } from '../calls/key-shares.ts'
import { limits } from '../kernel/limits.ts'
import { ChunkList } from '../kernel/memory.ts'
import { type FramePart, type Message, MessageReader } from './frames.ts'
import type { MeteredSocket, Verdict } from './socket-protocol.ts'
import type { SocketTurns } from './socket-turns.ts'

/** How many bytes and messages are read ahead while a message is checked. Beyond either limit, the client waits. */
const AHEAD_BYTES_MAX = 1024 ** 2
const AHEAD_MESSAGES_MAX = 64

/** Memory is accounted in steps of this size; smaller messages are not counted. */
const MEMORY_STEP_BYTES = 64 * 1024

interface Session extends MeteredSocket {
  forward(wires: readonly Buffer[]): void
  resumeReading(): void
}

interface Waiting {
  readonly message: Message
  readonly wires: readonly Buffer[]
  readonly bytes: number
}

/** The messages of a client, checked in order before they go upstream. */
export class SocketInbox {
  readonly #session: Session
  readonly #turns: SocketTurns
  readonly #reader = new MessageReader(limits.socketMessageBytesMax)
  /** The raw bytes of the message that is arriving in parts. */
  #wires = new ChunkList()
  #arrivedBytes = 0
  readonly #waiting: Waiting[] = []
  #waitingBytes = 0
  #refusedInRow = 0
  readonly #memory: ReservedBytes
  #isBusy = false
  #isStopped = false
  #isPaused = false

  constructor(session: Session, turns: SocketTurns, memory: ReservedBytes) {
    this.#session = session
    this.#memory = memory
    this.#turns = turns
  }

  /** Whether enough messages are waiting. Further messages can wait in the kernel's buffers. */
  get isFull(): boolean {
    if (!this.#isBusy && !this.#isPaused) return false
    return (
      this.#waiting.length > AHEAD_MESSAGES_MAX || this.#waitingBytes + this.#arrivedBytes > AHEAD_BYTES_MAX
    )
  }

  take(part: FramePart): void {
    if (this.#isStopped) return
    this.#arrivedBytes += part.wire.length
    if (this.#arrivedBytes > limits.socketMessageBytesMax)
      this.#session.close(1009, `A message has more than ${limits.socketMessageBytesMax} bytes.`)
    else if (!this.#reserveMemory())
      this.#session.close(1013, 'The gateway has no memory left for this message. Retry later.')
    else if (this.#add(part) && !this.#isBusy) this.#work()
  }

  pause(): void {
    this.#isPaused = true
  }

  stop(): void {
    this.#isStopped = true
    this.#waiting.length = 0
    this.#wires.clear()
    this.#reader.clear()
    this.#release(0)
  }

  #add(part: FramePart): boolean {
    const bytes = this.#arrivedBytes
    const isWhole = part.endsMessage && bytes === part.wire.length
    if (!isWhole) this.#wires.append(part.wire)
    const message = this.#reader.push(part)
    if (message === null) return false
    this.#waiting.push({ message, bytes, wires: isWhole ? [part.wire] : this.#wires.all() })
    this.#waitingBytes += bytes
    this.#arrivedBytes = 0
    if (!isWhole) this.#wires = new ChunkList()
    return true
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

  #release(neededBytes: number): void {
    while (this.#memory.bytes > neededBytes) this.#memory.release(MEMORY_STEP_BYTES)
  }

  /** Checks the waiting messages in order. After a defect, it does not continue. */
  async #work(): Promise<void> {
    this.#isBusy = true
    try {
      for (let next = this.#waiting[0]; next !== undefined && !this.#isPaused; next = this.#waiting[0]) {
        this.#apply(await this.#turns.check(next.message), next)
        this.#session.resumeReading()
      }
      this.#isBusy = false
    } catch {
      this.#session.close(1011, 'The gateway failed to process a message.')
    }
  }

  #apply(verdict: Verdict, { wires, bytes }: Waiting): void {
    if (this.#isStopped) {
      if (verdict.kind === 'pass') verdict.unsent?.()
      return
    }
    this.#waiting.shift()
    this.#waitingBytes -= bytes
    this.#release(this.#neededBytes)
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
