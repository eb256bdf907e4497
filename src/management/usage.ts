import { z } from 'zod'
import { rawInteger } from '../kernel/money.ts'
import { USAGE_DIMENSIONS, type UsageDimension } from '../kernel/vocabulary.ts'
import { dayOf, monthOf } from '../ledger/calendar.ts'
import type { UsageBucket, UsageGroup, UsageSums } from '../ledger/usage-report.ts'
import { CSV_TYPE, type CsvCell, csvRow, prefersCsv } from './csv.ts'
import {
  DATE,
  date,
  isDate,
  keyId,
  limitParameter,
  type Members,
  objectOf,
  parameter,
  schemaOf,
  usd,
  usdAmount,
  wordParameter,
} from './fields.ts'
import { defineRoute, type Refused, refused, replyJson, replyWhole, UNSTORED } from './route.ts'

// The query

function dateParameter(name: string, description: string) {
  return z
    .string()
    .refine(isDate, `${name} must be a date such as 2030-01-31.`)
    .optional()
    .meta({ format: 'date', pattern: DATE.source, description })
}

const ONE_DIMENSION = `(?:${USAGE_DIMENSIONS.join('|')})`

const KEY_ID = keyId()

const usageQuery = z.strictObject({
  start: dateParameter('start', 'The first day (UTC), inclusive. The first of this month unless given.'),
  end: dateParameter(
    'end',
    'The last day (UTC), inclusive, at most 400 days from the first. Today unless given.',
  ),
  group_by: parameter(
    `group_by must be one or more of ${USAGE_DIMENSIONS.join(', ')}, with commas between them and none twice.`,
    {
      type: 'string',
      pattern: `^${ONE_DIMENSION}(?:,${ONE_DIMENSION}){0,2}$`,
      description:
        'What there is a bucket for each of: one of `day`, `model` and `key`, or several with commas between them. ' +
        'Without it there is one bucket.',
    },
    readDimensions,
  ),
  key: z
    .string()
    .refine((id) => KEY_ID.safeParse(id).success, 'key must be the id of a key, such as key_01J….')
    .optional()
    .describe('The id of a key: what was used with it alone. An API key can name no other.'),
  model: z
    .string()
    .optional()
    .describe('One model alone: the one that served, else the one asked for, as buckets have it.'),
  limit: limitParameter({ max: 10_000, fallback: 1_000 }),
  after: z
    .string()
    .optional()
    .describe(
      'The `next` of the page before. It is good for the same `group_by` only. Without `start` and `end`, its days are those ' +
        'of that page.',
    ),
  format: wordParameter(
    'format',
    ['json', 'csv'],
    'Goes before the header `Accept`, which can ask for `text/csv` too.',
  ),
})

function readDimensions(text: string): readonly UsageDimension[] | null {
  const named = text.split(',').map((name) => USAGE_DIMENSIONS.find((dimension) => dimension === name))
  const known = named.filter((dimension) => dimension !== undefined)
  return known.length === named.length && new Set(known).size === known.length ? known : null
}

const DAY_MS = 24 * 60 * 60 * 1000
const DAYS_MAX = 400

interface Days {
  readonly startDay: string
  readonly endDay: string
}

type DayRange = ({ readonly kind: 'range' } & Days) | Refused

/** The days of a report, both inclusive; by default those of this month up to today. */
function dayRange(start: string | undefined, end: string | undefined, nowMs: number): DayRange {
  const startDay = start ?? `${monthOf(nowMs)}-01`
  const endDay = end ?? dayOf(nowMs)
  // A parameter that was not sent cannot be at fault.
  const param = start === undefined ? 'end' : 'start'
  if (startDay > endDay) {
    return refused('bad_request', `start must not be after end; ${startDay} is after ${endDay}.`, param)
  }
  const days = (Date.parse(endDay) - Date.parse(startDay)) / DAY_MS + 1
  if (days <= DAYS_MAX) return { kind: 'range', startDay, endDay }
  return refused('bad_request', `start and end must be at most ${DAYS_MAX} days apart, not ${days}.`, param)
}

/** The group of a bucket, under the names of the dimensions. */
const groupValues = ({ day, model, keyId }: UsageGroup) => ({ day, model, key: keyId })

/**
 * The position of a bucket as `next` and `after` show it. The dimensions are part of a cursor, so that it cannot be used for
 * another grouping, where it would be a wrong position; and so are the days, since this month may be over before its last page.
 */
function formatUsageCursor(dimensions: readonly UsageDimension[], place: UsageGroup & Days): string {
  const values = groupValues(place)
  const position = dimensions.map((dimension) => [dimension, values[dimension]])
  const days = [
    ['start', place.startDay],
    ['end', place.endDay],
  ]
  return Buffer.from(JSON.stringify([...position, ...days])).toString('base64url')
}

/** Null: the cursor is of another grouping, or was not made by us. */
function parseUsageCursor(text: string, dimensions: readonly UsageDimension[]): (UsageGroup & Days) | null {
  let position: unknown
  try {
    position = JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    return null
  }
  if (dimensions.length === 0 || !Array.isArray(position)) return null
  const given = new Map<unknown, unknown>(
    position.filter(Array.isArray).map(([name, value]) => [name, value]),
  )
  const textOf = (name: UsageDimension | 'start' | 'end'): string | null => {
    const value = given.get(name)
    return typeof value === 'string' ? value : null
  }
  const days = { startDay: textOf('start') ?? '', endDay: textOf('end') ?? '' }
  const group = { day: textOf('day'), model: textOf('model'), keyId: textOf('key'), ...days }
  if (!isDate(days.startDay) || !isDate(days.endDay)) return null
  if (group.day !== null && !isDate(group.day)) return null
  if (group.keyId !== null && !KEY_ID.safeParse(group.keyId).success) return null
  const values = groupValues(group)
  if (dimensions.some((dimension) => values[dimension] === null)) return null
  // There is one way to write a position; this also sees whether the dimensions are those of the query.
  return formatUsageCursor(dimensions, group) === text ? group : null
}

// The answer

/** A count that may be larger than a double holds exactly; it is printed exactly all the same. */
const count = (description: string) => z.bigint().meta({ type: 'integer', minimum: 0, description })

const sums: Members<UsageSums> = {
  requests: [count('Calls that were settled.'), (of) => rawInteger(of.requests)],
  input_tokens: [count('Input tokens that were not read from a cache.'), (of) => rawInteger(of.inputTokens)],
  output_tokens: [count('Output tokens.'), (of) => rawInteger(of.outputTokens)],
  cache_read_tokens: [
    count('Input tokens that were read from a cache.'),
    (of) => rawInteger(of.cacheReadTokens),
  ],
  cache_write_tokens: [
    count('Input tokens that were written to a cache.'),
    (of) => rawInteger(of.cacheWriteTokens),
  ],
  cost_usd: [usdAmount('What the calls cost.'), (of) => usd(of.costNanos)],
  list_cost_usd: [usdAmount('What they would have cost at list price.'), (of) => usd(of.listNanos)],
  savings_usd: [usdAmount('The list cost less the cost.'), (of) => usd(of.listNanos - of.costNanos)],
  credited_usd: [
    usdAmount(
      'What was given back later; `cost_usd` still has it. Negative where a new price made calls dearer.',
    ),
    (of) => usd(of.creditedNanos),
  ],
  unpriced_requests: [
    count('Calls in which something had no price of its own.'),
    (of) => rawInteger(of.unpricedRequests),
  ],
  estimated_requests: [
    count('Calls of which upstream reported no usage, or not all of it.'),
    (of) => rawInteger(of.estimatedRequests),
  ],
}

/** The members of a bucket's group. The grouping decides which of them a bucket has. */
const groupMembers: Members<UsageBucket> = {
  day: [date().optional().describe('The day (UTC) on which the calls began.'), 'day'],
  model: [
    z
      .string()
      .optional()
      .describe('The model that served, else the one asked for; empty where there was neither.'),
    'model',
  ],
  key: [keyId().optional(), 'keyId'],
  key_name: [z.string().optional().describe('The name of the key as it is now.'), 'keyName'],
}
const DIMENSION_MEMBERS = { day: ['day'], model: ['model'], key: ['key', 'key_name'] } as const

/** The members of a bucket of this grouping, in order. */
function bucketMembers(dimensions: readonly UsageDimension[]): Members<UsageBucket> {
  const names: readonly string[] = dimensions.flatMap((dimension) => DIMENSION_MEMBERS[dimension])
  const told = Object.entries(groupMembers).filter(([name]) => names.includes(name))
  return { ...Object.fromEntries(told), ...sums }
}

const totalSchema = schemaOf(sums).meta({ id: 'usage_total', description: 'Sums over calls.' })

const bucketSchema = schemaOf({ ...groupMembers, ...sums }).meta({
  id: 'usage_bucket',
  description: 'Sums over the calls of one group, which it is told by.',
})

const usageSchema = z
  .object({
    object: z.literal('usage'),
    start: date(),
    end: date(),
    group_by: z.array(z.enum(USAGE_DIMENSIONS)).describe('As it was asked for.'),
    data: z.array(bucketSchema).describe('In the order of day, model and key.'),
    total: totalSchema.describe('Over all buckets, also those of other pages.'),
    has_more: z.boolean(),
    next: z.string().nullable().describe('What `after` takes to go on; null at the end.'),
  })
  .meta({ id: 'usage', description: 'What was used and what it cost.' })

/**
 * Usage and cost by day, model and key. Read from sums that settlement keeps by the day, so the time of a report depends on
 * the number of days, models and keys, not of calls.
 */
export const usageRoute = defineRoute({
  endpoint: 'GET /v1/usage',
  access: 'any_key',
  operationId: 'get_usage',
  summary: 'Sum up usage and cost by day, model and key',
  description:
    'An admin key sees the whole account, an API key what it has used itself. A call belongs to the day on which it ' +
    'began; calls in flight are not in it yet. Pages go on behind the last bucket shown, so calls that arrive ' +
    'meanwhile shift none. `format=csv` or `Accept: text/csv` gives the buckets as CSV; the `next` of a page is then ' +
    'in a header whose name ends in `-next` and begins like that of the request id. The last page has none.',
  query: usageQuery,
  success: {
    status: 200,
    schema: usageSchema,
    alsoAs: {
      'text/csv': 'A row for each bucket, under the names of its members. There is no row for the total.',
    },
  },
  async handle({ caller, query, exchange }, { clock, store }) {
    const groupBy = query.group_by ?? []
    const dimensions = USAGE_DIMENSIONS.filter((dimension) => groupBy.includes(dimension))
    const after = query.after === undefined ? null : parseUsageCursor(query.after, dimensions)
    if (query.after !== undefined && after === null) {
      return refused('bad_request', 'after must be the `next` of a page with the same group_by.', 'after')
    }
    const isOpen = query.start === undefined && query.end === undefined
    const range = dayRange(
      isOpen ? after?.startDay : query.start,
      isOpen ? after?.endDay : query.end,
      clock.nowMs(),
    )
    if (range.kind === 'refused') return range
    const { startDay, endDay } = range
    if (caller.kind === 'api_key' && query.key !== undefined && query.key !== caller.keyId) {
      return refused(
        'bad_request',
        'key must be the id of the key that asks; others need an admin key.',
        'key',
      )
    }
    const report = await store.readUsage({
      accountId: caller.accountId,
      keyId: caller.kind === 'api_key' ? caller.keyId : (query.key ?? null),
      model: query.model,
      startDay,
      endDay,
      groupBy: dimensions,
      after,
      limit: query.limit,
    })
    const last = report.buckets.at(-1)
    const next =
      report.more && last !== undefined ? formatUsageCursor(dimensions, { ...last, startDay, endDay }) : null
    const members = bucketMembers(dimensions)
    const data = report.buckets.map((bucket) => objectOf(members, bucket))
    const asCsv = query.format === undefined ? prefersCsv(exchange.headers) : query.format === 'csv'
    if (asCsv) {
      const rows = [Object.keys(members), ...data.map((cells) => Object.values(cells) as CsvCell[])]
      return replyWhole(200, CSV_TYPE, rows.map(csvRow).join(''), [
        'content-disposition',
        `attachment; filename="usage-${startDay}-to-${endDay}.csv"`,
        ...UNSTORED,
        ...(next === null ? [] : [`${exchange.names.prefix}next`, next]),
      ])
    }
    return replyJson(200, {
      object: 'usage',
      start: startDay,
      end: endDay,
      group_by: groupBy,
      data,
      total: objectOf(sums, report.total),
      has_more: report.more,
      next,
    })
  },
})
