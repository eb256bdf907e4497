/** Prose and refusals; thinking as far as it is shown; what is written for tools to read. */
export type OutputKind = 'text' | 'thinking' | 'tool'

/** What a call delivered, for counting its output when nobody says how much that was. */
export interface DeliveredOutput {
  /** UTF-8 bytes of all that was delivered, kept or not. */
  readonly bytes: Readonly<Record<OutputKind, number>>
  /** How much of it `texts` has. Where that is less than all, the rest is to be taken for alike. */
  readonly keptBytes: number
  /** The text of each choice, block or item for itself: tokens do not reach across them. */
  texts(): string[]
}

/**
 * 16,000 tokens or so. It is kept for every call in flight, cut or not, so the sum over all of them decides: 640 MB
 * for 10,000 calls that all write this much.
 */
const KEPT_BYTES_MAX = 64 * 1024
/** Choices of a chat call are at most 128. What comes beside these is counted, not kept. */
const CHANNELS_MAX = 128
const SMALL_BYTES = 256

/** Collects the text of a reply as it comes, the first of it in full and the rest as a number. */
export class OutputText {
  readonly #channels = new Map<string, OutputChannel>()
  readonly #bytes: Record<OutputKind, number> = { text: 0, thinking: 0, tool: 0 }
  readonly #keptBytesMax: number
  #keptBytes = 0
  #isFull = false

  constructor(keptBytesMax = KEPT_BYTES_MAX) {
    this.#keptBytesMax = keptBytesMax
  }

  /** `index` tells apart what is written side by side: the choice, the block or the item. */
  channel(kind: OutputKind, index: number | string): OutputChannel {
    const key = `${kind} ${index}`
    const known = this.#channels.get(key)
    if (known !== undefined) return known
    const channel = new OutputChannel(kind, this, this.#channels.size < CHANNELS_MAX)
    if (this.#channels.size < CHANNELS_MAX) this.#channels.set(key, channel)
    return channel
  }

  /** Counts a piece; true if it is to be kept. After the first that did not fit none is: what is kept is a beginning. */
  take(kind: OutputKind, bytes: number, isKept: boolean): boolean {
    this.#bytes[kind] += bytes
    if (!isKept || this.#isFull) return false
    this.#isFull = this.#keptBytes + bytes > this.#keptBytesMax
    if (this.#isFull) return false
    this.#keptBytes += bytes
    return true
  }

  delivered(): DeliveredOutput {
    const channels = [...this.#channels.values()]
    return {
      bytes: { ...this.#bytes },
      keptBytes: this.#keptBytes,
      texts: () => channels.map((channel) => channel.text()).filter((text) => text !== ''),
    }
  }
}

export class OutputChannel {
  readonly #kind: OutputKind
  readonly #output: OutputText
  readonly #isKept: boolean
  #bytes = Buffer.alloc(0)
  #length = 0

  constructor(kind: OutputKind, output: OutputText, isKept: boolean) {
    this.#kind = kind
    this.#output = output
    this.#isKept = isKept
  }

  append(text: string): void {
    const length = Buffer.byteLength(text)
    if (length === 0 || !this.#output.take(this.#kind, length, this.#isKept)) return
    this.#reserve(length)
    this.#length += this.#bytes.write(text, this.#length)
  }

  /** The same for bytes of ASCII, which need not become a string first. */
  appendAscii(chunk: Buffer, from: number, to: number): void {
    const length = to - from
    if (length === 0 || !this.#output.take(this.#kind, length, this.#isKept)) return
    this.#reserve(length)
    const bytes = this.#bytes
    const shift = this.#length - from
    // A token's few bytes: a native copy would cost more for its call alone.
    if (length <= 32) for (let i = from; i < to; i++) bytes[i + shift] = chunk[i] as number
    else chunk.copy(bytes, this.#length, from, to)
    this.#length += length
  }

  text(): string {
    return this.#bytes.toString('utf8', 0, this.#length)
  }

  #reserve(more: number): void {
    const needed = this.#length + more
    if (needed <= this.#bytes.length) return
    const grown = Buffer.allocUnsafeSlow(Math.max(SMALL_BYTES, needed, this.#bytes.length * 2))
    this.#bytes.copy(grown, 0, 0, this.#length)
    this.#bytes = grown
  }
}
