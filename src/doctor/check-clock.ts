import { inTime } from './amounts.ts'
import type { ClockReading } from './ask-upstream.ts'
import { type Check, ok, problem, skipped, warning } from './check.ts'

const WARNING_MS = 5_000
const PROBLEM_MS = 60_000
/** A Date header tells whole seconds: on average it is half a second behind. */
const HALF_SECOND_MS = 500

export interface HostClock {
  readonly host: string
  readonly reading: ClockReading
}

/** By the upstream that agrees best: a server of one's own may be wrong where a provider is right. */
export function checkClock(readings: readonly HostClock[]): Check {
  const [best] = readings
    .map(({ host, reading }) => ({ host, aheadMs: aheadOf(reading) }))
    .sort((a, b) => Math.abs(a.aheadMs) - Math.abs(b.aheadMs))
  if (best === undefined) return skipped('clock', 'no upstream told its time')
  const { host, aheadMs } = best
  const offMs = Math.abs(aheadMs)
  if (offMs <= WARNING_MS) return ok('clock', `agrees with ${host}`)
  const found = `this machine is ${inTime(offMs)} ${aheadMs > 0 ? 'ahead of' : 'behind'} ${host}`
  const todo = 'Set the clock and keep it right with NTP: months, expiries and prices go by it.'
  return offMs > PROBLEM_MS ? problem('clock', found, todo) : warning('clock', found, todo)
}

/** At least so much: the answer may have been written at any moment between the question and its arrival. */
function aheadOf({ upstreamMs, beforeMs, afterMs }: ClockReading): number {
  const tellsMs = upstreamMs + HALF_SECOND_MS
  if (beforeMs > tellsMs) return beforeMs - tellsMs
  return afterMs < tellsMs ? afterMs - tellsMs : 0
}
