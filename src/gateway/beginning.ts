/** The beginning of a body, up to a limit, and how long the whole of it was. */
export class Beginning {
  readonly #bytesMax: number
  readonly #chunks: Buffer[] = []
  keptBytes = 0
  lengthBytes = 0

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  append(chunk: Buffer): void {
    this.lengthBytes += chunk.length
    const room = this.#bytesMax - this.keptBytes
    if (room <= 0) return
    // Copied: a small piece of a socket's buffer would keep the whole of it alive.
    const kept = Buffer.from(chunk.subarray(0, room))
    this.keptBytes += kept.length
    this.#chunks.push(kept)
  }

  get truncated(): boolean {
    return this.lengthBytes > this.keptBytes
  }

  bytes(): Buffer {
    return Buffer.concat(this.#chunks)
  }
}
