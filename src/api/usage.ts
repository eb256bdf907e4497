import { z } from 'zod'
import { USAGE_DIMENSIONS, type UsageDimension } from '../kernel/vocabulary.ts'
import * as f from './fields.ts'

const ONE_DIMENSION = `(?:${USAGE_DIMENSIONS.join('|')})`
const ROWS_MAX = 10_000

export const usageQuery = z.strictObject({
  start: f.dateParameter('start', 'The first day (UTC), inclusive. Default: the first of this month.'),
  end: f.dateParameter(
    'end',
    'The last day (UTC), inclusive, at most 400 days after the first. Default: today.',
  ),
  group_by: f.parameter(
    `group_by must be one or more of ${USAGE_DIMENSIONS.join(', ')}, separated by commas, none twice, and hour in place of day.`,
    {
      type: 'string',
      pattern: `^${ONE_DIMENSION}(?:,${ONE_DIMENSION}){0,4}$`,
      description:
        'One bucket per `day`, `model`, `key` or `person`, or per combination of them. For at most 2 days also `hour`, in place of `day`. Absent: one bucket.',
    },
    readDimensions,
  ),
  key: f
    .idOf('key', 'key must be the id of a key, such as key_01J….')
    .optional()
    .describe('Only the usage of this key id. An API key can name only itself.'),
  person: f.personParameter('Only the usage of the keys of this person.'),
  model: f.optionalText(
    'Only this model, by the name in the buckets: the model that served the call or, if unknown, the requested model.',
  ),
  limit: f.optionalLimit(
    ROWS_MAX,
    'Maximum buckets per answer. JSON: 1,000 by default. CSV: all by default.',
  ),
  after: f.optionalText(
    'The `next` of the previous page, with the same `group_by`. It includes `start` and `end`.',
  ),
  format: f.choiceParameter(
    'format',
    ['json', 'csv'],
    'Overrides the header `Accept`, which can ask for `text/csv`.',
  ),
})

function readDimensions(text: string): readonly UsageDimension[] | null {
  const named = text.split(',').map((name) => USAGE_DIMENSIONS.find((dimension) => dimension === name))
  const known = named.filter((dimension) => dimension !== undefined)
  const isClear = !(known.includes('day') && known.includes('hour')) && new Set(known).size === known.length
  return known.length === named.length && isClear ? known : null
}

/** Sums can exceed the exact range of doubles, so they are printed from integers. */
const sum = (description: string) => z.number().min(0).meta({ type: 'integer', description })

const sums = {
  requests: sum('Calls that were settled.'),
  input_tokens: sum('Input tokens that were neither read from a cache nor written to one.'),
  output_tokens: sum('Output tokens.'),
  cache_read_tokens: sum('Input tokens that were read from a cache.'),
  cache_write_tokens: sum('Input tokens that were written to a cache.'),
  cost_usd: f.usdAmount('The cost of the calls.'),
  list_cost_usd: f.usdAmount('The cost of the calls at list price.'),
  savings_usd: f.usdAmount('List cost minus cost.'),
  credited_usd: f.usdAmount(
    'Credited back for these calls; `cost_usd` still includes it. Negative if a rerate raised the cost. (In a balance, ' +
      '`credited_usd` is all credit ever added.)',
  ),
  unpriced_requests: sum('Calls with usage that has no listed price.'),
  estimated_requests: sum('Calls for which upstream reported no usage, or only part of it.'),
}

export const usageTotalSchema = z.object(sums).meta({ id: 'usage_total', description: 'Sums over calls.' })
export type UsageTotal = z.infer<typeof usageTotalSchema>

export const usageBucketSchema = z
  .object({
    day: f.date().optional().describe('The day (UTC) on which the calls began.'),
    hour: f.instant().optional().describe('The start of the hour (UTC) in which the calls began.'),
    model: f.optionalText('The model that served, else the one requested; empty without either.'),
    key: f.idOf('key').optional(),
    key_name: f.optionalText('The current name of the key.'),
    metadata: f.metadata().optional().describe('The current metadata of the key.'),
    person: f.idOf('person').nullable().optional().describe('Null: the keys of services.'),
    person_email: f.stringOrNull().optional(),
    account: f.idOf('account').optional(),
    account_name: f.optionalText('The current name of the account.'),
    ...sums,
  })
  .meta({ id: 'usage_bucket', description: 'Sums over the calls of one group.' })
export type UsageBucketObject = z.infer<typeof usageBucketSchema>

export const usageSchema = z
  .object({
    object: z.literal('usage'),
    start: f.date(),
    end: f.date(),
    group_by: z.array(z.enum(USAGE_DIMENSIONS)),
    data: z.array(usageBucketSchema).describe('Ordered by day, model and key.'),
    total: usageTotalSchema.describe('Over all buckets, including those of other pages.'),
    has_more: z.boolean(),
    next: f.stringOrNull('Send it as `after` to read the next page; null on the last page.'),
  })
  .meta({ id: 'usage', description: 'Usage and cost.' })
export type Usage = z.infer<typeof usageSchema>
