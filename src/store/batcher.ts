import { StoreGone, StoreRefused, StoreUnavailable } from '../kernel/errors.ts'
import { limits } from '../kernel/limits.ts'
import { Histogram } from '../kernel/memory.ts'
import { readEventCounts } from './operations/events.ts'

export type Outcome<Answer> =
  | { readonly ok: true; readonly value: Answer }
  | { readonly ok: false; readonly error: Error }

export interface BatcherOptions<Command, Answer> {
  /** Answers are in the order of the commands. If it rejects, none took effect, unless the error says otherwise. */
  send(batch: readonly Command[]): Promise<readonly Outcome<Answer>[]>
  /** Maximum commands per batch: statements must be short, because others wait for the rows they lock. */
  readonly batchMax: number
  readonly waitingMax?: number
  /** How long a command may take, including its time in the queue. After that, it fails with StoreUnavailable. */
  readonly answerMs?: number
  /** If the previous command was sent alone, send this one at once, without waiting for others of the same turn. */
  readonly isEager?: boolean
  /** Called after every transaction with its commands and its duration. */
  onCommit?(commands: readonly Command[], ms: number): void
  /** The command took effect, but its caller already got an error. */
  onLate?(command: Command, answer: Answer): void
  onFailure?(commands: readonly Command[], error: unknown): void
}

interface Queued<Command, Answer> {
  readonly command: Command
  readonly dueMs: number
  readonly timer: NodeJS.Timeout | undefined
  isAnswered: boolean
  resolve(answer: Answer): void
  reject(error: unknown): void
}

/** Few large batches cost less than many small ones: against 1, a call of 2 kB takes a sixth less CPU time. */
const GATHER_ITERATIONS_MAX = 4

export type Batcher<Command, Answer> = ReturnType<typeof createBatcher<Command, Answer>>

/** Commands that arrive while a batch runs form the next: batches grow under load, a lone command never waits. */
export function createBatcher<Command, Answer>(options: BatcherOptions<Command, Answer>) {
  type Item = Queued<Command, Answer>
  const { send, batchMax, waitingMax = limits.storeQueueMax, answerMs, isEager = false } = options
  let queue: Item[] = []
  /** Halves of a rejected batch. They are sent before the queue. */
  let halves: Item[][] = []
  let isBusy = false
  let wasAlone = true
  let closed = false

  function sendNext(): void {
    if (isBusy) return
    // Do not send commands whose callers already have an answer.
    if (halves.length === 0 && answerMs !== undefined) queue = queue.filter((item) => !item.isAnswered)
    const batch = halves.shift() ?? queue.splice(0, batchMax)
    if (batch.length === 0) return
    isBusy = true
    wasAlone = batch.length === 1
    void run(batch)
  }

  /** Sends the next batch after the first iteration of the event loop that adds no command, or after the last one allowed. */
  function gather(iterations: number): void {
    const before = queue.length
    setImmediate(() => {
      if (iterations > 1 && queue.length > before && queue.length < batchMax) gather(iterations - 1)
      else sendNext()
    })
  }

  async function run(batch: readonly Item[]): Promise<void> {
    const commands = batch.map(({ command }) => command)
    const begunMs = performance.now()
    let outcomes: readonly Outcome<Answer>[]
    try {
      outcomes = await send(commands)
    } catch (error) {
      isBusy = false
      if (error instanceof StoreRefused && batch.length > 1) {
        // Split the batch in half, again and again, until the failing command is alone in its batch.
        const half = batch.length >> 1
        halves = [batch.slice(0, half), batch.slice(half), ...halves]
      } else {
        options.onFailure?.(commands, error)
        for (const item of batch) finish(item, () => item.reject(error))
      }
      sendNext()
      return
    }
    const ms = performance.now() - begunMs
    isBusy = false
    if (queue.length > 0 || halves.length > 0) gather(GATHER_ITERATIONS_MAX)
    options.onCommit?.(commands, ms)
    for (const [i, item] of batch.entries()) answer(item, outcomes[i])
  }

  function answer(item: Item, outcome: Outcome<Answer> | undefined): void {
    // If the process was suspended, the answer may have come too late.
    if (item.isAnswered || (answerMs !== undefined && performance.now() > item.dueMs)) {
      if (outcome?.ok) options.onLate?.(item.command, outcome.value)
      finish(item, () => item.reject(tooLate()))
      return
    }
    finish(item, () => {
      if (outcome?.ok) item.resolve(outcome.value)
      else item.reject(outcome?.error ?? new StoreUnavailable('the database gave no answer'))
    })
  }

  function finish(item: Item, complete: () => void): void {
    if (item.isAnswered) return
    item.isAnswered = true
    clearTimeout(item.timer)
    complete()
  }

  return {
    get waiting(): number {
      return queue.length
    },

    submit(command: Command): Promise<Answer> {
      if (closed) return Promise.reject(new StoreGone('the database is closed'))
      if (queue.length >= waitingMax) return Promise.reject(new StoreUnavailable('too many operations wait'))
      return new Promise((resolve, reject) => {
        const item: Item = {
          command,
          dueMs: answerMs === undefined ? 0 : performance.now() + answerMs,
          timer:
            answerMs === undefined
              ? undefined
              : setTimeout(() => finish(item, () => reject(tooLate())), answerMs),
          ...{ isAnswered: false, resolve, reject },
        }
        queue.push(item)
        if (queue.length > 1 || isBusy) return
        if (isEager && wasAlone) sendNext()
        else gather(GATHER_ITERATIONS_MAX)
      })
    },

    /** Resolves when earlier commands are answered. */
    async close(): Promise<void> {
      closed = true
      while (queue.length > 0 || halves.length > 0 || isBusy)
        await new Promise((resolve) => setImmediate(resolve))
    },
  }
}

function tooLate(): StoreUnavailable {
  return new StoreUnavailable('the database did not answer in time')
}

const BATCH_CALLS_BOUNDS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000]
const COMMIT_SECONDS_BOUNDS = [
  ...[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05],
  ...[0.1, 0.25, 0.5, 1, 2.5],
]

/** The figures of a store for metrics. `waiting`: the number of commands that wait for a batch. */
export function createLoad(waiting: () => number) {
  const batchCalls = new Histogram(BATCH_CALLS_BOUNDS)
  const commitSeconds = new Histogram(COMMIT_SECONDS_BOUNDS)
  return {
    load: {
      batchCalls,
      commitSeconds,
      get waiting() {
        return waiting()
      },
      get events() {
        return readEventCounts()
      },
    },
    /** A transaction without a call is not counted. */
    recordCommit(calls: number, ms: number): void {
      if (calls === 0) return
      batchCalls.observe(calls)
      commitSeconds.observe(ms / 1_000)
    },
  }
}
