import type { Transform } from 'node:stream'
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib'

/**
 * Frames of zstd in one body that follow another in the same chunk; each takes 50 to 150 µs. Beyond it the body counts
 * as corrupt.
 */
export const CODED_FRAMES_MAX = 20_000

/** One of node:zlib's streams. `bytesWritten` is how much of its input it has read. */
type CodingStream = Transform & { readonly bytesWritten: number }

/** Decompresses one chunk after the other. */
export interface Decoder {
  /** The output for the chunk, made as the caller takes it: a slow caller holds up the work, and no output piles up in memory. */
  feed(chunk: Buffer): AsyncGenerator<Buffer>
  /** The rest of the output, when no chunk follows. Throws if a compressed text is not complete. */
  finish(): AsyncGenerator<Buffer>
  /** Bytes that were fed but not read, because they are behind the end of the compressed text. */
  readonly unreadBytes: number
  destroy(): void
}

/** node:zlib reads members of gzip that follow each other as one text. */
const gunzip = () => new StreamDecoder(createGunzip())

/** The codings, by their names in `Content-Encoding`. `first` is the first byte of the body. */
const CODINGS: Readonly<Record<string, (first: number) => Decoder>> = {
  gzip: gunzip,
  'x-gzip': gunzip,
  // "deflate" means the zlib format, but some senders leave out zlib's header; the low half of its first byte is 8.
  deflate: (first) => new StreamDecoder((first & 0x0f) === 8 ? createInflate() : createInflateRaw()),
  br: () => new StreamDecoder(createBrotliDecompress()),
  zstd: () => new FramesDecoder(() => createZstdDecompress(ZSTD_LIMITS)),
}

/** RFC 9659 lets a content coding ask for 8 MiB of window; the library would give a frame 128 MiB. */
const ZSTD_LIMITS = { params: { [constants.ZSTD_d_windowLogMax]: 23 } }

/** Whether a body with this `Content-Encoding` has to be decoded, can be, or cannot. */
export function codingOf(
  contentEncoding: string | undefined,
): 'identity' | 'unknown' | { readonly coding: string } {
  const coding = (contentEncoding ?? '').trim().toLowerCase()
  if (coding === '' || coding === 'identity') return 'identity'
  // A chain of codings ("gzip, gzip, …") is a way to multiply work; one is enough for any client.
  return Object.hasOwn(CODINGS, coding) ? { coding } : 'unknown'
}

/** `first` is the first byte of the coded body, which tells the two forms of deflate apart. */
export function openDecoder(coding: string, first: number): Decoder {
  const open = Object.hasOwn(CODINGS, coding) ? CODINGS[coding] : undefined
  if (open === undefined) throw new Error(`no decoder for ${coding}`)
  return open(first)
}

/**
 * A stream of node:zlib as a decoder, whose generators end when a chunk's whole output was given. The stream is read
 * with `read()`: with 'data' events the end of a chunk's output could not be told from a pause.
 */
class StreamDecoder implements Decoder {
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
    stream.once('close', () => this.#finish(new Error('the decoder was destroyed')))
  }

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
        // An error is also emitted as an event, which comes next and says more.
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
class FramesDecoder implements Decoder {
  readonly #open: () => CodingStream
  #frame: StreamDecoder
  #frames = 1

  constructor(open: () => CodingStream) {
    this.#open = open
    this.#frame = new StreamDecoder(open())
  }

  get unreadBytes(): number {
    return this.#frame.unreadBytes
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
      this.#frames += 1
      if (this.#frames > CODED_FRAMES_MAX) throw new Error('the compressed texts are too many')
      this.#frame = new StreamDecoder(this.#open())
    }
  }

  finish(): AsyncGenerator<Buffer> {
    return this.#frame.finish()
  }

  destroy(): void {
    this.#frame.destroy()
  }
}
