/** For `--import`: a clock off by CLOCK_SHIFT_MS. Timers use the monotonic clock, which is right. */
const shiftMs = Number(process.env['CLOCK_SHIFT_MS'] ?? 0)
const trueNow = Date.now
const TrueDate = Date

globalThis.Date = class extends TrueDate {
  constructor(...given: [] | [number | string | Date]) {
    if (given.length === 0) super(trueNow() + shiftMs)
    else super(...given)
  }

  static override now(): number {
    return trueNow() + shiftMs
  }
} as DateConstructor
