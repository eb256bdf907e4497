import { z } from 'zod'
import { fieldsOf } from '../api/field-names.ts'
import { parseInstant, type Written } from '../api/fields.ts'
import {
  type Usage,
  type UsageBucketObject,
  type UsageTotal,
  usageQuery,
  usageTotalSchema,
} from '../api/usage.ts'
import { USAGE_DIMENSIONS, type UsageDimension } from '../kernel/vocabulary.ts'
import { dayOf, monthOf } from '../ledger/calendar.ts'
import type { UsageBucket, UsageGroup, UsageQuery, UsageSums } from '../ledger/usage-report.ts'
import { formatOf, replyExport } from './csv.ts'
import { personFilter } from './people.ts'
import { defineRoute, invalid, type OwnRequest, type Refused, usd } from './route.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const DAYS_MAX = 400
const HOURLY_DAYS_MAX = 2

interface Days {
  readonly startDay: string
  readonly endDay: string
}

type DayRange = ({ readonly kind: 'range' } & Days) | Refused

/** Both days are inclusive. By default, the range is this month up to today. */
function dayRange(start: string | undefined, end: string | undefined, nowMs: number): DayRange {
  const startDay = start ?? `${monthOf(nowMs)}-01`
  const endDay = end ?? dayOf(nowMs)
  // The error must name a parameter that was sent.
  const param = start === undefined ? 'end' : 'start'
  if (startDay > endDay) {
    return invalid(param, `start must not be after end; ${startDay} is after ${endDay}.`)
  }
  const days = daysOf({ startDay, endDay })
  if (days <= DAYS_MAX) return { kind: 'range', startDay, endDay }
  return invalid(param, `start and end must be at most ${DAYS_MAX} days apart, not ${days}.`)
}

function daysOf({ startDay, endDay }: Days): number {
  return (Date.parse(endDay) - Date.parse(startDay)) / DAY_MS + 1
}

/** The cursor has the days, because the month may end before the last page, and the dimensions, to check `group_by`. */
function formatUsageCursor(dimensions: readonly UsageDimension[], cursor: UsageGroup & Days): string {
  const { startDay, endDay, day, hour, model, keyId, personId, ofAccountId } = cursor
  const values = { day, hour, model, key: keyId, person: personId ?? '', account: ofAccountId }
  const position = dimensions.map((dimension) => [dimension, values[dimension]] as const)
  const text = JSON.stringify({ start: startDay, end: endDay, ...Object.fromEntries(position) })
  return Buffer.from(text).toString('base64url')
}

const cursorSchema = z.partialRecord(z.enum(['start', 'end', ...USAGE_DIMENSIONS]), z.string())

function parseUsageCursor(text: string, dimensions: readonly UsageDimension[]): (UsageGroup & Days) | null {
  let given: unknown
  try {
    given = JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    return null
  }
  const { start = '', end = '', ...group } = cursorSchema.safeParse(given).data ?? {}
  const { day = null, hour = null, model = null, key: keyId = null, account: ofAccountId = null } = group
  const personId = group.person === '' ? null : (group.person ?? null)
  const cursor = { startDay: start, endDay: end, day, hour, model, keyId, personId, ofAccountId }
  const dates = [start, end, day ?? start].map((date) => `${date}T00:00:00Z`)
  const areDates = [...dates, hour ?? dates[0]].every((date = '') => parseInstant(date) !== null)
  // Accept only the canonical form, which also checks the dimensions.
  return areDates && dimensions.length > 0 && formatUsageCursor(dimensions, cursor) === text ? cursor : null
}

function sumsObject(of: UsageSums): Written<UsageTotal> {
  return {
    ...fieldsOf(of, ['requests', 'inputTokens', 'outputTokens', 'cacheReadTokens', 'cacheWriteTokens']),
    cost_usd: usd(of.costNanos),
    list_cost_usd: usd(of.listNanos),
    savings_usd: usd(of.listNanos - of.costNanos),
    ...fieldsOf(of, ['creditedNanos', 'unpricedRequests', 'estimatedRequests']),
  }
}

/** Leaves out the dimensions that the query does not group by. */
function bucketObject(
  bucket: UsageBucket,
  dimensions: readonly UsageDimension[],
): Written<UsageBucketObject> {
  const { day, hour, model, keyId, keyName, metadata, ofAccountId, accountName } = bucket
  return {
    ...(day === null ? {} : { day }),
    ...(hour === null ? {} : { hour }),
    ...(model === null ? {} : { model }),
    ...(keyId === null ? {} : { key: keyId, key_name: keyName ?? '', metadata: metadata ?? {} }),
    ...(dimensions.includes('person') ? { person: bucket.personId, person_email: bucket.personEmail } : {}),
    ...(ofAccountId === null ? {} : { account: ofAccountId, account_name: accountName ?? '' }),
    ...sumsObject(bucket),
  }
}

const PAGE_DEFAULT = 1_000
const EXPORT_PAGE = 10_000

const DIMENSION_COLUMNS: Readonly<Record<UsageDimension, readonly string[]>> = {
  day: ['day'],
  hour: ['hour'],
  model: ['model'],
  key: ['key', 'key_name', 'metadata'],
  person: ['person', 'person_email'],
  account: ['account', 'account_name'],
}

/** Reads daily sums, so the time depends on the number of days, models and keys, not of calls, except for hours. */
export const getUsage = defineRoute({
  summary: 'Sum up usage and cost by day, model and key',
  description:
    'An admin key sees the whole account, an API key its own usage. A call belongs to the day of its admission; calls in ' +
    'flight are not included yet. `format=csv` or `Accept: text/csv` answers the buckets as CSV. Without `limit`, the CSV contains all of them.',
  query: usageQuery,
  alsoAs: { 'text/csv': 'One row per bucket, with the names of its members as the header. No total.' },
  async handle(request, { store }) {
    const asked = readQuery(request)
    if ('kind' in asked) return asked
    const { query, exchange } = request
    const { startDay, endDay, groupBy: dimensions } = asked
    const toObject = (bucket: UsageBucket) => bucketObject(bucket, dimensions)
    if (formatOf(query.format, exchange.headers) === 'csv')
      return replyExport<UsageGroup>('csv', {
        name: `usage-${startDay}-to-${endDay}`,
        columns: [
          ...dimensions.flatMap((dimension) => DIMENSION_COLUMNS[dimension]),
          ...Object.keys(usageTotalSchema.shape),
        ],
        after: asked.after,
        limit: query.limit,
        pageMax: EXPORT_PAGE,
        async read(from, limit) {
          const { buckets, more } = await store.readUsage({ ...asked, after: from, limit })
          return { rows: buckets.map(toObject), next: more ? (buckets.at(-1) ?? null) : null }
        },
      })
    const report = await store.readUsage({ ...asked, limit: query.limit ?? PAGE_DEFAULT })
    const last = report.buckets.at(-1)
    return {
      object: 'usage',
      start: startDay,
      end: endDay,
      group_by: query.group_by ?? [],
      data: report.buckets.map(toObject),
      total: sumsObject(report.total),
      has_more: report.more,
      next:
        report.more && last !== undefined
          ? formatUsageCursor(dimensions, { ...last, startDay, endDay })
          : null,
    } satisfies Written<Usage>
  },
})

function readQuery(request: OwnRequest<z.infer<typeof usageQuery>>): Omit<UsageQuery, 'limit'> | Refused {
  const { caller, role, listedAccountId: accountId, query, atMs } = request
  const isKey = caller.kind === 'api_key'
  const person = personFilter(request.ownPersonId, query.person)
  if (person.kind === 'refused') return person
  const groupBy = query.group_by ?? []
  if (groupBy.includes('person') && isKey)
    return invalid(
      'group_by',
      'group_by must be one or more of day, hour, model, key; person is for admin keys and people.',
    )
  if (groupBy.includes('account') && role !== 'operator')
    return invalid(
      'group_by',
      'group_by must be one or more of day, hour, model, key, person; account is for operators.',
    )
  const dimensions = USAGE_DIMENSIONS.filter((dimension) => groupBy.includes(dimension))
  const after = query.after === undefined ? null : parseUsageCursor(query.after, dimensions)
  if (query.after !== undefined && after === null)
    return invalid('after', 'after must be the `next` value of a previous page with the same group_by.')
  const isUndated = query.start === undefined && query.end === undefined
  const { start, end } = isUndated ? { start: after?.startDay, end: after?.endDay } : query
  const range = dayRange(start, end, atMs)
  if (range.kind === 'refused') return range
  if (groupBy.includes('hour') && daysOf(range) > HOURLY_DAYS_MAX)
    return invalid(
      'group_by',
      `group_by=hour is for at most ${HOURLY_DAYS_MAX} days: set start and end, or group by day.`,
    )
  if (isKey && query.key !== undefined && query.key !== caller.keyId)
    return invalid(
      'key',
      'key must be the id of the key that sends the request. For other keys, use an admin key.',
    )
  const { startDay, endDay } = range
  const keyId = isKey ? caller.keyId : (query.key ?? null)
  const { model } = query
  return { accountId, keyId, personId: person.id, model, startDay, endDay, groupBy: dimensions, after }
}
