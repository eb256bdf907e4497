/**
 * Functions that are called when something happens. Every call has a few, and Node's emitter takes four times as long to
 * make, to fill and to call.
 */
export class Listeners {
  #all: readonly (() => void)[] = NONE

  add(listener: () => void): void {
    this.#all = this.#all === NONE ? [listener] : [...this.#all, listener]
  }

  remove(listener: () => void): void {
    this.#all = this.#all.filter((each) => each !== listener)
  }

  /** Calls the listeners of this instant in the order in which they came; one that comes or goes meanwhile changes nothing. */
  tell(): void {
    for (const listener of this.#all) listener()
  }
}

const NONE: readonly (() => void)[] = []
