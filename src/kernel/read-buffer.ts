/**
 * Sockets without TLS all read into this, one after the other. The alternative is 64 KiB for each read, of which most
 * use a few hundred bytes: with bodies of 1 MB, clearing them away was a third of all work.
 *
 * What arrives here is good until whoever was given it returns. Who wants it longer takes `kept` of it.
 */
export const readBuffer = Buffer.allocUnsafeSlow(64 * 1024)

/** Whose memory is used again as soon as whoever was given it returns. */
let lent: ArrayBufferLike | null = null

/** Gives bytes that are good until `take` returns, like those that arrive. */
export function lend(chunk: Buffer, take: (chunk: Buffer) => void): void {
  const before = lent
  lent = chunk.buffer
  try {
    take(chunk)
  } finally {
    lent = before
  }
}

/** The same bytes for as long as one wants; a copy only where they would not last. */
export function kept(chunk: Buffer): Buffer {
  const { buffer } = chunk
  return buffer !== readBuffer.buffer && buffer !== lent ? chunk : Buffer.from(chunk)
}
