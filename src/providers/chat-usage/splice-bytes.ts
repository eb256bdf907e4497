import { limits } from '../../kernel/limits.ts'
import { type Coder, type CodingPair, openPair } from '../../metering/content-coding.ts'

/** One change of a text of bytes: at `at`, `deleteBytes` are taken out and `insert` is put in. */
export interface Splice {
  readonly at: number
  readonly deleteBytes: number
  readonly insert: Buffer
}

/** The bytes by which the text grows (or, if negative, shrinks). */
export function lengthChange(splices: readonly Splice[]): number {
  return splices.reduce((sum, { deleteBytes, insert }) => sum + insert.length - deleteBytes, 0)
}

/** The whole text with the changes made. */
export function applySplices(bytes: Buffer, splices: readonly Splice[]): Buffer {
  const splicer = new Splicer(splices)
  const pieces = splicer.write(bytes)
  pieces.push(...splicer.end())
  return Buffer.concat(pieces, bytes.length + lengthChange(splices))
}

/** Makes the changes to a text that arrives in chunks. Bytes that stay are given on as slices of the chunks, not copied. */
export class Splicer {
  readonly #splices: readonly Splice[]
  #next = 0
  /** The text's offset of the next byte to arrive. */
  #offset = 0
  /** How many bytes from the next one on are still to be taken out. */
  #deleting = 0

  /** The splices are in order and do not overlap. */
  constructor(splices: readonly Splice[]) {
    let end = 0
    for (const { at, deleteBytes } of splices) {
      if (at < end) throw new Error('splices overlap or are out of order')
      end = at + deleteBytes
    }
    this.#splices = splices
  }

  write(chunk: Buffer): Buffer[] {
    const out: Buffer[] = []
    let i = 0
    while (i < chunk.length) {
      if (this.#deleting > 0) {
        const taken = Math.min(this.#deleting, chunk.length - i)
        this.#deleting -= taken
        i += taken
        continue
      }
      const splice = this.#splices[this.#next]
      const at = splice === undefined ? chunk.length : Math.min(splice.at - this.#offset, chunk.length)
      if (at > i) out.push(chunk.subarray(i, at))
      i = at
      if (splice === undefined || at === chunk.length) break
      this.#begin(splice, out)
    }
    this.#offset += chunk.length
    return out
  }

  /** The inserts at the very end of the text. A text that ends before a change is not the text that was judged. */
  end(): Buffer[] {
    const out: Buffer[] = []
    for (;;) {
      const splice = this.#splices[this.#next]
      if (this.#deleting > 0 || (splice !== undefined && splice.at > this.#offset)) {
        throw new Error('the text ends before its last change')
      }
      if (splice === undefined) return out
      this.#begin(splice, out)
    }
  }

  #begin(splice: Splice, out: Buffer[]): void {
    if (splice.insert.length > 0) out.push(splice.insert)
    this.#deleting = splice.deleteBytes
    this.#next++
  }
}

/** The changes made to a body that is read from a file or a socket. */
export async function* spliceChunks(
  source: AsyncIterable<Buffer> | Iterable<Buffer>,
  splices: readonly Splice[],
): AsyncGenerator<Buffer> {
  const splicer = new Splicer(splices)
  for await (const chunk of source) yield* splicer.write(chunk)
  yield* splicer.end()
}

/**
 * A compressed request with the changes made inside, in the same coding. Offsets are those of the decoded body. Throws
 * when the body cannot be decoded, is not the body that was judged, or decodes to more than `decodedBytesMax`.
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
 * Like `reencodeRequest` for a body in memory, so that its length can be stated. Null when the result is longer than the
 * limit: the client compressed the body harder than we do, and it has to be sent as it comes.
 */
export async function reencodeWhole(
  coding: string,
  bytes: Buffer,
  splices: readonly Splice[],
  encodedBytesMax: number = 32 * 1024 * 1024,
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
