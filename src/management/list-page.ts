import { z } from 'zod'
import type { Page } from '../keys/key-store.ts'

/** What a refusal says of `after`. */
export const AFTER_EXPECTED = 'after must be the `next` of an earlier page.'

export function limitParameter({ max, fallback } = { max: 1_000, fallback: 100 }) {
  return z
    .unknown()
    .transform((value, context): number => {
      const limit = typeof value === 'string' && /^\d{1,6}$/.test(value) ? Number(value) : 0
      if (limit >= 1 && limit <= max) return limit
      context.addIssue(`limit must be a whole number from 1 to ${max}.`)
      return z.NEVER
    })
    .meta({ type: 'integer', minimum: 1, maximum: max })
    .default(fallback)
    .meta({ description: 'How many rows the answer has at most.' })
}

export function listSchema<Row extends z.ZodType>(row: Row) {
  return z.object({
    object: z.literal('list'),
    data: z.array(row).meta({ description: 'Newest first.' }),
    has_more: z.boolean(),
    next: z.string().nullable().meta({ description: 'What `after` takes to go on; null at the end.' }),
  })
}

export function listObject<Row extends { readonly id: string }>(
  page: Page<Row>,
  show: (row: Row) => unknown,
): Record<string, unknown> {
  return {
    object: 'list',
    data: page.rows.map(show),
    has_more: page.more,
    next: page.more ? (page.rows.at(-1)?.id ?? null) : null,
  }
}
