import { z } from 'zod'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { dayOf, monthOf } from '../ledger/calendar.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const DAYS_MAX = 400
const DATE = /^\d{4}-\d\d-\d\d$/

export function dateParameter(name: string, description: string) {
  return z
    .string()
    .refine(isDate, `${name} must be a date such as 2030-01-31.`)
    .optional()
    .meta({ format: 'date', pattern: DATE.source, description })
}

/** A day in an answer. */
export const date = () => z.string().regex(DATE).meta({ format: 'date' })

export function isDate(text: string): boolean {
  if (!DATE.test(text)) return false
  const ms = Date.parse(`${text}T00:00:00Z`)
  // Date.parse moves the 30th of February into March.
  return !Number.isNaN(ms) && dayOf(ms) === text
}

export type DayRange =
  | { readonly kind: 'range'; readonly startDay: string; readonly endDay: string }
  | { readonly kind: 'refused'; readonly refusal: Refusal }

/** The days of a report, both inclusive; without word on them, those of this month. */
export function dayRange(start: string | undefined, end: string | undefined, nowMs: number): DayRange {
  const startDay = start ?? `${monthOf(nowMs)}-01`
  const endDay = end ?? dayOf(nowMs)
  // What was not sent cannot be at fault.
  const param = start === undefined ? 'end' : 'start'
  const refused = (message: string): DayRange => ({
    kind: 'refused',
    refusal: refuse('bad_request', message, { param }),
  })
  if (startDay > endDay) return refused(`start must not be after end; ${startDay} is after ${endDay}.`)
  const days = (Date.parse(endDay) - Date.parse(startDay)) / DAY_MS + 1
  if (days > DAYS_MAX) return refused(`start and end must be at most ${DAYS_MAX} days apart, not ${days}.`)
  return { kind: 'range', startDay, endDay }
}
