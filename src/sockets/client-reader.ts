import { type FramePart, FrameReader, type Violation } from './frames.ts'

/**
 * How many frames of a client are processed before other sockets get their turn, and how many bytes are read at once
 * while frames may be small: 64 KB of tiny messages took 4 s of a busy machine.
 */
export const FRAMES_AT_ONCE = 32
const PIECE_BYTES = 256

/** Splits a client's bytes into frames, a few at a time. One chunk may contain thousands of messages. */
export class ClientReader {
  readonly #frames = new FrameReader('client')
  readonly #onPart: (part: FramePart) => void
  readonly #onTurn: () => void
  #bytes: Buffer = Buffer.alloc(0)
  #framesRead = 0

  /** `onTurn`: other sockets had their turn, so read again. */
  constructor(onPart: (part: FramePart) => void, onTurn: () => void) {
    this.#onPart = onPart
    this.#onTurn = onTurn
  }

  get isAhead(): boolean {
    return this.#bytes.length > 0
  }

  add(bytes: Buffer): void {
    this.#bytes = this.#bytes.length === 0 ? bytes : Buffer.concat([this.#bytes, bytes])
  }

  read(mayRead: () => boolean): Violation | null {
    while (this.#bytes.length > 0 && this.#framesRead < FRAMES_AT_ONCE && mayRead()) {
      const piece = this.#bytes.subarray(0, Math.max(PIECE_BYTES, this.#frames.bytesLeft))
      this.#bytes = this.#bytes.subarray(piece.length)
      const violation = this.#frames.read(piece, this.#take)
      if (violation !== null) return violation
    }
    return null
  }

  readonly #take = (part: FramePart): void => {
    if (part.endsFrame) this.#countFrame()
    this.#onPart(part)
  }

  #countFrame(): void {
    this.#framesRead += 1
    if (this.#framesRead !== FRAMES_AT_ONCE) return
    setImmediate(() => {
      this.#framesRead = 0
      this.#onTurn()
    })
  }
}
