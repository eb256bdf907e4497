import type { HeaderNames } from '../kernel/header-names.ts'
import { limits } from '../kernel/limits.ts'

/** Text of a request as its record keeps it: not too much of it, and without secrets. */
export function recordable<T extends string | null>(text: T, names: HeaderNames): T
export function recordable(text: string | null, { redact }: HeaderNames): string | null {
  if (text === null) return null
  return redact(text).slice(0, limits.recordedCharsMax)
}
