import { StoreGone, StoreRefused, StoreUnavailable } from '../../kernel/errors.ts'
import { limits } from '../../kernel/limits.ts'
import { StoreInDoubt } from './database.ts'

export type Outcome<Answer> =
  | { readonly ok: true; readonly value: Answer }
  | { readonly ok: false; readonly error: Error }

export interface BatcherParts<Command, Answer> {
  /**
   * Runs one transaction. Answers are in the order of the commands. If it throws, no command took effect, except with
   * StoreInDoubt.
   */
  send(batch: readonly Command[]): Promise<readonly Outcome<Answer>[]>
  /** Maximum commands per batch: statements must be short, because others wait for the rows they lock. */
  readonly batchMax: number
  /** How long a command may take, including its time in the queue. Then: StoreUnavailable. */
  readonly answerMs: number
  /** Called after every transaction with its number of commands and its duration. */
  onCommit?(commands: number, ms: number): void
  /** The command took effect, but its caller already got an error. */
  onLate?(command: Command, answer: Answer): void
  onDoubt?(commands: readonly Command[]): void
}

interface Waiting<Command, Answer> {
  readonly command: Command
  readonly dueMs: number
  readonly timer: NodeJS.Timeout
  answered: boolean
  resolve(answer: Answer): void
  reject(error: Error): void
}

export interface Batcher<Command, Answer> {
  ask(command: Command): Promise<Answer>
  readonly waiting: number
  /** Earlier commands are still answered. */
  close(): Promise<void>
}

/**
 * Sends commands to the database one batch at a time. Commands that arrive while a batch runs form the next one, so
 * batches grow under load and a lone command never waits.
 */
export function createBatcher<Command, Answer>(
  parts: BatcherParts<Command, Answer>,
): Batcher<Command, Answer> {
  type Item = Waiting<Command, Answer>
  let queue: Item[] = []
  let underWay: Promise<void> | null = null
  let closed = false

  function sendNext(): void {
    if (underWay !== null) return
    // Do not send commands whose caller has already been answered.
    queue = queue.filter((item) => !item.answered)
    if (queue.length === 0) return
    const batch = queue.splice(0, parts.batchMax)
    underWay = run(batch).finally(() => {
      underWay = null
      sendNext()
    })
  }

  /** Splits a rejected batch in half until the offending command is alone and fails alone. */
  async function run(batch: readonly Item[]): Promise<void> {
    const begunMs = performance.now()
    try {
      const outcomes = await parts.send(batch.map((item) => item.command))
      parts.onCommit?.(batch.length, performance.now() - begunMs)
      for (const [i, item] of batch.entries()) answer(item, outcomes[i])
    } catch (error) {
      if (error instanceof StoreRefused && batch.length > 1) {
        const half = batch.length >> 1
        await run(batch.slice(0, half))
        await run(batch.slice(half))
        return
      }
      if (error instanceof StoreInDoubt) parts.onDoubt?.(batch.map((item) => item.command))
      for (const item of batch) finish(item, () => item.reject(error as Error))
    }
  }

  function answer(item: Item, outcome: Outcome<Answer> | undefined): void {
    // After a suspension of the process, an answer may be out of date.
    if (item.answered || performance.now() > item.dueMs) {
      if (outcome?.ok) parts.onLate?.(item.command, outcome.value)
      finish(item, () => item.reject(tooLate()))
      return
    }
    finish(item, () => {
      if (outcome?.ok) item.resolve(outcome.value)
      else item.reject(outcome?.error ?? new StoreRefused('the database gave no answer'))
    })
  }

  function finish(item: Item, complete: () => void): void {
    if (item.answered) return
    item.answered = true
    clearTimeout(item.timer)
    complete()
  }

  return {
    get waiting() {
      return queue.length
    },

    ask(command) {
      if (closed) return Promise.reject(new StoreGone('the store is closed'))
      if (queue.length >= limits.storeQueueMax) {
        return Promise.reject(new StoreUnavailable('too many operations wait'))
      }
      return new Promise((resolve, reject) => {
        const item: Item = {
          command,
          dueMs: performance.now() + parts.answerMs,
          timer: setTimeout(() => finish(item, () => reject(tooLate())), parts.answerMs),
          answered: false,
          resolve,
          reject,
        }
        queue.push(item)
        // Commands of the same turn of the event loop join the batch.
        if (queue.length === 1 && underWay === null) setImmediate(sendNext)
      })
    },

    async close() {
      closed = true
      while (queue.length > 0 || underWay !== null) {
        await (underWay ?? new Promise((resolve) => setImmediate(resolve)))
      }
    },
  }
}

function tooLate(): StoreUnavailable {
  return new StoreUnavailable('the database did not answer in time')
}
