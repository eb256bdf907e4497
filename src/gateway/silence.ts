import { limits } from '../kernel/limits.ts'

/** How long upstream has said nothing of something that is waited for. */
export class Silence {
  readonly #timer: NodeJS.Timeout
  #isLong = false

  constructor(onLong: () => void) {
    this.#timer = setTimeout(() => {
      this.#isLong = true
      onLong()
    }, limits.silentTurnMs).unref()
  }

  /** It has lasted so long that it is waited for no more. */
  get isLong(): boolean {
    return this.#isLong
  }

  /** Something was said, and more is waited for. */
  broken(): void {
    this.#isLong = false
    this.#timer.refresh()
  }

  over(): void {
    clearTimeout(this.#timer)
  }
}
