import type { Borrowed } from '../kernel/read-buffer.ts'

/** The beginning of a body, up to a limit, and how long the whole of it was. */
export class Beginning {
  readonly #bytesMax: number
  readonly #chunks: Buffer[] = []
  keptBytes = 0
  lengthBytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  append(chunk: Borrowed): void {
    this.lengthBytes += chunk.length
    const room = this.#bytesMax - this.keptBytes
    if (room <= 0) return
    // Copied in any case: a small piece of a large buffer would keep the whole of it alive.
    const copy = Buffer.from(chunk.subarray(0, room))
    this.keptBytes += copy.length
    this.#chunks.push(copy)
  }

  get truncated(): boolean {
    return this.lengthBytes > this.keptBytes
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks)
  }
}
