import zlib from 'node:zlib'

export interface TestCoding {
  /** The name in `Content-Encoding`. */
  readonly name: string
  encode(bytes: Buffer): Buffer
  decode(bytes: Buffer): Buffer
  /** Decodes a compressed text that is not complete, as far as it goes. */
  decodeBeginning(bytes: Buffer): Buffer
  compressor(): zlib.Gzip | zlib.BrotliCompress | zlib.ZstdCompress
  readonly flush: number
}

const { Z_SYNC_FLUSH, BROTLI_OPERATION_FLUSH, ZSTD_e_flush } = zlib.constants

export const CODINGS: Readonly<Record<string, TestCoding>> = {
  gzip: {
    name: 'gzip',
    encode: (bytes) => zlib.gzipSync(bytes),
    decode: (bytes) => zlib.gunzipSync(bytes),
    decodeBeginning: (bytes) => zlib.gunzipSync(bytes, { finishFlush: Z_SYNC_FLUSH }),
    compressor: () => zlib.createGzip(),
    flush: Z_SYNC_FLUSH,
  },
  deflate: {
    name: 'deflate',
    encode: (bytes) => zlib.deflateSync(bytes),
    decode: (bytes) => zlib.inflateSync(bytes),
    decodeBeginning: (bytes) => zlib.inflateSync(bytes, { finishFlush: Z_SYNC_FLUSH }),
    compressor: () => zlib.createDeflate(),
    flush: Z_SYNC_FLUSH,
  },
  'deflate without its header': {
    name: 'deflate',
    encode: (bytes) => zlib.deflateRawSync(bytes),
    decode: (bytes) => zlib.inflateRawSync(bytes),
    decodeBeginning: (bytes) => zlib.inflateRawSync(bytes, { finishFlush: Z_SYNC_FLUSH }),
    compressor: () => zlib.createDeflateRaw(),
    flush: Z_SYNC_FLUSH,
  },
  br: {
    name: 'br',
    encode: (bytes) => zlib.brotliCompressSync(bytes),
    decode: (bytes) => zlib.brotliDecompressSync(bytes),
    decodeBeginning: (bytes) => zlib.brotliDecompressSync(bytes, { finishFlush: BROTLI_OPERATION_FLUSH }),
    compressor: () => zlib.createBrotliCompress(),
    flush: BROTLI_OPERATION_FLUSH,
  },
  zstd: {
    name: 'zstd',
    encode: (bytes) => zlib.zstdCompressSync(bytes),
    decode: (bytes) => zlib.zstdDecompressSync(bytes),
    decodeBeginning: (bytes) => zlib.zstdDecompressSync(bytes, { finishFlush: ZSTD_e_flush }),
    compressor: () => zlib.createZstdCompress(),
    flush: ZSTD_e_flush,
  },
}

/** Each block compressed so that it can be read before the next one is written; the end of the text comes last. */
export async function encodeFlushed(coding: TestCoding, blocks: readonly Buffer[]): Promise<Buffer[]> {
  const stream = coding.compressor()
  let produced: Buffer[] = []
  stream.on('data', (bytes: Buffer) => produced.push(bytes))
  const out: Buffer[] = []
  for (const block of blocks) {
    stream.write(block)
    await new Promise<void>((resolve) => stream.flush(coding.flush, resolve))
    await new Promise((resolve) => setImmediate(resolve))
    out.push(Buffer.concat(produced))
    produced = []
  }
  const ended = new Promise((resolve) => stream.once('end', resolve))
  stream.end()
  await ended
  return [...out, Buffer.concat(produced)]
}
