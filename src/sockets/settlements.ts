/** The settlements of a socket that still run. */
export class Settlements {
  readonly #running = new Set<Promise<void>>()
  readonly #onSettled: () => void
  readonly #onFailed: (error: unknown) => void

  constructor(onSettled: () => void, onFailed: (error: unknown) => void) {
    this.#onSettled = onSettled
    this.#onFailed = onFailed
  }

  add(settled: Promise<unknown>): void {
    const watched = settled
      .then(() => {}, this.#onFailed)
      .finally(() => {
        this.#running.delete(watched)
        this.#onSettled()
      })
    this.#running.add(watched)
  }

  /** Resolves when those that run now are over. */
  async current(): Promise<void> {
    await Promise.all(this.#running)
  }

  /** Resolves when none runs. */
  async all(): Promise<void> {
    while (this.#running.size > 0) await this.current()
  }
}
