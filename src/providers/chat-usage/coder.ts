import type { Transform } from 'node:stream'

/** One of node:zlib's streams. `bytesWritten` is how much of its input it has read. */
export type CodingStream = Transform & { readonly bytesWritten: number }

/** Compresses or decompresses one chunk after the other. */
export interface Coder {
  /** What the chunk gives, as it is asked for: who takes the next piece late holds the work up, not the memory. */
  feed(chunk: Buffer): AsyncGenerator<Buffer>
  /** What is left when no chunk follows. Throws if a compressed text is not complete. */
  finish(): AsyncGenerator<Buffer>
  destroy(): void
}

/**
 * A stream of node:zlib as a coder, which says when all that a chunk gives has been given. It is read by hand: 'data'
 * events come when they come, and the end of a chunk could not be told from a pause.
 */
export class StreamCoder implements Coder {
  readonly #stream: CodingStream
  #fedBytes = 0
  #over = false
  #failure: Error | null = null
  #wake: () => void = () => {}

  constructor(stream: CodingStream) {
    this.#stream = stream
    stream.on('readable', () => this.#wake())
    stream.once('end', () => this.#finish(null))
    stream.once('error', (error) => this.#finish(error))
    stream.once('close', () => this.#finish(new Error('the coder was destroyed')))
  }

  /** How many bytes of the last chunk stand behind the end of the compressed text, where the stream reads no more. */
  get unreadBytes(): number {
    return this.#fedBytes - this.#stream.bytesWritten
  }

  feed(chunk: Buffer): AsyncGenerator<Buffer> {
    this.#fedBytes += chunk.length
    return this.#drain((done) => this.#stream.write(chunk, done))
  }

  finish(): AsyncGenerator<Buffer> {
    return this.#drain(() => this.#stream.end())
  }

  destroy(): void {
    this.#stream.destroy()
  }

  async *#drain(start: (done: (error?: Error | null) => void) => void): AsyncGenerator<Buffer> {
    let done = this.#over
    if (!this.#over) {
      start((error) => {
        // An error is also an event, which comes next and says more.
        done = error === undefined || error === null
        this.#wake()
      })
    }
    for (;;) {
      if (this.#failure !== null) throw this.#failure
      const piece: Buffer | null = this.#stream.read()
      if (piece !== null) yield piece
      else if (done || this.#over) return
      else await this.#woken()
    }
  }

  #woken(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve
    })
  }

  #finish(error: Error | null): void {
    if (!this.#over) this.#failure = error
    this.#over = true
    this.#wake()
  }
}

/**
 * Decompresses a body that may be several compressed texts in a row. node:zlib does that by itself for gzip, but for
 * zstd it drops, without a word, whatever comes behind the first frame in the same chunk.
 */
export class FramesDecoder implements Coder {
  readonly #open: () => CodingStream
  #frame: StreamCoder

  constructor(open: () => CodingStream) {
    this.#open = open
    this.#frame = new StreamCoder(open())
  }

  async *feed(chunk: Buffer): AsyncGenerator<Buffer> {
    let rest = chunk
    for (;;) {
      yield* this.#frame.feed(rest)
      const unread = this.#frame.unreadBytes
      if (unread === 0) return
      if (unread >= rest.length) throw new Error('the compressed text does not go on')
      rest = rest.subarray(rest.length - unread)
      this.#frame.destroy()
      this.#frame = new StreamCoder(this.#open())
    }
  }

  finish(): AsyncGenerator<Buffer> {
    return this.#frame.finish()
  }

  destroy(): void {
    this.#frame.destroy()
  }
}
