import type { Clock } from '../../src/kernel/clock.ts'

/** A wall clock that stands still until a test moves it, and counts its readings. */
export interface TestClock extends Clock {
  readonly asked: number
  set(iso: string): void
  advance(ms: number): void
}

export function clockAt(iso: string): TestClock {
  let nowMs = Date.parse(iso)
  let asked = 0
  return {
    nowMs() {
      asked += 1
      return nowMs
    },
    monotonicMs: () => performance.now(),
    get asked() {
      return asked
    },
    set(to) {
      nowMs = Date.parse(to)
    },
    advance(ms) {
      nowMs += ms
    },
  }
}
