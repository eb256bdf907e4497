import { refuse } from '../kernel/errors.ts'
import { USAGE_DIMENSIONS, type UsageDimension, type UsageReport } from '../ledger/usage-report.ts'
import { CSV_TYPE, csvRow } from './csv.ts'
import { prefersCsv } from './prefers-csv.ts'
import { replyUnstored } from './reply-unstored.ts'
import { defineRoute, type OwnReply, replyRefused } from './route.ts'
import { formatUsageCursor, parseUsageCursor } from './usage-cursor.ts'
import { usageBucket, usageColumns, usageSchema, usageSums } from './usage-object.ts'
import { usageQuery } from './usage-query.ts'
import { dayRange } from './usage-range.ts'

/**
 * What was spent on what. Read from sums that settlement keeps by the day, so its time depends on the number of days,
 * models and keys, not of calls.
 */
export const getUsage = defineRoute({
  method: 'GET',
  template: '/v1/usage',
  access: 'any_key',
  operationId: 'get_usage',
  summary: 'Sum up usage and cost by day, model and key',
  description:
    'An admin key sees the whole account, an API key what it has used itself. A call belongs to the day on which it ' +
    'began; calls in flight are not in it yet. Pages go on behind the last bucket shown, so calls that arrive ' +
    'meanwhile shift none. `format=csv` or `Accept: text/csv` gives the buckets as CSV; the `next` of a page is then ' +
    'in a header whose name ends in `-next` and begins like that of the request id. The last page has none.',
  query: usageQuery,
  body: null,
  repeatable: false,
  success: {
    status: 200,
    schema: usageSchema,
    alsoAs: {
      'text/csv': 'A row for each bucket, under the names of its members. There is no row for the total.',
    },
  },
  errors: ['bad_request'],
  async handle({ caller, query, exchange }, { clock, store }) {
    const range = dayRange(query.start, query.end, clock.nowMs())
    if (range.kind === 'refused') return replyRefused(range.refusal)
    const { startDay, endDay } = range
    const groupBy = query.group_by ?? []
    const dimensions = USAGE_DIMENSIONS.filter((dimension) => groupBy.includes(dimension))
    const after = query.after === undefined ? null : parseUsageCursor(query.after, dimensions)
    if (query.after !== undefined && after === null) {
      const message = 'after must be the `next` of a page with the same group_by.'
      return replyRefused(refuse('bad_request', message, { param: 'after' }))
    }
    const report = await store.readUsage({
      accountId: caller.accountId,
      keyId: caller.kind === 'api_key' ? caller.keyId : null,
      startDay,
      endDay,
      groupBy: dimensions,
      after,
      limit: query.limit,
    })
    const next = nextOf(report, dimensions)
    const asCsv = query.format === undefined ? prefersCsv(exchange.headers) : query.format === 'csv'
    if (asCsv) {
      const fileName = `usage-${startDay}-to-${endDay}.csv`
      const going = next === null ? [] : [`${exchange.names.prefix}next`, next]
      return replyCsv(report, dimensions, fileName, going)
    }
    return replyUnstored(200, {
      object: 'usage',
      start: startDay,
      end: endDay,
      group_by: groupBy,
      data: report.buckets.map(usageBucket),
      total: usageSums(report.total),
      has_more: report.more,
      next,
    })
  },
})

function nextOf({ more, buckets }: UsageReport, dimensions: readonly UsageDimension[]): string | null {
  const last = buckets.at(-1)
  return more && last !== undefined ? formatUsageCursor(dimensions, last) : null
}

function replyCsv(
  { buckets }: UsageReport,
  dimensions: readonly UsageDimension[],
  fileName: string,
  headers: readonly string[],
): OwnReply {
  const columns = usageColumns(dimensions)
  let text = csvRow(columns)
  for (const bucket of buckets) {
    const cells = usageBucket(bucket)
    text += csvRow(columns.map((column) => cells[column] ?? null))
  }
  const body = Buffer.from(text)
  return {
    kind: 'reply',
    reply: {
      status: 200,
      headers: [
        'content-type',
        CSV_TYPE,
        'content-length',
        String(body.length),
        'content-disposition',
        `attachment; filename="${fileName}"`,
        'cache-control',
        'no-store',
        ...headers,
      ],
      body,
    },
  }
}
