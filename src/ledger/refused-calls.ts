import { limits } from '../kernel/limits.ts'
import type { Log } from '../kernel/log.ts'
import type { RefusedCall, RequestLogStore } from './request-log.ts'

/**
 * Takes the records of refused calls to the store, in batches, after their answers have left. No call waits for it and
 * none fails with it: what does not fit into the queue, or what the store cannot take, is dropped, and the log says so.
 */
export class RefusedCalls {
  readonly #store: Pick<RequestLogStore, 'keepRefused' | 'deleteRefused'>
  readonly #log: Log
  readonly #callsMax: number
  readonly #queue: RefusedCall[] = []
  /** So many have come in, and so many of those are dealt with. */
  #added = 0
  #done = 0
  #dropped = 0
  #timer: NodeJS.Timeout | null = null
  #writing: Promise<void> | null = null

  constructor(
    store: Pick<RequestLogStore, 'keepRefused' | 'deleteRefused'>,
    log: Log,
    callsMax: number = limits.refusedCallsMax,
  ) {
    this.#store = store
    this.#log = log
    this.#callsMax = callsMax
  }

  add(call: RefusedCall): void {
    if (this.#queue.length >= limits.refusedCallsWaitingMax) {
      this.#dropped += 1
      return
    }
    this.#queue.push(call)
    this.#added += 1
    if (this.#queue.length >= limits.refusedCallsAtOnce && this.#writing === null) void this.written()
    else if (this.#timer === null) {
      this.#timer = setTimeout(() => void this.written(), limits.refusedCallsEveryMs)
      this.#timer.unref()
    }
  }

  /** Writes what waits, now. Resolves when all that was added before is in the store, or given up. Never fails. */
  async written(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    const last = this.#added
    while (this.#done < last) {
      this.#writing ??= this.#writeBatch().finally(() => {
        this.#writing = null
      })
      await this.#writing
    }
  }

  async #writeBatch(): Promise<void> {
    const batch = this.#queue.splice(0, limits.refusedCallsAtOnce)
    try {
      await this.#store.keepRefused(batch)
      // Twice as many as were added, so that a limit that was lowered is reached too.
      await this.#store.deleteRefused(0, this.#callsMax, 2 * batch.length)
    } catch (error) {
      const about = { calls: batch.length, cause: (error as Error).message }
      this.#log.warn(about, 'refused calls could not be recorded')
    }
    this.#done += batch.length
    if (this.#dropped === 0) return
    this.#log.warn({ calls: this.#dropped }, 'too many calls were refused at once to record all of them')
    this.#dropped = 0
  }
}
