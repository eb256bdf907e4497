import type { ReservedBytes } from '../calls/key-shares.ts'
import { ChunkList } from '../kernel/chunk-list.ts'
import { limits } from '../kernel/limits.ts'
import { FrameMessages, type FramePart, type Message } from './frames.ts'

/** How many bytes and messages are read ahead while a message is checked. Beyond either limit, the client waits. */
const AHEAD_BYTES_MAX = 1024 ** 2
const AHEAD_MESSAGES_MAX = 64

/** Memory is accounted in steps of this size; smaller messages are not counted. */
const MEMORY_STEP_BYTES = 64 * 1024

export interface WaitingMessage {
  readonly message: Message
  /** Its bytes as received. */
  readonly wires: readonly Buffer[]
  readonly bytes: number
}

/** The messages of a client that have not been sent upstream, the last of which may still arrive. */
export class MessageQueue {
  readonly #memory: ReservedBytes
  readonly #reader = new FrameMessages(limits.socketMessageBytesMax)
  /** The raw bytes of the message that arrives in parts. */
  #wires = new ChunkList()
  #arrivedBytes = 0
  readonly #waiting: WaitingMessage[] = []
  #waitingBytes = 0

  constructor(memory: ReservedBytes) {
    this.#memory = memory
  }

  get first(): WaitingMessage | undefined {
    return this.#waiting[0]
  }

  /** Whether enough messages wait. Further ones can wait in the kernel's buffers. */
  get isFull(): boolean {
    return (
      this.#waiting.length > AHEAD_MESSAGES_MAX || this.#waitingBytes + this.#arrivedBytes > AHEAD_BYTES_MAX
    )
  }

  add(part: FramePart): 'added' | 'too_large' | 'no_memory' {
    this.#arrivedBytes += part.wire.length
    if (this.#arrivedBytes > limits.socketMessageBytesMax) return 'too_large'
    if (!this.#reserveMemory()) return 'no_memory'
    const bytes = this.#arrivedBytes
    const isWhole = part.endsMessage && bytes === part.wire.length
    if (!isWhole) this.#wires.append(part.wire)
    const message = this.#reader.push(part)
    if (message === null) return 'added'
    this.#waiting.push({ message, bytes, wires: isWhole ? [part.wire] : this.#wires.all() })
    this.#waitingBytes += bytes
    this.#arrivedBytes = 0
    if (!isWhole) this.#wires = new ChunkList()
    return 'added'
  }

  /** Removes the first message, which was sent or refused. */
  shift(): void {
    this.#waitingBytes -= this.#waiting.shift()?.bytes ?? 0
    this.#release(this.#neededBytes)
  }

  clear(): void {
    this.#waiting.length = 0
    this.#wires.clear()
    this.#reader.clear()
    this.#release(0)
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
}
