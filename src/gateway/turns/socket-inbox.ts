import type { Refusal } from '../../kernel/errors.ts'
import { limits } from '../../kernel/limits.ts'
import { type FramePart, type Message, MessageReader } from '../../sockets/frames.ts'
import type { RefusedTurn, Verdict } from './socket-protocol.ts'

/** Bytes and messages that are read ahead while a message is judged. Beyond either limit the client waits. */
const AHEAD_BYTES_MAX = 1024 ** 2
const AHEAD_MESSAGES_MAX = 64

interface InboxParts {
  judge(message: Message): Verdict | Promise<Verdict>
  forward(wires: readonly Buffer[]): void
  refuse(refusal: Refusal, about: RefusedTurn): void
  close(code: number, reason: string): void
  revoked(): void
  flowChanged(): void
  takeMemory(bytes: number): boolean
  giveMemoryBack(bytes: number): void
}

interface Waiting {
  readonly parts: readonly FramePart[]
  readonly bytes: number
}

/** Memory is accounted in steps of this size; smaller messages are not counted. */
const MEMORY_STEP_BYTES = 64 * 1024

/** Buffered fragments of one message. Beyond this they are concatenated, because a one-byte fragment costs hundreds of bytes. */
const PARTS_MAX = 256

export class SocketInbox {
  readonly #parts: InboxParts
  readonly #messages = new MessageReader(limits.socketMessageBytesMax)
  /** Parts of the arriving message: already concatenated ones, and those since. */
  #packed: FramePart[] = []
  #loose: FramePart[] = []
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

  get isBusy(): boolean {
    return this.#isBusy
  }

  /** Messages behind the one being judged can wait in the kernel's buffers. */
  get isFull(): boolean {
    if (!this.#isBusy && !this.#isHeld) return false
    return (
      this.#waiting.length > AHEAD_MESSAGES_MAX || this.#waitingBytes + this.#arrivedBytes > AHEAD_BYTES_MAX
    )
  }

  take(part: FramePart): void {
    if (!this.#isStopped && this.#keep(part) && !this.#isBusy) this.#work()
  }

  hold(): void {
    this.#isHeld = true
  }

  stop(): void {
    this.#isStopped = true
    this.#waiting.length = 0
    this.#packed = []
    this.#loose = []
    this.#messages.clear()
    this.#giveBack(0)
  }

  /** False: the message is not whole, or too large. */
  #keep(part: FramePart): boolean {
    this.#loose.push(part)
    this.#arrivedBytes += part.wire.length
    if (this.#arrivedBytes > limits.socketMessageBytesMax) {
      this.#parts.close(1009, `A message has more than ${limits.socketMessageBytesMax} bytes.`)
      return false
    }
    if (!this.#takeMemory()) return false
    if (part.endsMessage) {
      this.#waiting.push({ parts: [...this.#packed, ...this.#loose], bytes: this.#arrivedBytes })
      this.#waitingBytes += this.#arrivedBytes
      this.#packed = []
      this.#loose = []
      this.#arrivedBytes = 0
    } else if (this.#loose.length >= PARTS_MAX) {
      this.#packed.push(joined(this.#loose, part))
      this.#loose = []
    }
    return part.endsMessage
  }

  /** Messages are in memory twice, masked and unmasked. */
  get #neededBytes(): number {
    return 2 * (this.#waitingBytes + this.#arrivedBytes)
  }

  #takeMemory(): boolean {
    while (this.#neededBytes - this.#takenBytes > MEMORY_STEP_BYTES) {
      if (!this.#parts.takeMemory(MEMORY_STEP_BYTES)) {
        this.#parts.close(1013, 'There is no room to hold this message. Try again.')
        return false
      }
      this.#takenBytes += MEMORY_STEP_BYTES
    }
    return true
  }

  #giveBack(neededBytes: number): void {
    while (this.#takenBytes > neededBytes) {
      this.#parts.giveMemoryBack(MEMORY_STEP_BYTES)
      this.#takenBytes -= MEMORY_STEP_BYTES
    }
  }

  /** Judges the waiting messages in order; synchronously if the verdict is synchronous. */
  #work(): void {
    for (let next = this.#waiting[0]; next !== undefined && !this.#isHeld; next = this.#waiting[0]) {
      let message: Message | null = null
      // Concatenate a message only when it is next.
      for (const part of next.parts) message = this.#messages.push(part)
      const verdict = this.#parts.judge(message ?? { kind: 'unreadable', why: 'too_large' })
      if (verdict instanceof Promise) {
        this.#waitFor(verdict, next)
        return
      }
      this.#carryOut(verdict, next)
    }
  }

  #waitFor(verdict: Promise<Verdict>, waiting: Waiting): void {
    this.#isBusy = true
    verdict.then(
      (judged) => {
        this.#isBusy = false
        this.#carryOut(judged, waiting)
        this.#work()
        this.#parts.flowChanged()
      },
      () => this.#parts.close(1011, 'The gateway could not decide about a message.'),
    )
  }

  #carryOut(verdict: Verdict, { parts, bytes }: Waiting): void {
    if (this.#isStopped) {
      if (verdict.kind === 'pass') verdict.unsent?.()
      return
    }
    this.#waiting.shift()
    this.#waitingBytes -= bytes
    this.#giveBack(this.#neededBytes)
    if (verdict.kind === 'pass') {
      this.#parts.forward(parts.map(({ wire }) => wire))
      verdict.sent?.()
    } else if (verdict.kind === 'refused') {
      this.#parts.refuse(verdict.refusal, verdict.about)
      if (verdict.refusal.code === 'invalid_api_key') this.#parts.revoked()
    }
  }
}

function joined(parts: readonly FramePart[], last: FramePart): FramePart {
  return {
    ...last,
    wire: Buffer.concat(parts.map(({ wire }) => wire)),
    payload: Buffer.concat(parts.map(({ payload }) => payload)),
  }
}
