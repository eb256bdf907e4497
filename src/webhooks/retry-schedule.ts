const SECOND_MS = 1_000
const MINUTE_MS = 60 * SECOND_MS
const HOUR_MS = 60 * MINUTE_MS

/** How long after a failed try the next one follows. After the last of them the delivery has failed. */
const PAUSES_MS = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  10 * HOUR_MS,
]

/** Up to a tenth more, so that what failed together is not tried again at one instant. */
const JITTER = 0.1

/** The pause after so many tries, or null after the last. `chance` is from 0 to 1. */
export function pauseAfterMs(tries: number, chance: number): number | null {
  const pause = PAUSES_MS[tries - 1]
  return pause === undefined ? null : Math.round(pause * (1 + JITTER * chance))
}
