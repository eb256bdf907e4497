import { z } from 'zod'
import { USAGE_DIMENSIONS, type UsageDimension } from '../ledger/usage-report.ts'
import { limitParameter } from './list-page.ts'
import { dateParameter } from './usage-range.ts'

const FORMATS = ['json', 'csv'] as const

/** A list with commas. */
function groupByParameter() {
  const one = `(?:${USAGE_DIMENSIONS.join('|')})`
  return z
    .unknown()
    .transform((value, context): readonly UsageDimension[] => {
      const dimensions = typeof value === 'string' ? readDimensions(value) : null
      if (dimensions !== null) return dimensions
      context.addIssue(
        `group_by must be one or more of ${USAGE_DIMENSIONS.join(', ')}, with commas between them and none twice.`,
      )
      return z.NEVER
    })
    .optional()
    .meta({
      type: 'string',
      pattern: `^${one}(?:,${one}){0,2}$`,
      description:
        'What there is a bucket for each of: one of `day`, `model` and `key`, or several with commas between them. ' +
        'Without it there is one bucket.',
    })
}

function readDimensions(text: string): readonly UsageDimension[] | null {
  const named = text.split(',').map((name) => USAGE_DIMENSIONS.find((dimension) => dimension === name))
  const known = named.filter((dimension) => dimension !== undefined)
  return known.length === named.length && new Set(known).size === known.length ? known : null
}

export const usageQuery = z.strictObject({
  start: dateParameter('start', 'The first day (UTC), inclusive. The first of this month unless given.'),
  end: dateParameter(
    'end',
    'The last day (UTC), inclusive, at most 400 days from the first. Today unless given.',
  ),
  group_by: groupByParameter(),
  limit: limitParameter({ max: 10_000, fallback: 1_000 }),
  after: z.string().optional().meta({
    description: 'The `next` of the page before. It is good for the same `group_by` only.',
  }),
  format: z
    .enum(FORMATS, `format must be one of ${FORMATS.join(', ')}.`)
    .optional()
    .meta({ description: 'Goes before the header `Accept`, which can ask for `text/csv` too.' }),
})
