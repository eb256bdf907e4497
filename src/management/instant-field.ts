import { z } from 'zod'

const INSTANT = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(?:Z|[+-]00:00)$/

/** An instant in UTC as milliseconds. What is finer than that is cut off, so that a key never outlives its expiry. */
export function instantField(name: string) {
  return z
    .unknown()
    .transform((value, context): number => {
      const ms = typeof value === 'string' ? parseInstant(value) : null
      if (ms !== null) return ms
      context.addIssue(`${name} must be a UTC timestamp such as 2030-01-31T00:00:00Z.`)
      return z.NEVER
    })
    .meta({ type: 'string', format: 'date-time', pattern: INSTANT.source })
}

export function parseInstant(text: string): number | null {
  const [, seconds, fraction = ''] = INSTANT.exec(text) ?? []
  if (seconds === undefined) return null
  const ms = Date.parse(`${seconds}.${fraction.slice(0, 3).padEnd(3, '0')}Z`)
  // Date.parse moves the 30th of February into March and 24:00 into the next day; neither was meant.
  return Number.isNaN(ms) || !new Date(ms).toISOString().startsWith(seconds) ? null : ms
}

/** An instant in an answer. */
export const instant = () => z.iso.datetime({ precision: 3 })

export function formatInstant(ms: number): string
export function formatInstant(ms: number | null): string | null
export function formatInstant(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}
