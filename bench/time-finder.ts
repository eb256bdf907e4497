import { TIME_MARK } from './wire-text.ts'

const MARK = Buffer.from(TIME_MARK)
const ZERO = 48
const NINE = 57
const NOTHING = Buffer.alloc(0)

/** Finds the times that upstream wrote into its events, also where a time is cut between two pieces. */
export class TimeFinder {
  readonly #found: (sentNs: number, nowNs: number) => void
  #pending: Buffer = NOTHING

  constructor(found: (sentNs: number, nowNs: number) => void) {
    this.#found = found
  }

  read(piece: Buffer, nowNs: number): void {
    const bytes = this.#pending.length === 0 ? piece : Buffer.concat([this.#pending, piece])
    this.#pending = NOTHING
    let at = bytes.indexOf(MARK)
    while (at >= 0) {
      const start = at + MARK.length
      let end = start
      let value = 0
      for (
        let digit = bytes[end];
        digit !== undefined && digit >= ZERO && digit <= NINE;
        digit = bytes[end]
      ) {
        value = value * 10 + digit - ZERO
        end += 1
      }
      if (end === bytes.length) {
        // The rest of the number comes with the next piece.
        this.#pending = bytes.subarray(at)
        return
      }
      this.#found(value, nowNs)
      at = bytes.indexOf(MARK, end)
    }
    if (bytes[bytes.length - 1] === MARK[0]) this.#pending = bytes.subarray(bytes.length - 1)
  }
}
