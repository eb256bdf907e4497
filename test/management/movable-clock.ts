export function movableClock() {
  let passedMs = 0
  return {
    nowMs: () => Date.now() + passedMs,
    monotonicMs: () => performance.now(),
    advance(ms: number) {
      passedMs += ms
    },
  }
}
