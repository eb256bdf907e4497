import type { UsageDimension, UsageGroup } from '../ledger/usage-report.ts'
import { isDate } from './usage-range.ts'

const KEY_ID = /^key_[0-9A-HJKMNP-TV-Z]{26}$/

/**
 * The place of a bucket as `next` and `after` show it. The dimensions are part of it, so that it cannot be used for
 * another grouping, where it would be a place that was never meant.
 */
export function formatUsageCursor(dimensions: readonly UsageDimension[], group: UsageGroup): string {
  const { day, model, keyId } = group
  const values = { day, model, key: keyId }
  const place = dimensions.map((dimension) => [dimension, values[dimension]])
  return Buffer.from(JSON.stringify(place)).toString('base64url')
}

/** Null: it is not of this grouping, or nothing that we made. */
export function parseUsageCursor(text: string, dimensions: readonly UsageDimension[]): UsageGroup | null {
  let place: unknown
  try {
    place = JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    return null
  }
  if (dimensions.length === 0 || !Array.isArray(place)) return null
  const values = new Map<unknown, unknown>(place.filter(Array.isArray).map(([name, value]) => [name, value]))
  const textOf = (dimension: UsageDimension): string | null => {
    const value = values.get(dimension)
    return typeof value === 'string' ? value : null
  }
  const group = { day: textOf('day'), model: textOf('model'), keyId: textOf('key') }
  if (group.day !== null && !isDate(group.day)) return null
  if (group.keyId !== null && !KEY_ID.test(group.keyId)) return null
  // There is one way to write a place; this also sees whether the dimensions are those of the query.
  return formatUsageCursor(dimensions, group) === text && isWhole(group, dimensions) ? group : null
}

function isWhole({ day, model, keyId }: UsageGroup, dimensions: readonly UsageDimension[]): boolean {
  const values = { day, model, key: keyId }
  return dimensions.every((dimension) => values[dimension] !== null)
}
