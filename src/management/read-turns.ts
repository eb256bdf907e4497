/** Reads of one caller that run at once on this node, and that wait for their turn. Beyond: 429. */
const RUNNING_MAX = 16
const WAITING_MAX = 1_000

interface Turns {
  running: number
  readonly waiting: (() => void)[]
}

/** Turns at reading: however many requests one key sends, the reads of others wait for a few of them only. */
export class ReadTurns {
  readonly #callers = new Map<string, Turns>()

  /** Does the work when its turn has come. Null, and the work not begun, if too many of the caller wait. */
  async take<T>(caller: string, work: () => Promise<T>): Promise<T | null> {
    return this.#turnsOf(caller).waiting.length >= WAITING_MAX ? null : await this.#wait(caller, work)
  }

  /** Each chunk takes a turn: a client that reads an export slowly holds up nobody. */
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
    // A turn is handed from the read that ends to the next one.
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
