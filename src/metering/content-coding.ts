import type { Transform } from 'node:stream'
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
} from 'node:zlib'

/** One of node:zlib's streams. `bytesWritten` is how much of its input it has read. */
export type DecodingStream = Transform & { readonly bytesWritten: number }

/** RFC 9659 lets a content coding ask for 8 MiB of window; the library would give a frame 128 MiB. */
const ZSTD_LIMITS = { params: { [constants.ZSTD_d_windowLogMax]: 23 } }

/** The codings, by their names in `Content-Encoding`. `first` is the first byte of the body. */
const CODINGS: Readonly<Record<string, (first: number) => DecodingStream>> = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  // "deflate" means the zlib format, but some senders leave out zlib's header; the low half of its first byte is 8.
  deflate: (first) => ((first & 0x0f) === 8 ? createInflate() : createInflateRaw()),
  br: () => createBrotliDecompress(),
  zstd: () => createZstdDecompress(ZSTD_LIMITS),
}

/** Whether a body with this `Content-Encoding` has to be decoded, can be, or cannot. */
export function codingOf(
  contentEncoding: string | undefined,
): 'identity' | 'unknown' | { readonly coding: string } {
  const coding = (contentEncoding ?? '').trim().toLowerCase()
  if (coding === '' || coding === 'identity') return 'identity'
  // A chain of codings ("gzip, gzip, …") is a way to multiply work; one is enough for any client.
  return Object.hasOwn(CODINGS, coding) ? { coding } : 'unknown'
}

/** `first` is the first byte of the coded body, which distinguishes the two forms of deflate. */
export function openDecoder(coding: string, first: number): DecodingStream {
  const open = Object.hasOwn(CODINGS, coding) ? CODINGS[coding] : undefined
  if (open === undefined) throw new Error(`no decoder for ${coding}`)
  return open(first)
}
