import { setImmediate as nextTurn } from 'node:timers/promises'
import zlib from 'node:zlib'
import type { Coding } from './behaviours.ts'

/** Compresses a stream event by event: a client can decode the bytes of each `push` without waiting for the next. */
export interface Encoder {
  push(bytes: Buffer): Promise<Buffer>
  finish(): Promise<Buffer>
}

const compressors = {
  gzip: () => zlib.createGzip(),
  deflate: () => zlib.createDeflate(),
  br: () => zlib.createBrotliCompress({ params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 4 } }),
  zstd: () => zlib.createZstdCompress(),
} as const satisfies Record<Coding, () => zlib.Gzip | zlib.Deflate | zlib.BrotliCompress | zlib.ZstdCompress>

export function createEncoder(coding: Coding): Encoder {
  const stream = compressors[coding]()
  let produced: Buffer[] = []
  stream.on('data', (chunk: Buffer) => produced.push(chunk))
  const ended = new Promise<void>((resolve, reject) => stream.on('end', resolve).on('error', reject))
  const take = (): Buffer => {
    const bytes = Buffer.concat(produced)
    produced = []
    return bytes
  }
  return {
    async push(bytes) {
      stream.write(bytes)
      await new Promise<void>((resolve) => stream.flush(() => resolve()))
      // The flush has run, but its last chunk may still be queued as a 'data' event of this turn.
      await nextTurn()
      return take()
    },
    async finish() {
      stream.end()
      await ended
      return take()
    },
  }
}

/** Whether the client takes this coding (RFC 9110, 12.5.3). A client that says nothing takes any. */
export function acceptsCoding(acceptEncoding: string | undefined, coding: Coding): boolean {
  if (acceptEncoding === undefined) return true
  let wildcard = false
  for (const item of acceptEncoding.toLowerCase().split(',')) {
    const [name = '', ...parameters] = item.split(';').map((part) => part.trim())
    const isRefused = parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
    if (name === coding || (coding === 'gzip' && name === 'x-gzip')) return !isRefused
    if (name === '*') wildcard = !isRefused
  }
  return wildcard
}
