import type { Transform } from 'node:stream'
import {
  constants,
  createBrotliCompress,
  createBrotliDecompress,
  createDeflate,
  createDeflateRaw,
  createGunzip,
  createGzip,
  createInflate,
  createInflateRaw,
  createZstdCompress,
  createZstdDecompress,
} from 'node:zlib'

/**
 * Frames of zstd in one body that follow another in the same chunk; each takes 50 to 150 µs. Beyond it the body counts
 * as corrupt.
 */
export const CODED_FRAMES_MAX = 20_000

/** One of node:zlib's streams. `bytesWritten` is how much of its input it has read. */
type CodingStream = Transform & { readonly bytesWritten: number }

/** When a compressor flushes its output: after every chunk, for a stream that is being watched, or when its buffer is full. */
export type FlushWhen = 'each_chunk' | 'full'

/** Compresses or decompresses one chunk after the other. */
export interface Coder {
  /** The output for the chunk, made as the caller takes it: a slow caller holds up the work, and no output piles up in memory. */
  feed(chunk: Buffer): AsyncGenerator<Buffer>
  /** The rest of the output, when no chunk follows. Throws if a compressed text is not complete. */
  finish(): AsyncGenerator<Buffer>
  /** Bytes that were fed but not read, because they are behind the end of the compressed text. */
  readonly unreadBytes: number
  destroy(): void
}

/** The two coders of a body that is decoded, changed and encoded again. */
export interface CodingPair {
  readonly decoder: Coder
  readonly encoder: Coder
}

interface Coding {
  readonly decoder: (first: number) => Coder
  readonly encoder: (first: number, flush: FlushWhen) => Coder
}

/** The window that a match may refer back to, 256 KiB: gzip has 32, and brotli and zstd would take megabytes per stream. */
const WINDOW_BITS = 18

/** node:zlib reads members of gzip that follow each other as one text. */
const GZIP: Coding = {
  decoder: () => new StreamCoder(createGunzip()),
  encoder: (_first, flush) => new StreamCoder(createGzip({ flush: zlibFlush(flush) })),
}

/** "deflate" means the zlib format, but some senders leave out zlib's header; the low half of the header's first byte is 8. */
const isZlib = (first: number): boolean => (first & 0x0f) === 8

/** The codings, by their names in `Content-Encoding`. */
const CODINGS: Readonly<Record<string, Coding>> = {
  gzip: GZIP,
  'x-gzip': GZIP,
  deflate: {
    decoder: (first) => new StreamCoder(isZlib(first) ? createInflate() : createInflateRaw()),
    encoder(first, flush) {
      const options = { flush: zlibFlush(flush) }
      return new StreamCoder(isZlib(first) ? createDeflate(options) : createDeflateRaw(options))
    },
  },
  br: {
    decoder: () => new StreamCoder(createBrotliDecompress()),
    encoder: (_first, flush) =>
      new StreamCoder(
        createBrotliCompress({
          flush: flush === 'full' ? constants.BROTLI_OPERATION_PROCESS : constants.BROTLI_OPERATION_FLUSH,
          // The default quality, 11, is for files that are compressed once and sent for years.
          params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_LGWIN]: WINDOW_BITS },
        }),
      ),
  },
  zstd: {
    decoder: () => new FramesDecoder(() => createZstdDecompress(ZSTD_LIMITS)),
    encoder: (_first, flush) =>
      new StreamCoder(
        createZstdCompress({
          flush: flush === 'full' ? constants.ZSTD_e_continue : constants.ZSTD_e_flush,
          params: { [constants.ZSTD_c_windowLog]: WINDOW_BITS },
        }),
      ),
  },
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
export function openDecoder(coding: string, first: number): Coder {
  return find(coding).decoder(first)
}

/** A decoder, and an encoder that writes the body in the coding and form it came in. */
export function openPair(coding: string, first: number, flush: FlushWhen): CodingPair {
  const { decoder, encoder } = find(coding)
  return { decoder: decoder(first), encoder: encoder(first, flush) }
}

function find(coding: string): Coding {
  const found = Object.hasOwn(CODINGS, coding) ? CODINGS[coding] : undefined
  if (found === undefined) throw new Error(`no coder for ${coding}`)
  return found
}

function zlibFlush(flush: FlushWhen): number {
  return flush === 'full' ? constants.Z_NO_FLUSH : constants.Z_SYNC_FLUSH
}

/**
 * A stream of node:zlib as a coder, whose generators end when a chunk's whole output was given. The stream is read
 * with `read()`: with 'data' events the end of a chunk's output could not be told from a pause.
 */
class StreamCoder implements Coder {
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
class FramesDecoder implements Coder {
  readonly #open: () => CodingStream
  #frame: StreamCoder
  #frames = 1

  constructor(open: () => CodingStream) {
    this.#open = open
    this.#frame = new StreamCoder(open())
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
