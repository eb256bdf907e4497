import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import zlib from 'node:zlib'
import { bodyBytesMax } from './limits.ts'
import { Refusal } from './refusal.ts'

export interface ReadBody {
  readonly bytes: Buffer
  readonly end: 'complete' | 'left' | Refusal
}

const tooLarge = new Refusal(413, 'Request exceeds the maximum size')

export async function readBody(req: IncomingMessage): Promise<ReadBody> {
  const chunks: Buffer[] = []
  let length = 0
  const ended = (end: ReadBody['end']): ReadBody => ({ bytes: Buffer.concat(chunks, length), end })
  if (Number(req.headers['content-length'] ?? 0) > bodyBytesMax) return ended(tooLarge)
  try {
    // destroyOnReturn leaves the socket open when we stop early: the refusal still has to be sent on it.
    for await (const chunk of req.iterator({ destroyOnReturn: false })) {
      length += chunk.length
      chunks.push(chunk)
      if (length > bodyBytesMax) return ended(tooLarge)
    }
  } catch {
    return ended('left')
  }
  return ended(req.complete ? 'complete' : 'left')
}

type Decode = (body: Buffer, options: { maxOutputLength: number }) => Promise<Buffer>

const decoders: ReadonlyMap<string, Decode> = new Map<string, Decode>([
  ['gzip', promisify(zlib.gunzip)],
  ['deflate', promisify(zlib.inflate)],
  ['br', promisify(zlib.brotliDecompress)],
  ['zstd', promisify(zlib.zstdDecompress)],
])

/** Undoes the request's content-encoding, one coding at most. */
export async function decodeBody(body: Buffer, contentEncoding = 'identity'): Promise<Buffer> {
  const coding = contentEncoding.trim().toLowerCase()
  if (coding === 'identity' || body.length === 0) return body
  const decode = decoders.get(coding)
  if (decode === undefined) throw new Refusal(400, `Unsupported content-encoding: ${coding}`)
  return decode(body, { maxOutputLength: bodyBytesMax }).catch(() => {
    throw new Refusal(400, `The body is not valid ${coding}, or too large`)
  })
}
