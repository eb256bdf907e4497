import { limits } from '../../kernel/limits.ts'
import { type Coder, type CodingPair, openPair } from '../../metering/content-coding.ts'
import { type Splice, Splicer } from './splice-bytes.ts'

/**
 * A compressed request with the changes made inside, in the same coding. Offsets are those of the decoded body. Throws
 * when the body cannot be decoded, is not the one that was judged, or decodes to more than may be read of one.
 */
export async function* reencodeRequest(
  coding: string,
  source: AsyncIterable<Buffer> | Iterable<Buffer>,
  splices: readonly Splice[],
  decodedBytesMax: number = limits.decodedBodyBytesMax,
): AsyncGenerator<Buffer> {
  const splicer = new Splicer(splices)
  let pair: CodingPair | null = null
  let decodedBytes = 0

  async function* change(encoder: Coder, decoded: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const piece of decoded) {
      decodedBytes += piece.length
      if (decodedBytes > decodedBytesMax) throw new Error('the decoded request is too large')
      for (const kept of splicer.write(piece)) yield* encoder.feed(kept)
    }
  }

  try {
    for await (const chunk of source) {
      if (chunk.length === 0) continue
      pair ??= openPair(coding, chunk[0] ?? 0, 'full')
      yield* change(pair.encoder, pair.decoder.feed(chunk))
    }
    if (pair === null) throw new Error('the request has no body')
    yield* change(pair.encoder, pair.decoder.finish())
    for (const piece of splicer.end()) yield* pair.encoder.feed(piece)
    yield* pair.encoder.finish()
  } finally {
    pair?.decoder.destroy()
    pair?.encoder.destroy()
  }
}

/**
 * The same for a body in memory, whose length can then be stated. Null when the result is longer than the limit: it was
 * compressed harder than we do, and has to be sent as it comes.
 */
export async function reencodeWhole(
  coding: string,
  bytes: Buffer,
  splices: readonly Splice[],
  encodedBytesMax: number = limits.bodyMemoryBytesMax,
): Promise<Buffer | null> {
  const pieces: Buffer[] = []
  let length = 0
  for await (const piece of reencodeRequest(coding, [bytes], splices)) {
    length += piece.length
    if (length > encodedBytesMax) return null
    pieces.push(piece)
  }
  return Buffer.concat(pieces, length)
}
