import { DAY_MS } from './member-limits.ts'

/** Crockford's digits at the end of an id are random. */
const RANDOM_CHARS = 6
const DIGITS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** Each person has a time of the day, so that the checks of all people spread over the day. */
export function nextCheckMs(id: string, nowMs: number): number {
  const digits = id.slice(-RANDOM_CHARS).split('')
  const random = digits.reduce((sum, digit) => sum * 32 + Math.max(0, DIGITS.indexOf(digit)), 0)
  const timeMs = (random / 32 ** RANDOM_CHARS) * DAY_MS
  return nowMs + ((((timeMs - nowMs) % DAY_MS) + DAY_MS) % DAY_MS || DAY_MS)
}
