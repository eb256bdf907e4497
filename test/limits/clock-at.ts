/** A wall clock that stands still until a test moves it, and counts its readings. */
export function clockAt(iso: string) {
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
    set(to: string) {
      nowMs = Date.parse(to)
    },
    advance(ms: number) {
      nowMs += ms
    },
  }
}
