/** Months and days are UTC. A call belongs to the month and day of its admission. */

/** Written out, because loading Intl's names takes 20 to 40 ms. */
export const MONTHS: readonly string[] =
  'January February March April May June July August September October November December'.split(' ')

const DAY_MS = 86_400_000

/** A cache: nearly every call has the same day as the call before it. */
let lastDay = Number.NaN
let lastDayText = ''
let lastMonthText = ''

export function monthOf(atMs: number): string {
  dayOf(atMs)
  return lastMonthText
}

export function dayOf(atMs: number): string {
  const day = Math.floor(atMs / DAY_MS)
  if (day !== lastDay) {
    lastDayText = new Date(atMs).toISOString().slice(0, 10)
    lastMonthText = lastDayText.slice(0, 7)
    lastDay = day
  }
  return lastDayText
}

export function startOfDayMs(day: string): number {
  return day === lastDayText ? lastDay * DAY_MS : Date.parse(day)
}

let lastMonthStart = Number.NaN
let lastMonthEnd = Number.NaN

/** The start of the next month, when every cap resets. */
export function nextMonthMs(atMs: number): number {
  if (atMs >= lastMonthStart && atMs < lastMonthEnd) return lastMonthEnd
  const at = new Date(atMs)
  lastMonthStart = Date.UTC(at.getUTCFullYear(), at.getUTCMonth())
  lastMonthEnd = Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1)
  return lastMonthEnd
}

export function nextDayMs(atMs: number): number {
  return (Math.floor(atMs / DAY_MS) + 1) * DAY_MS
}

/** The start of the month, or of a month before it. */
export function startOfMonthMs(atMs: number, monthsBefore = 0): number {
  const at = new Date(atMs)
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() - monthsBefore)
}
