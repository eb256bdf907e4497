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
import { type Coder, FramesDecoder, StreamCoder } from './coder.ts'

/** When a compressor gives out what it has: after every chunk, for a stream that is being watched, or when it must. */
export type FlushWhen = 'each_chunk' | 'full'

/** A body taken apart and put together again. */
export interface CodingPair {
  readonly decoder: Coder
  readonly encoder: Coder
}

type OpenPair = (first: number, flush: FlushWhen) => CodingPair

/** What a match may refer back to, 256 KiB: gzip has 32, and brotli and zstd would take megabytes per stream. */
const WINDOW_BITS = 18

const openGzip: OpenPair = (_first, flush) => ({
  decoder: new StreamCoder(createGunzip()),
  encoder: new StreamCoder(createGzip({ flush: zlibFlush(flush) })),
})

/** By their names in `Content-Encoding`. */
const PAIRS: Readonly<Record<string, OpenPair>> = {
  gzip: openGzip,
  'x-gzip': openGzip,
  // "deflate" means the zlib format, but some leave its header out; the low half of its first byte is 8.
  deflate: (first, flush) =>
    (first & 0x0f) === 8
      ? {
          decoder: new StreamCoder(createInflate()),
          encoder: new StreamCoder(createDeflate({ flush: zlibFlush(flush) })),
        }
      : {
          decoder: new StreamCoder(createInflateRaw()),
          encoder: new StreamCoder(createDeflateRaw({ flush: zlibFlush(flush) })),
        },
  br: (_first, flush) => ({
    decoder: new StreamCoder(createBrotliDecompress()),
    encoder: new StreamCoder(
      createBrotliCompress({
        flush: flush === 'full' ? constants.BROTLI_OPERATION_PROCESS : constants.BROTLI_OPERATION_FLUSH,
        // The default quality, 11, is for files that are compressed once and sent for years.
        params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_LGWIN]: WINDOW_BITS },
      }),
    ),
  }),
  zstd: (_first, flush) => ({
    decoder: new FramesDecoder(createZstdDecompress),
    encoder: new StreamCoder(
      createZstdCompress({
        flush: flush === 'full' ? constants.ZSTD_e_continue : constants.ZSTD_e_flush,
        params: { [constants.ZSTD_c_windowLog]: WINDOW_BITS },
      }),
    ),
  }),
}

/** `first` is the first byte of the coded body, which tells the two forms of deflate apart. */
export function openPair(coding: string, first: number, flush: FlushWhen): CodingPair {
  const open = Object.hasOwn(PAIRS, coding) ? PAIRS[coding] : undefined
  if (open === undefined) throw new Error(`no coder for ${coding}`)
  return open(first, flush)
}

function zlibFlush(flush: FlushWhen): number {
  return flush === 'full' ? constants.Z_NO_FLUSH : constants.Z_SYNC_FLUSH
}
