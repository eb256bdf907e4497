import type { Gateway } from './gateway.ts'

/** The settlements of a socket's turns that are under way. */
export class TurnSettlements {
  readonly #socketId: string
  readonly #gateway: Gateway
  readonly #onEach: () => void
  readonly #all = new Set<Promise<void>>()

  constructor(socketId: string, gateway: Gateway, onEach: () => void) {
    this.#socketId = socketId
    this.#gateway = gateway
    this.#onEach = onEach
  }

  /** What is returned resolves when it is settled, or cannot be. */
  add(settled: Promise<void>): Promise<void> {
    const watched = settled
      .catch((error: unknown) => {
        const about = { request: this.#socketId, cause: (error as Error).message }
        this.#gateway.log.error(about, 'a turn of a socket could not be settled')
      })
      .finally(() => {
        this.#all.delete(watched)
        this.#onEach()
      })
    this.#all.add(watched)
    return watched
  }

  async done(): Promise<void> {
    while (this.#all.size > 0) await Promise.allSettled(this.#all)
  }
}
