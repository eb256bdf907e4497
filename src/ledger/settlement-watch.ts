/** Wakes requests that wait for a call to be settled on this node. */
export interface SettlementWatch {
  settled(requestId: string): void
  /** Resolves when the call is settled here, or after the time, whichever comes first. */
  wait(requestId: string, forMs: number): { readonly done: Promise<void>; stop(): void }
}

export function createSettlementWatch(): SettlementWatch {
  const waiting = new Map<string, Set<() => void>>()
  return {
    settled(requestId) {
      for (const wake of waiting.get(requestId) ?? []) wake()
    },
    wait(requestId, forMs) {
      const { promise: done, resolve } = Promise.withResolvers<void>()
      const wakers = waiting.get(requestId) ?? new Set()
      const timer = setTimeout(stop, forMs)
      wakers.add(stop)
      waiting.set(requestId, wakers)
      function stop(): void {
        clearTimeout(timer)
        wakers.delete(stop)
        if (wakers.size === 0) waiting.delete(requestId)
        resolve()
      }
      return { done, stop }
    },
  }
}
