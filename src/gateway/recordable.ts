import type { HeaderNames } from '../kernel/header-names.ts'
import { limits } from '../kernel/limits.ts'

/**
 * Text of a request as its record keeps it: not too much of it, and without our own keys, which people do put into
 * paths and user agents by mistake.
 */
export function recordable<T extends string | null>(text: T, names: HeaderNames): T
export function recordable(text: string | null, { keyPattern }: HeaderNames): string | null {
  if (text === null) return null
  return text.replace(keyPattern, '$1…').slice(0, limits.recordedCharsMax)
}
