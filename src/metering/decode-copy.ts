import type { Transform } from 'node:stream'
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib'
import { ZstdFrames } from './zstd-frames.ts'

type DecodingStream = Transform & { readonly bytesWritten: number }

/** RFC 9659 allows a window of 8 MiB; the library would allow 128 MiB. */
const ZSTD_LIMITS = { params: { [constants.ZSTD_d_windowLogMax]: 23 } }

const CODINGS = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  // "deflate" means the zlib format, but some senders omit its header, whose first byte has 8 in the low half.
  deflate: (first) => ((first & 0x0f) === 8 ? createInflate() : createInflateRaw()),
  br: () => createBrotliDecompress(),
  zstd: () => createZstdDecompress(ZSTD_LIMITS),
} satisfies Readonly<Record<string, (first: number) => DecodingStream>>

export type Coding = keyof typeof CODINGS

/** Maximum compressed bytes that wait for decoding. With more, the sender waits until half of them are decoded. */
const REQUEST_BACKLOG_BYTES_MAX = 64 * 1024

const DECODED_BYTES_OF_ANY_RATIO = 1024 ** 2

/** `too_dense`: the body decodes to far more than it should, as a decompression bomb does. */
type DecodedState = 'whole' | 'corrupt' | 'too_large' | 'too_dense'

interface CopyLimits {
  readonly backlogBytesMax?: number
  readonly ratioMax?: number
}

/**
 * Decodes a copy of a body while the body itself passes unchanged. Bad input or too much output ends the copy. If
 * `onBytes` returns false, the copy ends as too dense. If it returns a promise, the copy pauses until it resolves.
 */
export class CopyDecoder {
  readonly #coding: Coding
  readonly #outputBytesMax: number
  readonly #onBytes: (bytes: Buffer) => unknown
  readonly #limits: Required<CopyLimits>
  readonly #frames: ZstdFrames | null
  #stream: DecodingStream | null = null
  readonly #over = Promise.withResolvers<void>()
  #isOver = false
  #writerWait: PromiseWithResolvers<void> | null = null
  #state: DecodedState = 'whole'
  #inputBytes = 0
  #outputBytes = 0

  constructor(
    coding: Coding,
    outputBytesMax: number,
    onBytes: (bytes: Buffer) => unknown,
    { backlogBytesMax = REQUEST_BACKLOG_BYTES_MAX, ratioMax = Infinity }: CopyLimits = {},
  ) {
    this.#coding = coding
    this.#frames = coding === 'zstd' ? new ZstdFrames() : null
    this.#outputBytesMax = outputBytesMax
    this.#onBytes = onBytes
    this.#limits = { backlogBytesMax, ratioMax }
  }

  /** Decodes a copy of the chunk. If it returns a promise, the copy lags behind: wait for it before the next chunk. */
  write(chunk: Buffer): Promise<void> | null {
    if (this.#state !== 'whole' || chunk.length === 0) return null
    this.#inputBytes += chunk.length
    if (this.#isOver) return null
    this.#stream ??= this.#open(chunk[0] ?? 0)
    const stream = this.#stream
    const { backlogBytesMax } = this.#limits
    for (const piece of this.#frames?.split(chunk) ?? [chunk]) {
      stream.write(Buffer.from(piece), () => {
        if (stream.writableLength <= backlogBytesMax / 2) this.#releaseWriter()
      })
    }
    if (stream.writableLength > backlogBytesMax) this.#writerWait ??= Promise.withResolvers<void>()
    return this.#writerWait?.promise ?? null
  }

  /** Resolves when all output was delivered: only the start if bad input or a limit ended the copy. */
  async end(): Promise<DecodedState> {
    const stream = this.#stream
    if (stream === null) return this.#state
    if (!this.#isOver) stream.end()
    await this.#over.promise
    // There are bytes after the end. Some decoders skip padding and continue, so upstream may see a different body.
    if (this.#state === 'whole' && stream.bytesWritten < this.#inputBytes) this.#state = 'corrupt'
    stream.destroy()
    return this.#state
  }

  #open(first: number): DecodingStream {
    const stream = CODINGS[this.#coding](first)
    const over = () => {
      this.#isOver = true
      this.#releaseWriter()
      this.#over.resolve()
    }
    stream.on('data', (bytes: Buffer) => this.#deliver(stream, bytes))
    stream.once('end', over)
    stream.once('close', over)
    stream.once('error', () => {
      if (this.#state === 'whole') this.#state = 'corrupt'
      over()
    })
    return stream
  }

  #deliver(stream: DecodingStream, bytes: Buffer): void {
    if (this.#state !== 'whole') return
    this.#outputBytes += bytes.length
    const expectedMax = Math.max(DECODED_BYTES_OF_ANY_RATIO, stream.bytesWritten * this.#limits.ratioMax)
    if (this.#outputBytes > this.#outputBytesMax) this.#state = 'too_large'
    else if (this.#outputBytes > expectedMax) this.#state = 'too_dense'
    else {
      try {
        const read = this.#onBytes(bytes)
        if (read === false) this.#state = 'too_dense'
        else if (read instanceof Promise) {
          stream.pause()
          read.then(() => stream.resume())
        }
      } catch {
        this.#state = 'corrupt'
      }
    }
    if (this.#state !== 'whole') stream.destroy()
  }

  #releaseWriter(): void {
    this.#writerWait?.resolve()
    this.#writerWait = null
  }
}
