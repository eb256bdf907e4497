import {
  USAGE_DIMENSIONS,
  type UsageBucket,
  type UsageDimension,
  type UsageGroup,
  type UsageQuery,
  type UsageSums,
} from '../../ledger/usage-report.ts'
import type { Store } from '../store.ts'
import { Bound } from './bound.ts'
import type { Database } from './database.ts'
import { present, type Row, text, textOrNull } from './rows.ts'

const COLUMN = { day: 'day', model: 'model', key: 'key_id' } as const satisfies Record<UsageDimension, string>

/** A sum of int8 is numeric: it has no limit, and comes as text. */
const SUMS = [
  'requests',
  'input_tokens',
  'output_tokens',
  'cache_read_tokens',
  'cache_write_tokens',
  'cost_nanos',
  'list_nanos',
  'credited_nanos',
  'unpriced_requests',
  'estimated_requests',
]
  .map((column) => `coalesce(sum(${column}), 0)::text AS ${column}`)
  .join(', ')

/** Reports on usage: read from the daily sums alone, so that they cost the same after a thousand calls and a billion. */
export function usageOperation(db: Database): Pick<Store, 'readUsage'> {
  async function readTotal(query: UsageQuery): Promise<UsageSums> {
    const bound = new Bound()
    const [row] = await db.query(`SELECT ${SUMS} FROM ${source(bound, query, query.startDay)}`, bound.values)
    return sumsOf(present(row))
  }

  return {
    async readUsage(query) {
      const { after, limit } = query
      const dimensions = USAGE_DIMENSIONS.filter((dimension) => query.groupBy.includes(dimension))
      if (dimensions.length === 0) {
        const total = await readTotal(query)
        const only: UsageBucket = { day: null, model: null, keyId: null, keyName: null, ...total }
        return { buckets: after === null ? [only] : [], more: false, total }
      }
      const bound = new Bound()
      const rows = await db.query(pageSql(bound, query, dimensions), bound.values)
      const buckets = rows.slice(0, limit).map(bucketOf)
      const more = rows.length > limit
      // Where all buckets are here, their sum is that of the same instant.
      const total = after === null && !more ? buckets.reduce(plus, NOTHING) : await readTotal(query)
      return { buckets, more, total }
    },
  }
}

function source(bound: Bound, { accountId, keyId, endDay }: UsageQuery, startDay: string): string {
  const ofKey = keyId === null ? '' : `key_id = ${bound.as('text', keyId)} AND`
  return `rollup WHERE ${ofKey} account_id = ${bound.as('text', accountId)}
    AND day BETWEEN ${bound.as('text', startDay)} AND ${bound.as('text', endDay)}`
}

function pageSql(bound: Bound, query: UsageQuery, dimensions: readonly UsageDimension[]): string {
  const { after, startDay } = query
  const list = dimensions.map((dimension) => COLUMN[dimension]).join(', ')
  const name = dimensions.includes('key')
    ? '(SELECT name FROM api_key WHERE api_key.id = rollup.key_id) AS key_name, '
    : ''
  // Days before the one where the last page ended need not be looked at.
  const start = laterOf(startDay, dimensions.includes('day') ? (after?.day ?? null) : null)
  const goesOn =
    after === null
      ? ''
      : `AND (${list}) > (${placeOf(after, dimensions).map((part) => bound.as('text', part))})`
  // One more than asked for tells whether there are more.
  return `SELECT ${list}, ${name}${SUMS} FROM ${source(bound, query, start)} ${goesOn}
    GROUP BY ${list} ORDER BY ${list} LIMIT ${bound.integer(query.limit + 1)}`
}

function laterOf(day: string, other: string | null): string {
  return other !== null && other > day ? other : day
}

/** The bucket that a page comes after. */
function placeOf(after: UsageGroup, dimensions: readonly UsageDimension[]): (string | null)[] {
  const values = { day: after.day, model: after.model, key: after.keyId }
  return dimensions.map((dimension) => values[dimension])
}

function bucketOf(row: Row): UsageBucket {
  return {
    day: textOrNull(row, 'day'),
    model: textOrNull(row, 'model'),
    keyId: textOrNull(row, 'key_id'),
    keyName: textOrNull(row, 'key_name'),
    ...sumsOf(row),
  }
}

function sumsOf(row: Row): UsageSums {
  const sum = (column: string): bigint => BigInt(text(row, column))
  return {
    requests: sum('requests'),
    inputTokens: sum('input_tokens'),
    outputTokens: sum('output_tokens'),
    cacheReadTokens: sum('cache_read_tokens'),
    cacheWriteTokens: sum('cache_write_tokens'),
    costNanos: sum('cost_nanos'),
    listNanos: sum('list_nanos'),
    creditedNanos: sum('credited_nanos'),
    unpricedRequests: sum('unpriced_requests'),
    estimatedRequests: sum('estimated_requests'),
  }
}

const NOTHING: UsageSums = {
  requests: 0n,
  inputTokens: 0n,
  outputTokens: 0n,
  cacheReadTokens: 0n,
  cacheWriteTokens: 0n,
  costNanos: 0n,
  listNanos: 0n,
  creditedNanos: 0n,
  unpricedRequests: 0n,
  estimatedRequests: 0n,
}

function plus(sums: UsageSums, bucket: UsageBucket): UsageSums {
  return {
    requests: sums.requests + bucket.requests,
    inputTokens: sums.inputTokens + bucket.inputTokens,
    outputTokens: sums.outputTokens + bucket.outputTokens,
    cacheReadTokens: sums.cacheReadTokens + bucket.cacheReadTokens,
    cacheWriteTokens: sums.cacheWriteTokens + bucket.cacheWriteTokens,
    costNanos: sums.costNanos + bucket.costNanos,
    listNanos: sums.listNanos + bucket.listNanos,
    creditedNanos: sums.creditedNanos + bucket.creditedNanos,
    unpricedRequests: sums.unpricedRequests + bucket.unpricedRequests,
    estimatedRequests: sums.estimatedRequests + bucket.estimatedRequests,
  }
}
