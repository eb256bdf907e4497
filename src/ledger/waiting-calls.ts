import type { CallRecord } from './call.ts'
import type { CallFilter } from './request-log.ts'

/** The calls that wait for room under a cap or for credit, on this node. They are in no store. */
export class WaitingCalls {
  readonly #calls = new Map<string, CallRecord>()
  readonly #ofKey = new Map<string, number>()

  add(call: CallRecord): void {
    this.#calls.set(call.requestId, call)
    this.#ofKey.set(call.keyId, this.countOf(call.keyId) + 1)
  }

  remove(requestId: string): void {
    const call = this.#calls.get(requestId)
    if (call === undefined) return
    this.#calls.delete(requestId)
    const left = this.countOf(call.keyId) - 1
    if (left === 0) this.#ofKey.delete(call.keyId)
    else this.#ofKey.set(call.keyId, left)
  }

  find(requestId: string): CallRecord | null {
    return this.#calls.get(requestId) ?? null
  }

  countOf(keyId: string): number {
    return this.#ofKey.get(keyId) ?? 0
  }

  /** Newest first. What is known only of calls that have ended matches none of these. */
  list(filter: CallFilter): readonly CallRecord[] {
    const { accountId, keyId, fromMs, toMs, model, status, minCostNanos, flag } = filter
    if (status !== null || minCostNanos !== null || flag !== null) return []
    return [...this.#calls.values()]
      .filter(
        (call) =>
          call.accountId === accountId &&
          (keyId === null || call.keyId === keyId) &&
          (fromMs === null || call.startedAtMs >= fromMs) &&
          (toMs === null || call.startedAtMs < toMs) &&
          (model === null || call.modelAsked === model),
      )
      .sort((a, b) => b.startedAtMs - a.startedAtMs || (a.requestId < b.requestId ? 1 : -1))
  }
}
