import { setImmediate as nextTurn } from 'node:timers/promises'

/**
 * Work that goes on after its call was answered: one piece after the other, with a turn of the event loop between
 * them, so that streams which run meanwhile hardly notice. A stop waits for this work.
 */
export class BackgroundQueue {
  #reserved = 0
  #last: Promise<void> = Promise.resolve()

  /** Pieces of work that are reserved, wait or are under way. */
  get count(): number {
    return this.#reserved
  }

  /** True: the call may bring a piece of work when it is over, and must then call `add`. */
  reserve(most: number): boolean {
    if (this.#reserved >= most) return false
    this.#reserved += 1
    return true
  }

  /** `work` must not fail: the pieces of work behind it would never run. */
  add(work: () => Promise<void>): void {
    this.#last = this.#last.then(async () => {
      await nextTurn()
      await work()
      this.#reserved -= 1
    })
  }
}
