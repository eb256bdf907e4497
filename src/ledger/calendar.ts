/** Months and days are UTC, and a call belongs to those of the instant at which it was admitted. */

export function monthOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 7)
}

export function dayOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10)
}

/** When the month ends that this instant is in, and every cap is whole again. */
export function nextMonthMs(atMs: number): number {
  const at = new Date(atMs)
  return Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + 1)
}
