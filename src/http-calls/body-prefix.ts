import { codingOf, firstValue, type RawHeaders } from '../http/raw-headers.ts'
import { CopyDecoder } from '../metering/decode-copy.ts'

/** The first bytes of a body, as many as `bytesMax` and the memory that it shares with other bodies allow. */
export class BodyPrefix {
  readonly #bytesMax: number
  readonly #memory: { bytesLeft: number }
  readonly #chunks: Buffer[] = []
  #copiedBytes = 0
  #isCut = false
  lengthBytes = 0

  constructor(bytesMax: number, memory: { bytesLeft: number }) {
    this.#bytesMax = bytesMax
    this.#memory = memory
  }

  append(chunk: Buffer): void {
    this.lengthBytes += chunk.length
    const room = Math.min(this.#bytesMax - this.#copiedBytes, this.#memory.bytesLeft)
    // After a gap, later chunks are of no use.
    if (this.#isCut) return
    this.#isCut = chunk.length > room
    if (room <= 0) return
    // Always copy: even a small slice would retain the whole buffer.
    const copy = Buffer.from(chunk.subarray(0, room))
    this.#copiedBytes += copy.length
    this.#memory.bytesLeft -= copy.length
    this.#chunks.push(copy)
  }

  /** Frees the memory. */
  release(): void {
    this.#memory.bytesLeft += this.#copiedBytes
    this.#copiedBytes = 0
    this.#chunks.length = 0
  }

  /** The stored part of the body, decoded; null for an unknown coding. */
  async decoded(headers: RawHeaders): Promise<{ readonly bytes: Buffer; readonly whole: boolean } | null> {
    const coding = codingOf(firstValue(headers, 'content-encoding'))
    if (coding === 'unknown') return null
    const bytes = Buffer.concat(this.#chunks)
    const isComplete = this.lengthBytes === this.#copiedBytes
    if (coding === 'identity') return { bytes, whole: isComplete }
    const parts: Buffer[] = []
    const decoder = new CopyDecoder(coding, this.#bytesMax, (part) => parts.push(part))
    await decoder.write(bytes)
    const isWhole = (await decoder.end()) === 'whole'
    return { bytes: Buffer.concat(parts), whole: isComplete && isWhole }
  }
}
