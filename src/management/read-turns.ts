/** How many reads of one caller may run at once on this node, and how many may wait. Further ones get 429. */
const RUNNING_MAX = 16
const WAITING_MAX = 1_000

interface Turns {
  running: number
  readonly waiting: (() => void)[]
}

/** Limits concurrent reads per caller, so that one key's requests do not block others. */
export class ReadTurns {
  readonly #callers = new Map<string, Turns>()

  /** Runs the work when its turn comes. Null if too many of the caller's reads wait; the work is not started. */
  async take<T>(caller: string, work: () => Promise<T>): Promise<T | null> {
    return this.#turnsOf(caller).waiting.length >= WAITING_MAX ? null : await this.#wait(caller, work)
  }

  /** Takes a turn for each chunk, so that a client that reads an export slowly does not block others. */
  async *each(caller: string, chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
    const all = chunks[Symbol.asyncIterator]()
    try {
      for (;;) {
        const next = await this.#wait(caller, () => all.next())
        if (next.done === true) return
        yield next.value
      }
    } finally {
      await all.return?.()
    }
  }

  async #wait<T>(caller: string, work: () => Promise<T>): Promise<T> {
    const turns = this.#turnsOf(caller)
    // A read that ends hands its turn to the next.
    if (turns.running >= RUNNING_MAX) await new Promise<void>((resolve) => turns.waiting.push(resolve))
    else turns.running += 1
    try {
      return await work()
    } finally {
      const next = turns.waiting.shift()
      if (next === undefined) turns.running -= 1
      else next()
      if (turns.running === 0) this.#callers.delete(caller)
    }
  }

  #turnsOf(caller: string): Turns {
    const turns = this.#callers.get(caller) ?? { running: 0, waiting: [] }
    this.#callers.set(caller, turns)
    return turns
  }
}
