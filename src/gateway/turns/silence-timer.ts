import { limits } from '../../kernel/limits.ts'

/** Runs out when upstream has said nothing about a piece of work for `limits.silentTurnMs`. */
export class SilenceTimer {
  readonly #timer: NodeJS.Timeout
  #hasExpired = false

  constructor(onExpired: () => void) {
    this.#timer = setTimeout(() => {
      this.#hasExpired = true
      onExpired()
    }, limits.silentTurnMs).unref()
  }

  get hasExpired(): boolean {
    return this.#hasExpired
  }

  /** Upstream has said something about the work, and more of it is to come. */
  restart(): void {
    this.#hasExpired = false
    this.#timer.refresh()
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}
