const NOTHING = Buffer.alloc(0)
const MASK_BYTES = 4

/** Splits the bytes of a WebSocket into frames. Masked frames come from the load, whose mask is all zeros. */
export class FrameSplitter {
  readonly #onFrame: (opcode: number, payload: Buffer) => void
  #pending: Buffer = NOTHING

  constructor(onFrame: (opcode: number, payload: Buffer) => void) {
    this.#onFrame = onFrame
  }

  read(chunk: Buffer): void {
    const bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    let at = 0
    while (bytes.length - at >= 2) {
      const second = bytes[at + 1] ?? 0
      const short = second & 0x7f
      const lengthEnd = at + (short < 126 ? 2 : short === 126 ? 4 : 10)
      if (bytes.length < lengthEnd) break
      const from = lengthEnd + ((second & 0x80) === 0 ? 0 : MASK_BYTES)
      const to = from + lengthAt(bytes, at, short)
      if (bytes.length < to) break
      this.#onFrame((bytes[at] ?? 0) & 0x0f, bytes.subarray(from, to))
      at = to
    }
    this.#pending = bytes.subarray(at)
  }
}

/** A length of eight bytes has two zeros in front, so six bytes are read. */
function lengthAt(bytes: Buffer, at: number, short: number): number {
  if (short < 126) return short
  return short === 126 ? bytes.readUInt16BE(at + 2) : bytes.readUIntBE(at + 4, 6)
}
