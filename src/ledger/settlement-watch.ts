/** Wakes requests that wait for a call to be settled on this node. */
export class SettlementWatch {
  readonly #waiting = new Map<string, Set<() => void>>()

  settled(requestId: string): void {
    for (const wake of this.#waiting.get(requestId) ?? []) wake()
  }

  /** `done` resolves when the call is settled here or the time is over. */
  wait(requestId: string, forMs: number): { readonly done: Promise<void>; stop(): void } {
    const { promise: done, resolve } = Promise.withResolvers<void>()
    const wakers = this.#waiting.get(requestId) ?? new Set()
    const stop = () => {
      clearTimeout(timer)
      wakers.delete(stop)
      if (wakers.size === 0) this.#waiting.delete(requestId)
      resolve()
    }
    const timer = setTimeout(stop, forMs)
    wakers.add(stop)
    this.#waiting.set(requestId, wakers)
    return { done, stop }
  }
}
