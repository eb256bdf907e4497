import { StoreGone, StoreRefused, StoreUnavailable } from '../kernel/errors.ts'
import { Histogram } from '../kernel/histogram.ts'
import { limits } from '../kernel/limits.ts'
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

/** Commands that arrive while a batch runs form the next: batches grow under load, a lone command never waits. */
export class Batcher<Command, Answer> {
  readonly #options: BatcherOptions<Command, Answer>
  #queue: Queued<Command, Answer>[] = []
  /** Halves of a rejected batch. They are sent before the queue. */
  #halves: Queued<Command, Answer>[][] = []
  #isBusy = false
  #wasAlone = true
  #isClosed = false

  constructor(options: BatcherOptions<Command, Answer>) {
    this.#options = options
  }

  get waiting(): number {
    return this.#queue.length
  }

  submit(command: Command): Promise<Answer> {
    const { waitingMax = limits.storeQueueMax, isEager = false } = this.#options
    if (this.#isClosed) return Promise.reject(new StoreGone('the database is closed'))
    if (this.#queue.length >= waitingMax)
      return Promise.reject(new StoreUnavailable('too many operations wait'))
    return new Promise((resolve, reject) => {
      this.#queue.push(this.#queued(command, resolve, reject))
      if (this.#queue.length > 1 || this.#isBusy) return
      if (isEager && this.#wasAlone) this.#sendNext()
      else this.#gather(GATHER_ITERATIONS_MAX)
    })
  }

  #queued(
    command: Command,
    resolve: (answer: Answer) => void,
    reject: (error: unknown) => void,
  ): Queued<Command, Answer> {
    const { answerMs } = this.#options
    const item: Queued<Command, Answer> = {
      command,
      dueMs: answerMs === undefined ? Infinity : performance.now() + answerMs,
      timer: answerMs === undefined ? undefined : setTimeout(() => rejectLate(item), answerMs),
      isAnswered: false,
      resolve,
      reject,
    }
    return item
  }

  #sendNext(): void {
    if (this.#isBusy) return
    // Do not send commands whose callers already have an answer.
    if (this.#halves.length === 0 && this.#options.answerMs !== undefined)
      this.#queue = this.#queue.filter((item) => !item.isAnswered)
    const batch = this.#halves.shift() ?? this.#queue.splice(0, this.#options.batchMax)
    if (batch.length === 0) return
    this.#isBusy = true
    this.#wasAlone = batch.length === 1
    void this.#run(batch)
  }

  /** Sends the next batch after the first iteration of the event loop that adds no command, or after the last one allowed. */
  #gather(iterations: number): void {
    const before = this.#queue.length
    setImmediate(() => {
      const { length } = this.#queue
      if (iterations > 1 && length > before && length < this.#options.batchMax) this.#gather(iterations - 1)
      else this.#sendNext()
    })
  }

  async #run(batch: readonly Queued<Command, Answer>[]): Promise<void> {
    const { send, onCommit } = this.#options
    const commands = batch.map(({ command }) => command)
    const begunMs = performance.now()
    let outcomes: readonly Outcome<Answer>[]
    try {
      outcomes = await send(commands)
    } catch (error) {
      this.#isBusy = false
      this.#fail(batch, error)
      this.#sendNext()
      return
    }
    const ms = performance.now() - begunMs
    this.#isBusy = false
    if (this.#queue.length > 0 || this.#halves.length > 0) this.#gather(GATHER_ITERATIONS_MAX)
    onCommit?.(commands, ms)
    for (const [i, item] of batch.entries()) this.#answer(item, outcomes[i])
  }

  /** Splits a refused batch in half, again and again, until the failing command is alone in its batch. */
  #fail(batch: readonly Queued<Command, Answer>[], error: unknown): void {
    if (error instanceof StoreRefused && batch.length > 1) {
      const half = batch.length >> 1
      this.#halves = [batch.slice(0, half), batch.slice(half), ...this.#halves]
      return
    }
    this.#options.onFailure?.(
      batch.map(({ command }) => command),
      error,
    )
    for (const item of batch) finish(item, () => item.reject(error))
  }

  #answer(item: Queued<Command, Answer>, outcome: Outcome<Answer> | undefined): void {
    // If the process was suspended, the answer may have come too late.
    if (item.isAnswered || performance.now() > item.dueMs) {
      if (outcome?.ok) this.#options.onLate?.(item.command, outcome.value)
      rejectLate(item)
      return
    }
    finish(item, () => {
      if (outcome?.ok) item.resolve(outcome.value)
      else item.reject(outcome?.error ?? new StoreUnavailable('the database gave no answer'))
    })
  }

  /** Resolves when earlier commands are answered. */
  async close(): Promise<void> {
    this.#isClosed = true
    while (this.#queue.length > 0 || this.#halves.length > 0 || this.#isBusy)
      await new Promise((resolve) => setImmediate(resolve))
  }
}

function finish<Command, Answer>(item: Queued<Command, Answer>, complete: () => void): void {
  if (item.isAnswered) return
  item.isAnswered = true
  clearTimeout(item.timer)
  complete()
}

function rejectLate<Command, Answer>(item: Queued<Command, Answer>): void {
  finish(item, () => item.reject(tooLate()))
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
