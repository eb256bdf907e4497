/**
 * Who wants to hear of something. Every call has a few, and Node's emitter takes four times as long to make, to fill and
 * to call.
 */
export class Listeners {
  #all: readonly (() => void)[] = NOBODY

  add(listener: () => void): void {
    this.#all = this.#all === NOBODY ? [listener] : [...this.#all, listener]
  }

  remove(listener: () => void): void {
    this.#all = this.#all.filter((each) => each !== listener)
  }

  /** Those who listen now hear of it, in the order in which they came; who comes or goes meanwhile changes nothing. */
  tell(): void {
    for (const listener of this.#all) listener()
  }
}

const NOBODY: readonly (() => void)[] = []
