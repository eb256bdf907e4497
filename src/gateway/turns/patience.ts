import { limits } from '../../kernel/limits.ts'

/** With which something is waited for that upstream has to say. */
export class Patience {
  readonly #timer: NodeJS.Timeout
  #isLost = false

  constructor(onLost: () => void) {
    this.#timer = setTimeout(() => {
      this.#isLost = true
      onLost()
    }, limits.silentTurnMs).unref()
  }

  /** Nothing was heard for so long that it is waited for no more. */
  get isLost(): boolean {
    return this.#isLost
  }

  /** Something was heard, and more is waited for. */
  renew(): void {
    this.#isLost = false
    this.#timer.refresh()
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}
