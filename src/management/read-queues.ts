/** How many reads of one caller may run at once on this node, and how many may wait. Further ones get 429. */
const RUNNING_MAX = 16
const WAITING_MAX = 1_000

interface Queue {
  running: number
  readonly waiting: (() => void)[]
}

/** Limits the concurrent reads of each caller, so that one key's requests do not block others. */
export class ReadQueues {
  readonly #queues = new Map<string, Queue>()

  /** Runs the read when it is first in the caller's queue. Null: the queue is full, and the read was not started. */
  async run<T>(caller: string, read: () => Promise<T>): Promise<T | null> {
    return this.#queueOf(caller).waiting.length >= WAITING_MAX ? null : await this.#enqueue(caller, read)
  }

  /** Queues each chunk by itself, so that a client that reads an export slowly does not block others. */
  async *runEach(caller: string, chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void, undefined> {
    const all = chunks[Symbol.asyncIterator]()
    try {
      for (;;) {
        const next = await this.#enqueue(caller, () => all.next())
        if (next.done === true) return
        yield next.value
      }
    } finally {
      await all.return?.()
    }
  }

  async #enqueue<T>(caller: string, read: () => Promise<T>): Promise<T> {
    const queue = this.#queueOf(caller)
    // A read that ends starts the next one, so `running` does not change.
    if (queue.running >= RUNNING_MAX) await new Promise<void>((resolve) => queue.waiting.push(resolve))
    else queue.running += 1
    try {
      return await read()
    } finally {
      const startNext = queue.waiting.shift()
      if (startNext === undefined) queue.running -= 1
      else startNext()
      if (queue.running === 0) this.#queues.delete(caller)
    }
  }

  #queueOf(caller: string): Queue {
    const queue = this.#queues.get(caller) ?? { running: 0, waiting: [] }
    this.#queues.set(caller, queue)
    return queue
  }
}
