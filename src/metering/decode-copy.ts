import { type Decoder, openDecoder } from './content-coding.ts'

/**
 * How far, in compressed bytes, the decoded copy may fall behind a reply that is held back, behind one that streams,
 * and behind a request. Beyond it the sender waits until half of that is decoded.
 */
const REQUEST_BACKLOG_BYTES_MAX = 64 * 1024

const DECODED_BYTES_OF_ANY_RATIO = 1024 ** 2

export interface CopyDecoder {
  /** A promise means: the copy is behind, wait for it before the next chunk, or compressed bytes would pile up. */
  write(chunk: Buffer): Promise<void> | null
  /** Resolves when all output was seen: the whole body, or its beginning where bad input or a limit ended the copy. */
  end(): Promise<DecodedState>
}

/** `too_dense`: the body becomes far longer than it came, which no text does; such a body is made to cost work. */
export type DecodedState = 'whole' | 'corrupt' | 'too_large' | 'too_dense'

export interface CopyLimits {
  /** How far the copy may fall behind before `write` asks to wait. */
  readonly backlogBytesMax?: number
  /** How many times as long as it came the body may become. */
  readonly ratioMax?: number
}

/**
 * Decodes a copy of a body for reading, while the body itself passes as it is. Output beyond the limit ends the copy,
 * and so does bad input; from then on no chunk is taken and `write` never asks to wait.
 */
export function decodeCopy(
  coding: string,
  outputBytesMax: number,
  onBytes: (bytes: Buffer) => void,
  { backlogBytesMax = REQUEST_BACKLOG_BYTES_MAX, ratioMax = Infinity }: CopyLimits = {},
): CopyDecoder {
  return new QueuedDecoder(coding, onBytes, { outputBytesMax, backlogBytesMax, ratioMax })
}

type AllLimits = Required<CopyLimits> & { readonly outputBytesMax: number }

const NOTHING_TO_DO = Promise.resolve()

class QueuedDecoder implements CopyDecoder {
  readonly #coding: string
  readonly #onBytes: (bytes: Buffer) => void
  readonly #limits: AllLimits
  #queue: Buffer[] = []
  #decoder: Decoder | null = null
  #state: DecodedState = 'whole'
  #pendingBytes = 0
  #inputBytes = 0
  #outputBytes = 0
  #work: Promise<void> = NOTHING_TO_DO
  #isWorking = false
  /** One promise for all writes that are to wait. */
  #room: PromiseWithResolvers<void> | null = null

  constructor(coding: string, onBytes: (bytes: Buffer) => void, copyLimits: AllLimits) {
    this.#coding = coding
    this.#onBytes = onBytes
    this.#limits = copyLimits
  }

  write(chunk: Buffer): Promise<void> | null {
    if (this.#state !== 'whole' || chunk.length === 0) return null
    this.#queue.push(Buffer.from(chunk))
    this.#pendingBytes += chunk.length
    if (!this.#isWorking) this.#work = this.#decodeQueue()
    if (this.#pendingBytes > this.#limits.backlogBytesMax) this.#room ??= Promise.withResolvers<void>()
    return this.#room?.promise ?? null
  }

  async end(): Promise<DecodedState> {
    await this.#work
    const decoder = this.#decoder
    if (decoder !== null && this.#state === 'whole') {
      await this.#show(decoder.finish())
      // Bytes behind the end: some decoders skip padding there and read on, so another reader may find another body than we did.
      if (this.#state === 'whole' && decoder.unreadBytes > 0) this.#state = 'corrupt'
    }
    decoder?.destroy()
    return this.#state
  }

  async #decodeQueue(): Promise<void> {
    this.#isWorking = true
    while (this.#queue.length > 0) {
      const chunks = this.#queue.reverse()
      this.#queue = []
      for (let chunk = chunks.pop(); chunk !== undefined; chunk = chunks.pop()) {
        this.#decoder ??= openDecoder(this.#coding, chunk[0] ?? 0)
        this.#inputBytes += chunk.length
        await this.#show(this.#decoder.feed(chunk))
        this.#pendingBytes -= chunk.length
        if (this.#state !== 'whole') return this.#stop()
        if (this.#pendingBytes <= this.#limits.backlogBytesMax / 2) this.#giveRoom()
      }
    }
    this.#isWorking = false
  }

  async #show(decoded: AsyncIterable<Buffer>): Promise<void> {
    try {
      for await (const bytes of decoded) {
        this.#outputBytes += bytes.length
        if (this.#outputBytes > this.#limits.outputBytesMax) this.#state = 'too_large'
        if (this.#isDense()) this.#state = 'too_dense'
        if (this.#state !== 'whole') return
        this.#onBytes(bytes)
      }
    } catch {
      this.#state = 'corrupt'
    }
  }

  #isDense(): boolean {
    if (this.#outputBytes <= DECODED_BYTES_OF_ANY_RATIO) return false
    return this.#outputBytes > this.#inputBytes * this.#limits.ratioMax
  }

  #stop(): void {
    this.#queue = []
    this.#decoder?.destroy()
    this.#giveRoom()
  }

  #giveRoom(): void {
    this.#room?.resolve()
    this.#room = null
  }
}
