import { createInflateRaw, type InflateRaw } from 'node:zlib'
import { limits } from '../kernel/limits.ts'
import { ChunkList } from '../kernel/memory.ts'

/** One direction of permessage-deflate as the two ends agreed. */
export interface Deflate {
  /** A message may refer to the content of messages before it. */
  readonly contextTakeover: boolean
  readonly windowBits: number
}

type Inflated = Buffer | 'too_large' | 'not_inflatable'

/** The bytes that RFC 7692 leaves out at the end of every message. */
const TAIL = Buffer.from([0x00, 0x00, 0xff, 0xff])

/** A message that is still coming is inflated in steps of this size: a trip to a thread for each fragment would cost more. */
const STEP_BYTES = 64 * 1024

class CompressedMessage {
  /** The bytes still to be inflated. */
  readonly input = new ChunkList()
  inputBytes = 0
  lastByte = 0
  isWhole = false
  readonly output = new ChunkList()
  outputBytes = 0
  failure: 'too_large' | 'not_inflatable' | null = null
  readonly result = Promise.withResolvers<Inflated>()
}

/**
 * Inflates the messages of one direction, one after the other, in the thread pool. Without context takeover there is a stream
 * only while a message is being inflated, so an idle socket has none.
 */
export class Inflater {
  readonly #deflate: Deflate
  readonly #messageBytesMax: number
  /** In the order they came. The first is being inflated, the last may not be whole. */
  readonly #messages: CompressedMessage[] = []
  #isRunning = false
  #stream: InflateRaw | null = null
  #fedBytes = 0
  /** Bytes that were fed but not read, behind a block that says it is the stream's last. */
  #unreadBytes = 0
  /** The message whose step is under way, and what ends the step. */
  #reading: CompressedMessage | null = null
  #endStep: () => void = () => {}
  /** The context that messages to come may refer to is gone, so they cannot be read. */
  #isLost = false
  #waitingBytes = 0
  #lag: PromiseWithResolvers<void> | null = null

  constructor(deflate: Deflate, messageBytesMax: number) {
    this.#deflate = deflate
    this.#messageBytesMax = messageBytesMax
  }

  get keptBytes(): number {
    const [first] = this.#messages
    return this.#waitingBytes + (first?.failure === null ? first.outputBytes : 0)
  }

  /** Back-pressure where many bytes wait to be inflated: settles when they no longer do. Null where they do not. */
  caughtUp(): Promise<void> | null {
    if (this.#waitingBytes <= limits.inflateAheadBytes) return null
    this.#lag ??= Promise.withResolvers()
    return this.#lag.promise
  }

  push(payload: Buffer, endsMessage: boolean): Promise<Inflated> | null {
    let message = this.#messages.at(-1)
    if (message === undefined || message.isWhole) {
      message = new CompressedMessage()
      this.#messages.push(message)
    }
    message.isWhole = endsMessage
    message.lastByte = payload.at(-1) ?? message.lastByte
    this.#keep(message, payload)
    if (endsMessage) this.#keep(message, TAIL)
    if (this.#waitingBytes > limits.inflateAheadBytesMax) this.#lose()
    if (!this.#isRunning) void this.#run()
    return endsMessage ? message.result.promise : null
  }

  /** Messages that have not been inflated will not be: they become `not_inflatable`. */
  dispose(): void {
    this.#lose()
    for (const message of this.#messages.splice(0)) {
      message.failure ??= 'not_inflatable'
      finish(message)
    }
    this.#waitingBytes = 0
    this.#tellLag()
  }

  #keep(message: CompressedMessage, bytes: Buffer): void {
    message.input.append(bytes)
    message.inputBytes += bytes.length
    this.#waitingBytes += bytes.length
  }

  async #run(): Promise<void> {
    this.#isRunning = true
    for (;;) {
      const [message] = this.#messages
      if (message === undefined || !(message.isWhole || message.inputBytes >= STEP_BYTES)) break
      const { isWhole, inputBytes } = message
      await this.#inflateStep(message)
      if (message !== this.#messages[0]) break
      this.#waitingBytes -= inputBytes
      this.#tellLag()
      if (!isWhole) continue
      this.#endMessage(message)
      this.#messages.shift()
      finish(message)
    }
    this.#isRunning = false
  }

  /** Inflates the bytes of a message that have come, if not for its own sake, for the messages that refer to it. */
  async #inflateStep(message: CompressedMessage): Promise<void> {
    const isNeeded = !this.#isLost && (message.failure === null || this.#deflate.contextTakeover)
    const input = isNeeded ? message.input.joined() : null
    message.input.clear()
    message.inputBytes = 0
    if (input !== null) await this.#feed(message, input)
  }

  async #feed(message: CompressedMessage, input: Buffer): Promise<void> {
    const step = Promise.withResolvers<void>()
    this.#endStep = step.resolve
    this.#stream ??= this.#openStream()
    const stream = this.#stream
    this.#fedBytes += input.length
    this.#reading = message
    stream.write(input, (error) => {
      // A stream that we have closed ourselves reports an error here too.
      if (error && stream === this.#stream) this.#fail()
      step.resolve()
    })
    await step.promise
    this.#reading = null
    if (this.#stream !== null) this.#unreadBytes = this.#fedBytes - this.#stream.bytesWritten
  }

  #openStream(): InflateRaw {
    const stream = createInflateRaw({ windowBits: this.#deflate.windowBits })
    stream.on('data', (piece: Buffer) => this.#take(piece))
    stream.on('error', () => this.#fail())
    return stream
  }

  #take(piece: Buffer): void {
    const message = this.#reading
    if (message === null || message.failure !== null) return
    message.outputBytes += piece.length
    if (message.outputBytes <= this.#messageBytesMax) {
      message.output.append(piece)
      return
    }
    message.failure = 'too_large'
    message.output.clear()
    if (!this.#deflate.contextTakeover) this.#closeStream()
  }

  #fail(): void {
    if (this.#reading !== null) this.#reading.failure ??= 'not_inflatable'
    if (this.#deflate.contextTakeover) this.#lose()
    else this.#closeStream()
  }

  /**
   * A stream may say that it ends (RFC 7692, 7.2.3.4). Bytes that then follow in the same message, other than the empty
   * block that is asked for, are skipped by some readers and read by others: we cannot claim to have read such a message.
   */
  #endMessage(message: CompressedMessage): void {
    const isOver = this.#unreadBytes > 0
    const isClean =
      this.#unreadBytes <= TAIL.length || (this.#unreadBytes === TAIL.length + 1 && message.lastByte === 0)
    if (!isClean && this.#deflate.contextTakeover) this.#lose()
    if (!isClean || this.#isLost) message.failure ??= 'not_inflatable'
    if (isOver || !this.#deflate.contextTakeover) this.#closeStream()
  }

  #closeStream(): void {
    this.#stream?.close()
    this.#stream = null
    this.#fedBytes = 0
    this.#unreadBytes = 0
    this.#endStep()
  }

  #lose(): void {
    this.#isLost = true
    this.#closeStream()
  }

  #tellLag(): void {
    if (this.#waitingBytes > limits.inflateAheadBytes) return
    this.#lag?.resolve()
    this.#lag = null
  }
}

function finish(message: CompressedMessage): void {
  message.input.clear()
  message.result.resolve(message.failure ?? message.output.joined())
  message.output.clear()
}
