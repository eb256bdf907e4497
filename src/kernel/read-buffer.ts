/**
 * Sockets without TLS all read into this, one after the other. The alternative is 64 KiB for each read, of which most
 * use a few hundred bytes: with bodies of 1 MB, clearing them away was a third of all work.
 *
 * What arrives here is good until the function that was given it returns: it is `Borrowed`.
 */
export const readBuffer = Buffer.allocUnsafeSlow(64 * 1024)

/**
 * A view of memory that is used again as soon as the function that was given it returns. Every Buffer may be passed as one.
 * It is no Buffer itself, so it does not compile where bytes are kept or handed to a socket: `copyIfBorrowed` makes it one.
 */
export interface Borrowed {
  readonly length: number
  readonly [index: number]: number
  subarray(from?: number, to?: number): Borrowed
  includes(value: string | number | Uint8Array, from?: number): boolean
  indexOf(value: string | number | Uint8Array, from?: number): number
  lastIndexOf(value: string | number | Uint8Array, from?: number): number
  toString(encoding?: BufferEncoding, from?: number, to?: number): string
}

/** What `withBorrowed` has given, while it is good. */
let lent: ArrayBufferLike | null = null

/** Gives bytes that are good until `take` returns, like those that arrive. */
export function withBorrowed(chunk: Buffer, take: (chunk: Borrowed) => void): void {
  const before = lent
  lent = chunk.buffer
  try {
    take(chunk)
  } finally {
    lent = before
  }
}

/** For a scanner that keeps nothing and is done with the bytes when it returns: the same memory, as a Buffer. */
export function viewOf(chunk: Borrowed): Buffer {
  return chunk as Buffer
}

/** The same bytes for as long as one wants; a copy only where they would not last. */
export function copyIfBorrowed(chunk: Borrowed): Buffer {
  const bytes = viewOf(chunk)
  const { buffer } = bytes
  return buffer !== readBuffer.buffer && buffer !== lent ? bytes : Buffer.from(bytes)
}
