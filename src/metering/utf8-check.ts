import { isUtf8 } from 'node:buffer'

/**
 * Verifies UTF-8 that arrives in pieces. Native code does the bulk (28 GB/s on ASCII); the few bytes around a cut
 * and the search for a wrong byte go through a state of three numbers.
 */
export class Utf8Check {
  /** Continuation bytes that the open sequence still needs, and the range the next of them must be in. */
  #due = 0
  #low = 0x80
  #high = 0xbf

  restart(): void {
    this.#due = 0
    this.#low = 0x80
    this.#high = 0xbf
  }

  /**
   * The offset of the first byte with which the text can no longer be UTF-8, or the chunk's length. The offset is
   * the same however the text is cut. A sequence left open at the end is no fault yet: the next chunk may end it.
   */
  validPrefix(chunk: Uint8Array): number {
    let i = 0
    for (; this.#due > 0 && i < chunk.length; i++) {
      if (!this.#accept(chunk[i] as number)) return i
    }
    const tail = startOfOpenSequence(chunk, i)
    if (isUtf8(i === 0 && tail === chunk.length ? chunk : chunk.subarray(i, tail))) i = tail
    for (; i < chunk.length; i++) {
      if (!this.#accept(chunk[i] as number)) return i
    }
    return chunk.length
  }

  /** Table 3-7 of the Unicode standard: no overlong forms, no surrogates, nothing above U+10FFFF. */
  #accept(byte: number): boolean {
    if (this.#due > 0) {
      if (byte < this.#low || byte > this.#high) return false
      this.#due--
      this.#low = 0x80
      this.#high = 0xbf
      return true
    }
    if (byte < 0x80) return true
    if (byte < 0xc2 || byte > 0xf4) return false
    this.#due = byte < 0xe0 ? 1 : byte < 0xf0 ? 2 : 3
    if (byte === 0xe0) this.#low = 0xa0
    else if (byte === 0xed) this.#high = 0x9f
    else if (byte === 0xf0) this.#low = 0x90
    else if (byte === 0xf4) this.#high = 0x8f
    return true
  }
}

/** Where a sequence begins that the end of the chunk cuts off; the chunk's length if there is none. */
export function startOfOpenSequence(chunk: Uint8Array, from: number): number {
  for (let back = 1; back <= 3 && chunk.length - back >= from; back++) {
    const byte = chunk[chunk.length - back] as number
    if (byte < 0x80) break
    if (byte < 0xc0) continue
    const needed = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4
    return needed > back ? chunk.length - back : chunk.length
  }
  return chunk.length
}
