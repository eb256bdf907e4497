import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { bodyBytesInFlightMax, decodedBodyBytesMax } from './limits.ts'
import { Refusal } from './refusal.ts'

/** The bytes of all bodies held at this moment, over all requests of one simulator. */
export interface BodyBudget {
  bytes: number
}

export type ReadBody =
  | { kind: 'complete'; bytes: Buffer }
  | { kind: 'refused'; bytes: Buffer; refusal: Refusal }
  | { kind: 'left'; bytes: Buffer }

/** Reads a body up to a limit. The caller gives the body's bytes back to `budget` once the request is answered. */
export async function readBody(
  req: IncomingMessage,
  bytesMax: number,
  budget: BodyBudget,
): Promise<ReadBody> {
  const chunks: Buffer[] = []
  let length = 0
  const tooLarge = (): Refusal =>
    new Refusal(413, 'Request exceeds the maximum size', { type: 'request_too_large' })
  const sofar = (): Buffer => Buffer.concat(chunks, length)

  if (Number(req.headers['content-length'] ?? 0) > bytesMax) {
    return { kind: 'refused', bytes: sofar(), refusal: tooLarge() }
  }
  try {
    // destroyOnReturn keeps the socket alive when we stop early: the refusal still has to be sent on it.
    for await (const chunk of req.iterator({ destroyOnReturn: false })) {
      const bytes: Buffer = chunk
      length += bytes.length
      budget.bytes += bytes.length
      chunks.push(bytes)
      if (length > bytesMax) return { kind: 'refused', bytes: sofar(), refusal: tooLarge() }
      if (budget.bytes > bodyBytesInFlightMax) {
        return {
          kind: 'refused',
          bytes: sofar(),
          refusal: new Refusal(503, 'The simulator holds too many bodies'),
        }
      }
    }
  } catch {
    return { kind: 'left', bytes: sofar() }
  }
  return req.complete ? { kind: 'complete', bytes: sofar() } : { kind: 'left', bytes: sofar() }
}

const decoders: ReadonlyMap<string, (body: Buffer) => Promise<Buffer>> = new Map([
  ['gzip', decoder(zlib.gunzip)],
  ['x-gzip', decoder(zlib.gunzip)],
  ['deflate', decoder(zlib.inflate)],
  ['br', decoder(zlib.brotliDecompress)],
  ['zstd', decoder(zlib.zstdDecompress)],
])

type Decompress = (
  body: Buffer,
  options: { maxOutputLength: number },
  callback: (error: Error | null, decoded: Buffer) => void,
) => void

function decoder(decompress: Decompress): (body: Buffer) => Promise<Buffer> {
  const run = promisify(decompress)
  return (body) => run(body, { maxOutputLength: decodedBodyBytesMax })
}

/** Undoes the request's content-encoding, one coding at most. */
export async function decodeBody(body: Buffer, contentEncoding: string | undefined): Promise<Buffer> {
  const coding = (contentEncoding ?? 'identity').trim().toLowerCase()
  if (coding === 'identity' || coding === '' || body.length === 0) return body
  const decode = decoders.get(coding)
  if (decode === undefined) {
    throw new Refusal(400, `Unsupported content-encoding: ${coding}`, {
      code: 'request_body_encoding_unsupported',
    })
  }
  try {
    return await decode(body)
  } catch (error) {
    const isTooLarge = error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE'
    throw isTooLarge
      ? new Refusal(413, 'Request body is too large after decoding', {
          type: 'request_too_large',
          code: 'request_body_too_large_after_decoding',
        })
      : new Refusal(400, `The body is not valid ${coding}`, { code: 'request_body_encoding_invalid' })
  }
}
