/** Months and days are UTC, and a call belongs to those of the instant at which it was admitted. */

export function monthOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 7)
}

export function dayOf(atMs: number): string {
  return new Date(atMs).toISOString().slice(0, 10)
}
