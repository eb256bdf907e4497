import type { Transform } from 'node:stream'
import {
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib'
import { limits } from '../kernel/limits.ts'
import { kept } from '../kernel/read-buffer.ts'

/** Content codings that can be read, by their names in `Content-Encoding`. */
const DECODERS: Readonly<Record<string, (first: number) => Transform>> = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  br: () => createBrotliDecompress(),
  zstd: () => createZstdDecompress(),
  // "deflate" means the zlib format, but some senders leave its header out; the low half of its first byte is 8.
  deflate: (first) => ((first & 0x0f) === 8 ? createInflate() : createInflateRaw()),
}

export interface CopyDecoder {
  /** A promise means: wait for it before the next chunk, or the copies would pile up. */
  write(chunk: Buffer): Promise<void> | null
  /** Input that was taken and not decoded yet. */
  readonly pendingBytes: number
  /** Resolves when all output was seen: whole, or broken by bad input or by a limit. */
  end(): Promise<DecodedState>
}

/** `too_dense`: it becomes far longer than it came, which is no text but a way to make work. */
export type DecodedState = 'whole' | 'corrupt' | 'too_large' | 'too_dense'

/** Whether a body with this `Content-Encoding` has to be decoded, can be, or cannot. */
export function codingOf(
  contentEncoding: string | undefined,
): 'identity' | 'unknown' | { readonly coding: string } {
  const coding = (contentEncoding ?? '').trim().toLowerCase()
  if (coding === '' || coding === 'identity') return 'identity'
  // A chain of codings ("gzip, gzip, …") is a way to multiply work; one is enough for any client.
  return Object.hasOwn(DECODERS, coding) ? { coding } : 'unknown'
}

/** Decodes a copy of a body for reading, while the body itself passes as it is. Output beyond the limit ends it. */
export function decodeCopy(
  coding: string,
  outputBytesMax: number,
  onBytes: (bytes: Buffer) => void,
  ratioMax = Infinity,
): CopyDecoder {
  let decoder: Transform | null = null
  let state: DecodedState = 'whole'
  let inputBytes = 0
  let outputBytes = 0
  let closed = Promise.resolve()
  let room: Promise<void> | null = null

  function open(first: number): Transform {
    const opened = DECODERS[coding]?.(first)
    if (opened === undefined) throw new Error(`no decoder for ${coding}`)
    closed = new Promise((resolve) => opened.once('close', resolve))
    opened.on('data', (bytes: Buffer) => {
      outputBytes += bytes.length
      const isDense = outputBytes > limits.decodedBytesOfAnyRatio && outputBytes > inputBytes * ratioMax
      if (outputBytes <= outputBytesMax && !isDense) return onBytes(bytes)
      state = isDense ? 'too_dense' : 'too_large'
      opened.destroy()
    })
    opened.once('error', () => {
      if (state === 'whole') state = 'corrupt'
    })
    return opened
  }

  return {
    get pendingBytes() {
      return decoder?.writableLength ?? 0
    },
    write(chunk) {
      if (state !== 'whole' || chunk.length === 0) return null
      decoder ??= open(chunk[0] ?? 0)
      inputBytes += chunk.length
      const stream = decoder
      if (stream.destroyed || stream.write(kept(chunk))) return null
      // One wait for all who wait: whoever only looks goes on writing.
      room ??= new Promise((resolve) => {
        const go = () => {
          stream.off('drain', go)
          stream.off('close', go)
          room = null
          resolve()
        }
        stream.once('drain', go)
        stream.once('close', go)
      })
      return room
    },
    async end() {
      if (decoder !== null && !decoder.destroyed) decoder.end()
      await closed
      return state
    },
  }
}
