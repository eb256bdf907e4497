import type { Refusal } from '../../kernel/errors.ts'
import { limits } from '../../kernel/limits.ts'
import { type FramePart, OPCODE } from '../../sockets/frame-reader.ts'
import type { Message, MessageReader } from '../../sockets/message-reader.ts'
import type { RefusedTurn, Verdict } from './socket-meter.ts'

interface InboxParts {
  readonly messages: MessageReader
  /** The client compresses with context takeover: upstream could not read what follows a message that is left out. */
  readonly keepsContext: boolean
  judge(message: Message): Verdict | Promise<Verdict>
  forward(wires: readonly Buffer[]): void
  refuse(refusal: Refusal, about: RefusedTurn): void
  close(code: number, reason: string): void
  /** The key is not in force any more. */
  revoked(): void
  /** The client's close frame, when its turn has come. */
  clientCloses(part: FramePart): void
  /** There may be room for more messages, or no room any more. */
  flowChanged(): void
  /** Waits for a turn to decode a message that may be large. Null: the client has left by then. */
  decode<T>(work: () => Promise<T>): Promise<T | null>
  takeMemory(bytes: number): boolean
  giveMemoryBack(bytes: number): void
}

type Waiting =
  | { readonly kind: 'message'; readonly parts: readonly FramePart[]; readonly bytes: number }
  | { readonly kind: 'close'; readonly part: FramePart }

/** Memory is taken in steps of this size, and none for messages below it. */
const MEMORY_STEP_BYTES = 64 * 1024

/** Parts of a message that are kept as they came. More are joined: a fragment of one byte costs some hundred. */
const PARTS_MAX = 256

/** Up to here a message is inflated without waiting for a turn: it becomes a thousand times as large at most. */
const INFLATED_AT_ONCE_BYTES = 4 * 1024

const DROPPED: Verdict = { kind: 'dropped' }

/** Messages of the client in their order, each held until it is whole and judged. */
export class SocketInbox {
  readonly #parts: InboxParts
  /** Parts of the message that is arriving: those that were joined, and those since. */
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

  /** A message is being judged. */
  get isBusy(): boolean {
    return this.#isBusy
  }

  /** Messages behind the one that is being judged can wait in the kernel's buffers. */
  get isFull(): boolean {
    const { socketAheadBytesMax, socketAheadMessagesMax } = limits
    if (!this.#isBusy && !this.#isHeld) return false
    return (
      this.#waiting.length > socketAheadMessagesMax ||
      this.#waitingBytes + this.#arrivedBytes > socketAheadBytesMax
    )
  }

  /** A part of a data frame, or a close frame. */
  take(part: FramePart): void {
    if (this.#isStopped) return
    if (part.opcode === OPCODE.close) this.#waiting.push({ kind: 'close', part })
    else if (!this.#keep(part)) return
    if (!this.#isBusy) this.#work()
  }

  /** No more messages are judged. A close frame is passed on, so that its client need not wait. */
  hold(): void {
    this.#isHeld = true
  }

  /** No message that waits is sent any more. */
  stop(): void {
    this.#isStopped = true
    this.#waiting.length = 0
    this.#packed = []
    this.#loose = []
  }

  dispose(): void {
    this.stop()
    this.#parts.messages.dispose()
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
    if (!this.#takeFor(0)) return false
    if (part.endsMessage) {
      this.#waiting.push({
        kind: 'message',
        parts: [...this.#packed, ...this.#loose],
        bytes: this.#arrivedBytes,
      })
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

  /** Takes memory for all waiting messages, twice since they are kept masked and unmasked, and for so many bytes besides. */
  #takeFor(moreBytes: number): boolean {
    const neededBytes = 2 * (this.#waitingBytes + this.#arrivedBytes) + moreBytes
    while (neededBytes - this.#takenBytes > MEMORY_STEP_BYTES) {
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

  /** Judges the waiting messages one after the other, synchronously where verdicts are. */
  #work(): void {
    for (let next = this.#waiting[0]; next !== undefined && !this.#isStopped; next = this.#waiting[0]) {
      if (next.kind === 'close') {
        this.stop()
        this.#parts.clientCloses(next.part)
        return
      }
      if (this.#isHeld) return
      const message = this.#read(next)
      const verdict =
        message instanceof Promise ? this.#judgeLater(message, next) : this.#parts.judge(message)
      if (verdict instanceof Promise) {
        this.#waitFor(verdict, next)
        return
      }
      this.#carryOut(verdict, next)
    }
  }

  #waitFor(verdict: Promise<Verdict>, waiting: Waiting & { kind: 'message' }): void {
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

  /** A message is joined and inflated when its turn has come, and not while it waits. */
  #read({ parts, bytes }: Waiting & { kind: 'message' }): Message | Promise<Message | null> {
    const read = () => {
      let message: Message | Promise<Message> | null = null
      for (const part of parts) message = this.#parts.messages.push(part)
      return message ?? UNREADABLE
    }
    if (parts[0]?.compressed !== true || bytes <= INFLATED_AT_ONCE_BYTES) return read()
    return this.#parts.decode(async () => await read())
  }

  async #judgeLater(
    reading: Promise<Message | null>,
    { bytes }: Waiting & { kind: 'message' },
  ): Promise<Verdict> {
    const message = await reading
    if (message === null || this.#isStopped) return DROPPED
    const inflatedBytes = message.kind === 'message' ? message.payload.length : 0
    const { decodedRatioMax, decodedBytesOfAnyRatio } = limits
    const isTooLarge = message.kind === 'unreadable' && message.why === 'too_large'
    if (isTooLarge || inflatedBytes > Math.max(decodedBytesOfAnyRatio, bytes * decodedRatioMax)) {
      this.#parts.close(1009, `A message is too large, or ${decodedRatioMax} times as long as it came.`)
      return DROPPED
    }
    return this.#takeFor(inflatedBytes) ? await this.#parts.judge(message) : DROPPED
  }

  #carryOut(verdict: Verdict, { parts, bytes }: Waiting & { kind: 'message' }): void {
    if (this.#isStopped) {
      if (verdict.kind === 'pass') verdict.unsent?.()
      return
    }
    this.#waiting.shift()
    this.#waitingBytes -= bytes
    this.#giveBack(2 * (this.#waitingBytes + this.#arrivedBytes))
    if (verdict.kind === 'pass') {
      this.#parts.forward(parts.map(({ wire }) => wire))
      verdict.sent?.()
    } else if (verdict.kind === 'refused') {
      const { refusal } = verdict
      this.#parts.refuse(refusal, verdict.about)
      const breaksContext = parts[0]?.compressed === true && this.#parts.keepsContext
      if (verdict.closes === true || breaksContext) this.#parts.close(1008, refusal.message)
      else if (refusal.code === 'invalid_api_key') this.#parts.revoked()
    }
  }
}

const UNREADABLE: Message = { kind: 'unreadable', why: 'not_inflatable' }

/** Parts of a message as one part. */
function joined(parts: readonly FramePart[], last: FramePart): FramePart {
  return {
    ...last,
    wire: Buffer.concat(parts.map(({ wire }) => wire)),
    payload: Buffer.concat(parts.map(({ payload }) => payload)),
  }
}
