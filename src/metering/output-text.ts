/** Prose and refusals; thinking as far as it is shown; the input that is written for tools. */
export type OutputKind = 'text' | 'thinking' | 'tool'

/** The output that a call delivered, to be counted where upstream does not say how much there was. */
export interface DeliveredOutput {
  /** UTF-8 bytes of all that was delivered, kept or not. */
  readonly bytes: Readonly<Record<OutputKind, number>>
  /** How many of the bytes `texts` has. Where that is less than all, the rest is counted at the same rate. */
  readonly keptBytes: number
  /** The text of each choice, block or item for itself: tokens do not reach across them. */
  texts(): string[]
}

/**
 * 16,000 tokens or so. The text is kept for every call in flight, cut or not, so the sum over all calls decides: 640
 * MB for 10,000 calls that all write this much.
 */
const KEPT_BYTES_MAX = 64 * 1024
/** Choices of a chat call are at most 128. The text of further channels is counted, not kept. */
const CHANNELS_MAX = 128
const SMALL_BYTES = 256
const NOTHING = Buffer.alloc(0)

/** The output in a document, which is not looked for before it is asked for. */
export class LateOutput implements DeliveredOutput {
  #read: (() => DeliveredOutput) | null
  #delivered: DeliveredOutput | null = null

  /** `read` is called once at most. If it fails, nothing was delivered that could be counted. */
  constructor(read: () => DeliveredOutput) {
    this.#read = read
  }

  get bytes(): Readonly<Record<OutputKind, number>> {
    return this.#known().bytes
  }

  get keptBytes(): number {
    return this.#known().keptBytes
  }

  texts(): string[] {
    return this.#known().texts()
  }

  #known(): DeliveredOutput {
    const read = this.#read
    this.#read = null
    if (read !== null) {
      try {
        this.#delivered = read()
      } catch {
        // A fault in our reader: counting goes on without the text.
      }
    }
    this.#delivered ??= new OutputText().delivered()
    return this.#delivered
  }
}

/** Collects the text of a reply as it comes: the beginning in full, the rest as a number of bytes. */
export class OutputText {
  readonly #channels = new Map<string, OutputChannel>()
  /** The channels, by kind, for text beyond the limit of channels. */
  readonly #overflow: Readonly<Record<OutputKind, OutputChannel>>
  readonly #keptBytesMax: number
  #keptBytes = 0
  #answerBytes = 0
  #isFull = false

  constructor(keptBytesMax = KEPT_BYTES_MAX) {
    this.#keptBytesMax = keptBytesMax
    this.#overflow = {
      text: new OutputChannel('text', null),
      thinking: new OutputChannel('thinking', null),
      tool: new OutputChannel('tool', null),
    }
  }

  /** `index` tells texts apart that are written side by side: the choice, the block or the item. */
  channel(kind: OutputKind, index: number | string): OutputChannel {
    const key = `${kind} ${index}`
    const known = this.#channels.get(key)
    if (known !== undefined) return known
    if (this.#channels.size === CHANNELS_MAX) return this.#overflow[kind]
    const channel = new OutputChannel(kind, this)
    this.#channels.set(key, channel)
    return channel
  }

  /** Bytes of all text that was appended, kept or not, except thinking: a reply shows only a summary or some of that. */
  get answerBytes(): number {
    return this.#answerBytes
  }

  /** True if so many more bytes are to be kept. After the first piece that did not fit no piece is kept. */
  keep(bytes: number, kind: OutputKind): boolean {
    if (kind !== 'thinking') this.#answerBytes += bytes
    if (this.#isFull) return false
    this.#isFull = this.#keptBytes + bytes > this.#keptBytesMax
    if (this.#isFull) return false
    this.#keptBytes += bytes
    return true
  }

  delivered(): DeliveredOutput {
    const channels = [...this.#channels.values()]
    const bytes = { text: 0, thinking: 0, tool: 0 }
    for (const channel of [...channels, ...Object.values(this.#overflow)])
      bytes[channel.kind] += channel.bytes
    return {
      bytes,
      keptBytes: this.#keptBytes,
      texts: () => channels.map((channel) => channel.text()).filter((text) => text !== ''),
    }
  }
}

export class OutputChannel {
  readonly kind: OutputKind
  readonly #output: OutputText | null
  #bytes = 0
  #kept: Buffer = NOTHING
  #keptBytes = 0

  /** The text of a channel without an output is counted, but not kept. */
  constructor(kind: OutputKind, output: OutputText | null) {
    this.kind = kind
    this.#output = output
  }

  get bytes(): number {
    return this.#bytes
  }

  append(text: string): void {
    const length = Buffer.byteLength(text)
    if (this.#reserve(length)) this.#keptBytes += this.#kept.write(text, this.#keptBytes)
  }

  /** Appends bytes of ASCII, which need not become a string first. */
  appendAscii(chunk: Buffer, from: number, to: number): void {
    const length = to - from
    if (!this.#reserve(length)) return
    const kept = this.#kept
    const shift = this.#keptBytes - from
    // A token has a few bytes: for so few the call of a native copy alone costs more than this loop.
    if (length <= 32) for (let i = from; i < to; i++) kept[i + shift] = chunk[i] as number
    else chunk.copy(kept, this.#keptBytes, from, to)
    this.#keptBytes += length
  }

  text(): string {
    return this.#kept.toString('utf8', 0, this.#keptBytes)
  }

  /** Counts so many bytes; true if they are to be kept, and there is room now. */
  #reserve(bytes: number): boolean {
    this.#bytes += bytes
    if (bytes === 0 || this.#output === null || !this.#output.keep(bytes, this.kind)) return false
    const needed = this.#keptBytes + bytes
    if (needed > this.#kept.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(SMALL_BYTES, needed, this.#kept.length * 2))
      this.#kept.copy(grown, 0, 0, this.#keptBytes)
      this.#kept = grown
    }
    return true
  }
}
