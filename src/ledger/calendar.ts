/** Months and days are UTC, and a call belongs to those of the instant at which it was admitted. */

const DAY_MS = 86_400_000

/** The day that was asked for last: nearly every call is of the same day as the one before it. */
let lastDay = Number.NaN
let lastDayText = ''

export function monthOf(atMs: number): string {
  return dayOf(atMs).slice(0, 7)
}

export function dayOf(atMs: number): string {
  const day = Math.floor(atMs / DAY_MS)
  if (day !== lastDay) {
    lastDayText = new Date(atMs).toISOString().slice(0, 10)
    lastDay = day
  }
  return lastDayText
}

/** The end of the month that this instant is in: every cap is whole again from then on. */
export function nextMonthMs(atMs: number): number {
  const at = new Date(atMs)
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1)
}

export function nextDayMs(atMs: number): number {
  return (Math.floor(atMs / DAY_MS) + 1) * DAY_MS
}
