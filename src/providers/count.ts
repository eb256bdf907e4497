/** Stands for a number that limits nothing, or that cannot be read: whoever does read it may read any. */
export const LIMITLESS = Number.MAX_SAFE_INTEGER

/** A value of JSON as a whole number from 0 on. 1e3 and 8.0 are some; a text, -1 and 1.5 are left to upstream. */
export function count(value: unknown): number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : LIMITLESS
}
