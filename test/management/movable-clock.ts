export interface MovableClock {
  nowMs(): number
  monotonicMs(): number
  advance(ms: number): void
}

export function movableClock(): MovableClock {
  let passedMs = 0
  return {
    nowMs: () => Date.now() + passedMs,
    monotonicMs: () => performance.now(),
    advance(ms) {
      passedMs += ms
    },
  }
}
