import type { Refusal } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import type { FramePart } from '../sockets/frame-reader.ts'
import { OPCODE } from '../sockets/frame-reader.ts'
import type { Message, MessageReader } from '../sockets/message-reader.ts'
import type { RefusedTurn, Verdict } from './socket-meter.ts'

interface InboxParts {
  readonly messages: MessageReader
  /** The client compresses with context takeover: what follows a message that is left out could not be read. */
  readonly keepsContext: boolean
  judge(message: Message): Verdict | Promise<Verdict>
  forward(wires: readonly Buffer[]): void
  refuse(refusal: Refusal, about: RefusedTurn): void
  close(code: number, reason: string): void
  /** The client's close frame, when its turn has come. */
  clientCloses(part: FramePart): void
  flowChanged(): void
  takeMemory(bytes: number): boolean
  giveMemoryBack(bytes: number): void
}

type Waiting =
  | {
      readonly kind: 'message'
      readonly message: Message | Promise<Message>
      readonly wires: readonly Buffer[]
      readonly bytes: number
      readonly compressed: boolean
    }
  | { readonly kind: 'close'; readonly part: FramePart }

/** Memory is taken in steps of this size, and none for messages below it. */
const MEMORY_STEP_BYTES = 64 * 1024

/** Messages of the client in their order, each held until it is whole and judged. */
export class SocketInbox {
  readonly #parts: InboxParts
  /** Of the message that is arriving. */
  #wires: Buffer[] = []
  #arrivedBytes = 0
  readonly #waiting: Waiting[] = []
  #waitingBytes = 0
  #takenBytes = 0
  #isBusy = false
  #isStopped = false
  #isHeld = false

  constructor(parts: InboxParts) {
    this.#parts = parts
  }

  /** What is behind the message at hand can wait in the kernel. */
  get isFull(): boolean {
    return this.#isBusy && this.#waitingBytes + this.#arrivedBytes > limits.socketAheadBytesMax
  }

  /** Where much waits to be inflated: settles when the client may send more. */
  caughtUp(): Promise<void> | null {
    return this.#parts.messages.caughtUp()
  }

  /** A part of a data frame, or a close frame. */
  take(part: FramePart): void {
    if (this.#isStopped) return
    if (part.opcode === OPCODE.close) this.#waiting.push({ kind: 'close', part })
    else if (!this.#keep(part)) return
    if (!this.#isBusy) this.#work()
  }

  /** Nothing more is judged. A close is, so that its client need not wait. */
  hold(): void {
    this.#isHeld = true
  }

  /** Nothing that waits goes any more. */
  stop(): void {
    this.#isStopped = true
    this.#waiting.length = 0
    this.#wires = []
  }

  dispose(): void {
    this.stop()
    this.#parts.messages.dispose()
    if (this.#takenBytes > 0) this.#parts.giveMemoryBack(this.#takenBytes)
    this.#takenBytes = 0
  }

  /** False: the message is not whole, or is too much. */
  #keep(part: FramePart): boolean {
    this.#wires.push(part.wire)
    this.#arrivedBytes += part.wire.length
    if (this.#arrivedBytes > limits.socketMessageBytesMax) {
      this.#parts.close(1009, `A message has more than ${limits.socketMessageBytesMax} bytes.`)
      return false
    }
    if (!this.#fits()) {
      this.#parts.close(1013, 'There is no room to hold this message. Try again.')
      return false
    }
    const message = this.#parts.messages.push(part)
    if (message === null) {
      // Thousands of fragments of a byte each would cost a buffer each.
      if (this.#wires.length >= WIRES_MAX) this.#wires = [Buffer.concat(this.#wires)]
      return false
    }
    const bytes = this.#arrivedBytes
    this.#waiting.push({ kind: 'message', message, wires: this.#wires, bytes, compressed: part.compressed })
    this.#waitingBytes += bytes
    this.#wires = []
    this.#arrivedBytes = 0
    return true
  }

  #fits(): boolean {
    const needed = this.#waitingBytes + this.#arrivedBytes
    while (needed - this.#takenBytes > MEMORY_STEP_BYTES) {
      if (!this.#parts.takeMemory(MEMORY_STEP_BYTES)) return false
      this.#takenBytes += MEMORY_STEP_BYTES
    }
    return true
  }

  /** One after the other, and without a pause where nothing has to be waited for. */
  #work(): void {
    for (let next = this.#waiting[0]; next !== undefined && !this.#isStopped; next = this.#waiting[0]) {
      if (next.kind === 'close') {
        this.stop()
        this.#parts.clientCloses(next.part)
        return
      }
      if (this.#isHeld) return
      const verdict =
        next.message instanceof Promise
          ? next.message.then((message) => this.#parts.judge(message))
          : this.#parts.judge(next.message)
      if (verdict instanceof Promise) {
        this.#isBusy = true
        this.#parts.flowChanged()
        const waiting = next
        verdict.then(
          (judged) => {
            this.#isBusy = false
            this.#carryOut(judged, waiting)
            this.#work()
            this.#parts.flowChanged()
          },
          () => this.#parts.close(1011, 'The gateway could not decide about a message.'),
        )
        return
      }
      this.#carryOut(verdict, next)
    }
  }

  #carryOut(verdict: Verdict, { wires, bytes, compressed }: Waiting & { kind: 'message' }): void {
    if (this.#isStopped) {
      if (verdict.kind === 'pass') verdict.unsent?.()
      return
    }
    this.#waiting.shift()
    this.#waitingBytes -= bytes
    if (this.#waitingBytes + this.#arrivedBytes === 0 && this.#takenBytes > 0) {
      this.#parts.giveMemoryBack(this.#takenBytes)
      this.#takenBytes = 0
    }
    if (verdict.kind === 'pass') {
      this.#parts.forward(wires)
      verdict.sent?.()
    } else if (verdict.kind === 'refused') {
      this.#parts.refuse(verdict.refusal, verdict.about)
      const isLast = verdict.refusal.code === 'invalid_api_key' || (compressed && this.#parts.keepsContext)
      if (verdict.closes === true || isLast) this.#parts.close(1008, verdict.refusal.message)
    }
  }
}

const WIRES_MAX = 256
