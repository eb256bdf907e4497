import { z } from 'zod'
import { rawInteger } from '../kernel/money.ts'
import {
  USAGE_DIMENSIONS,
  type UsageBucket,
  type UsageDimension,
  type UsageSums,
} from '../ledger/usage-report.ts'
import type { CsvCell } from './csv.ts'
import { keyId } from './key-object.ts'
import { date } from './usage-range.ts'
import { usd, usdAmount } from './usd.ts'

/** A count that can pass what a double holds; it is printed exactly all the same. */
const count = (description: string) => z.bigint().meta({ type: 'integer', minimum: 0, description })

const sums = {
  requests: count('Calls that were settled.'),
  input_tokens: count('Input tokens that were not read from a cache.'),
  output_tokens: count('Output tokens.'),
  cache_read_tokens: count('Input tokens that were read from a cache.'),
  cache_write_tokens: count('Input tokens that were written to a cache.'),
  cost_usd: usdAmount('What the calls cost.'),
  list_cost_usd: usdAmount('What they would have cost at list price.'),
  savings_usd: usdAmount('The list cost less the cost.'),
  credited_usd: usdAmount(
    'What was given back later; `cost_usd` still has it. Negative where a new price made calls dearer.',
  ),
  unpriced_requests: count('Calls in which something had no price of its own.'),
  estimated_requests: count('Calls of which upstream reported no usage, or not all of it.'),
}

const totalSchema = z.object(sums).meta({ id: 'usage_total', description: 'Sums over calls.' })

const bucketSchema = z
  .object({
    day: date().optional().meta({ description: 'The day (UTC) on which the calls began.' }),
    model: z.string().optional().meta({
      description: 'The model that served, else the one asked for; empty where there was neither.',
    }),
    key: keyId().optional(),
    key_name: z.string().optional().meta({ description: 'The name of the key as it is now.' }),
    ...sums,
  })
  .meta({ id: 'usage_bucket', description: 'Sums over the calls of one group, which it is told by.' })

export const usageSchema = z
  .object({
    object: z.literal('usage'),
    start: date(),
    end: date(),
    group_by: z.array(z.enum(USAGE_DIMENSIONS)).meta({ description: 'As it was asked for.' }),
    data: z.array(bucketSchema).meta({ description: 'In the order of day, model and key.' }),
    total: totalSchema.meta({ description: 'Over all buckets, also those of other pages.' }),
    has_more: z.boolean(),
    next: z.string().nullable().meta({ description: 'What `after` takes to go on; null at the end.' }),
  })
  .meta({ id: 'usage', description: 'What was used and what it cost.' })

export type UsageCells = Readonly<Record<string, Exclude<CsvCell, boolean>>>

const SUM_NAMES = Object.keys(sums)
const DIMENSION_NAMES = { day: ['day'], model: ['model'], key: ['key', 'key_name'] } as const

/** The members of a bucket, in order. */
export function usageColumns(dimensions: readonly UsageDimension[]): readonly string[] {
  return [...dimensions.flatMap((dimension) => DIMENSION_NAMES[dimension]), ...SUM_NAMES]
}

/** A bucket with the dimensions that it is grouped by, and no others. */
export function usageBucket(bucket: UsageBucket): UsageCells {
  return {
    ...(bucket.day === null ? {} : { day: bucket.day }),
    ...(bucket.model === null ? {} : { model: bucket.model }),
    ...(bucket.keyId === null ? {} : { key: bucket.keyId, key_name: bucket.keyName }),
    ...usageSums(bucket),
  }
}

export function usageSums(of: UsageSums): Readonly<Record<keyof typeof sums, UsageCells[string]>> {
  return {
    requests: rawInteger(of.requests),
    input_tokens: rawInteger(of.inputTokens),
    output_tokens: rawInteger(of.outputTokens),
    cache_read_tokens: rawInteger(of.cacheReadTokens),
    cache_write_tokens: rawInteger(of.cacheWriteTokens),
    cost_usd: usd(of.costNanos),
    list_cost_usd: usd(of.listNanos),
    savings_usd: usd(of.listNanos - of.costNanos),
    credited_usd: usd(of.creditedNanos),
    unpriced_requests: rawInteger(of.unpricedRequests),
    estimated_requests: rawInteger(of.estimatedRequests),
  }
}
