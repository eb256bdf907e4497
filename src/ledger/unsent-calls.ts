import { limits } from '../kernel/limits.ts'
import type { Log } from '../kernel/log.ts'
import { Tally } from '../kernel/tally.ts'
import type { Store } from '../store/store.ts'
import type { CallRecord } from './call.ts'
import type { CallFilter, RefusedCall } from './request-log.ts'

/** Maximum wait of a refused call, calls per write, and length of the queue. More calls are dropped. */
const REFUSED_CALLS_EVERY_MS = 250

export const REFUSED_CALLS_AT_ONCE = 200

export const REFUSED_CALLS_WAITING_MAX = 10_000

/** The calls of this node that wait for a cap or for credit. They exist only in memory. */
export class WaitingCalls {
  readonly #calls = new Map<string, CallRecord>()
  readonly #ofKey = new Tally()

  add(call: CallRecord): void {
    this.#calls.set(call.requestId, call)
    this.#ofKey.add(call.keyId)
  }

  remove(requestId: string): void {
    const call = this.#calls.get(requestId)
    if (call === undefined) return
    this.#calls.delete(requestId)
    this.#ofKey.remove(call.keyId)
  }

  find(requestId: string): CallRecord | null {
    return this.#calls.get(requestId) ?? null
  }

  get count(): number {
    return this.#calls.size
  }

  countOfAccount(accountId: string): number {
    return [...this.#calls.values()].filter((call) => call.accountId === accountId).length
  }

  countOf(keyId: string): number {
    return this.#ofKey.countOf(keyId)
  }

  /** Lists the waiting calls, newest first. They have no figures, so a filter on a figure matches none. */
  list(filter: CallFilter): readonly CallRecord[] {
    const { accountId, keyId, fromMs, toMs, model, status, minCostNanos, flag } = filter
    const { personId = null, parentId = null, socketId = null, sessionId = null } = filter
    if (status !== null || minCostNanos !== null || flag !== null || parentId !== null) return []
    return [...this.#calls.values()]
      .filter(
        (call) =>
          (accountId === null || call.accountId === accountId) &&
          (keyId === null || call.keyId === keyId) &&
          (personId === null || call.personId === personId) &&
          (fromMs === null || call.startedAtMs >= fromMs) &&
          (toMs === null || call.startedAtMs < toMs) &&
          (model === null || call.modelAsked === model) &&
          (socketId === null || call.socketId === socketId) &&
          (sessionId === null || call.sessionId === sessionId),
      )
      .sort((a, b) => (a.requestId < b.requestId ? 1 : -1))
  }
}

export type RefusedCalls = ReturnType<typeof createRefusedCalls>

/** Writes refused calls in batches after their answers. What does not fit or cannot be stored is dropped and logged. */
export function createRefusedCalls(
  store: Pick<Store, 'storeRefused' | 'deleteRefused'>,
  log: Log,
  callsMax: number = limits.refusedCallsMax,
) {
  const queue: RefusedCall[] = []
  let dropped = 0
  let timer: NodeJS.Timeout | null = null
  let writing: Promise<void> = Promise.resolve()

  async function writeAll(): Promise<void> {
    for (let left = queue.length; left > 0; left -= REFUSED_CALLS_AT_ONCE)
      await writeBatch(queue.splice(0, Math.min(left, REFUSED_CALLS_AT_ONCE)))
    if (dropped === 0) return
    log.warn({ calls: dropped }, 'too many calls were refused at once to record all of them')
    dropped = 0
  }

  async function writeBatch(batch: readonly RefusedCall[]): Promise<void> {
    try {
      await store.storeRefused(batch)
      // Delete twice as many records as were added, so that a lowered limit is reached too.
      await store.deleteRefused(0, callsMax, 2 * batch.length)
    } catch (error) {
      const about = { calls: batch.length, cause: (error as Error).message }
      log.warn(about, 'refused calls could not be recorded')
    }
  }

  /** Writes the queue now. Resolves when every earlier record is stored or dropped. Never rejects. */
  function written(): Promise<void> {
    if (timer !== null) clearTimeout(timer)
    timer = null
    writing = writing.then(writeAll)
    return writing
  }

  return {
    add(call: RefusedCall): void {
      if (queue.length >= REFUSED_CALLS_WAITING_MAX) {
        dropped += 1
        return
      }
      queue.push(call)
      timer ??= setTimeout(() => void written(), REFUSED_CALLS_EVERY_MS).unref()
      if (queue.length === REFUSED_CALLS_AT_ONCE) void written()
    },
    written,
  }
}
