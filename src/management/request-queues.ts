import { type Caller, callerId } from '../keys/credential.ts'
import { refused } from './route.ts'

/** How many requests of one queue may run at once on this node, and how many may wait. Further ones get 429. */
export const RUNNING_MAX = 4
const WAITING_MAX = 1_000

interface RequestQueue {
  running: number
  readonly waiting: (() => void)[]
}

export const TOO_MANY = refused(
  'too_many_calls',
  'Too many requests of this key or its account are waiting on this node. Send fewer at once.',
)

/** The names of the caller's queues. */
export function queuesOf(caller: Caller): readonly string[] {
  const { accountId } = caller
  return accountId === null ? [callerId(caller)] : [callerId(caller), accountId]
}

/** Limits the concurrent requests of each key, and of all keys of an account, so that they do not delay others. */
export class RequestQueues {
  readonly #queues = new Map<string, RequestQueue>()

  /** Does the work when it is first in every queue. Null: a queue is full, and the work was not started. */
  async run<T>(names: readonly string[], work: () => Promise<T>): Promise<T | null> {
    const isFull = names.some((name) => (this.#queues.get(name)?.waiting.length ?? 0) >= WAITING_MAX)
    return isFull ? null : await this.enqueue(names, work)
  }

  /** Queues each chunk by itself, so that a client that reads an export slowly does not block others. */
  async *runEach(
    names: readonly string[],
    chunks: AsyncIterable<Buffer>,
  ): AsyncGenerator<Buffer, void, undefined> {
    const all = chunks[Symbol.asyncIterator]()
    try {
      for (;;) {
        const next = await this.enqueue(names, () => all.next())
        if (next.done === true) return
        yield next.value
      }
    } finally {
      await all.return?.()
    }
  }

  /** As `run`, without a limit of waiting requests. */
  async enqueue<T>([name, ...others]: readonly string[], work: () => Promise<T>): Promise<T> {
    if (name === undefined) return await work()
    const queue = this.#queues.get(name) ?? { running: 0, waiting: [] }
    this.#queues.set(name, queue)
    // Work that ends starts the next one, so `running` does not change.
    if (queue.running >= RUNNING_MAX) await new Promise<void>((resolve) => queue.waiting.push(resolve))
    else queue.running += 1
    try {
      return await this.enqueue(others, work)
    } finally {
      const startNext = queue.waiting.shift()
      if (startNext === undefined) queue.running -= 1
      else startNext()
      if (queue.running === 0) this.#queues.delete(name)
    }
  }
}
