import type { Transform } from 'node:stream'
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib'

export type DecodingStream = Transform & { readonly bytesWritten: number }

/** RFC 9659 allows a window of 8 MiB; the library would allow 128 MiB. */
const ZSTD_LIMITS = { params: { [constants.ZSTD_d_windowLogMax]: 23 } }

const CODINGS: Readonly<Record<string, (first: number) => DecodingStream>> = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  // "deflate" means the zlib format, but some senders omit its header, whose first byte has 8 in the low half.
  deflate: (first) => ((first & 0x0f) === 8 ? createInflate() : createInflateRaw()),
  br: () => createBrotliDecompress(),
  zstd: () => createZstdDecompress(ZSTD_LIMITS),
}

export function codingOf(
  contentEncoding: string | undefined,
): 'identity' | 'unknown' | { readonly coding: string } {
  const coding = (contentEncoding ?? '').trim().toLowerCase()
  if (coding === '' || coding === 'identity') return 'identity'
  // A chain of codings ("gzip, gzip, …") multiplies work, and no client needs more than one.
  return Object.hasOwn(CODINGS, coding) ? { coding } : 'unknown'
}

export function openDecoder(coding: string, first: number): DecodingStream {
  const open = Object.hasOwn(CODINGS, coding) ? CODINGS[coding] : undefined
  if (open === undefined) throw new Error(`no decoder for ${coding}`)
  return open(first)
}

/** Maximum zstd frames per chunk, each of which takes 50 to 150 µs. Beyond it the body counts as corrupt. */
export const CODED_FRAMES_MAX = 20_000

/** How many compressed bytes the copy may be behind. Beyond it the sender waits until half of them are decoded. */
const REQUEST_BACKLOG_BYTES_MAX = 64 * 1024

const DECODED_BYTES_OF_ANY_RATIO = 1024 ** 2

export interface CopyDecoder {
  /** If it returns a promise, the copy is behind: wait for it before the next chunk. */
  write(chunk: Buffer): Promise<void> | null
  /** Resolves when all output was delivered: the whole body, or its start if bad input or a limit ended the copy. */
  end(): Promise<DecodedState>
}

/** `too_dense`: the body decodes to far more than it should, as a decompression bomb does. */
export type DecodedState = 'whole' | 'corrupt' | 'too_large' | 'too_dense'

export interface CopyLimits {
  readonly backlogBytesMax?: number
  readonly ratioMax?: number
}

/** Decodes a copy of a body while the body itself passes unchanged. Bad input or too much output ends the copy. */
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
  #stream: DecodingStream | null = null
  /** Bytes written to the decoder. It does not consume bytes after the end of the compressed data. */
  #fedBytes = 0
  #isOver = false
  #wake: () => void = () => {}
  #frames = 0
  #state: DecodedState = 'whole'
  #pendingBytes = 0
  #inputBytes = 0
  #outputBytes = 0
  #work: Promise<void> = NOTHING_TO_DO
  #isWorking = false
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
    await this.#finish()
    // Bytes after the end: some decoders skip padding and continue, so another reader may see a different body.
    if (this.#state === 'whole' && this.#unreadBytes > 0) this.#state = 'corrupt'
    this.#stream?.destroy()
    return this.#state
  }

  get #unreadBytes(): number {
    return this.#stream === null ? 0 : this.#fedBytes - this.#stream.bytesWritten
  }

  async #decodeQueue(): Promise<void> {
    this.#isWorking = true
    while (this.#queue.length > 0) {
      const chunks = this.#queue.reverse()
      this.#queue = []
      for (let chunk = chunks.pop(); chunk !== undefined; chunk = chunks.pop()) {
        this.#inputBytes += chunk.length
        await this.#feed(chunk)
        this.#pendingBytes -= chunk.length
        if (this.#state !== 'whole') return this.#stop()
        if (this.#pendingBytes <= this.#limits.backlogBytesMax / 2) this.#giveRoom()
      }
    }
    this.#isWorking = false
  }

  /** node:zlib reads consecutive gzip members itself, but drops what follows the first zstd frame of a chunk. */
  async #feed(chunk: Buffer): Promise<void> {
    let rest = chunk
    for (;;) {
      this.#stream ??= this.#open(rest[0] ?? 0)
      this.#fedBytes += rest.length
      const stream = this.#stream
      await this.#untilOver((done) => stream.write(rest, done))
      const unread = this.#unreadBytes
      if (unread === 0 || this.#coding !== 'zstd') return
      await this.#finish()
      this.#frames++
      if (unread >= rest.length || this.#frames > CODED_FRAMES_MAX) this.#state = 'corrupt'
      if (this.#state !== 'whole') return
      rest = rest.subarray(rest.length - unread)
      stream.destroy()
      this.#stream = null
    }
  }

  async #finish(): Promise<void> {
    const stream = this.#stream
    if (stream !== null) await this.#untilOver(() => stream.end())
  }

  #untilOver(start: (done: () => void) => void): Promise<void> {
    if (this.#isOver) return NOTHING_TO_DO
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    start(resolve)
    return promise
  }

  #open(first: number): DecodingStream {
    const stream = openDecoder(this.#coding, first)
    const over = () => {
      if (this.#stream !== stream) return
      this.#isOver = true
      this.#wake()
    }
    this.#fedBytes = 0
    this.#isOver = false
    stream.on('data', (bytes: Buffer) => this.#show(stream, bytes))
    stream.once('end', over)
    stream.once('close', over)
    stream.once('error', () => {
      if (this.#state === 'whole') this.#state = 'corrupt'
      over()
    })
    return stream
  }

  #show(stream: DecodingStream, bytes: Buffer): void {
    if (this.#state !== 'whole') return
    this.#outputBytes += bytes.length
    if (this.#outputBytes > this.#limits.outputBytesMax) this.#state = 'too_large'
    else if (this.#isDense()) this.#state = 'too_dense'
    else {
      try {
        this.#onBytes(bytes)
      } catch {
        this.#state = 'corrupt'
      }
    }
    if (this.#state !== 'whole') stream.destroy()
  }

  #isDense(): boolean {
    if (this.#outputBytes <= DECODED_BYTES_OF_ANY_RATIO) return false
    return this.#outputBytes > this.#inputBytes * this.#limits.ratioMax
  }

  #stop(): void {
    this.#queue = []
    this.#stream?.destroy()
    this.#giveRoom()
  }

  #giveRoom(): void {
    this.#room?.resolve()
    this.#room = null
  }
}
