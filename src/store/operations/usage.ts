import { USAGE_DIMENSIONS, type UsageDimension } from '../../kernel/vocabulary.ts'
import type {
  UsageBucket,
  UsageGroup,
  UsageQuery,
  UsageReport,
  UsageSums,
} from '../../ledger/usage-report.ts'
import { present, type Row, sum, textOrNull } from '../rows.ts'
import { pairsOf } from './keys.ts'
import type { Operation } from './operation.ts'
import { byStore, join, raw, type Sql, sql } from './sql.ts'

const COLUMN = { day: 'day', model: 'model', key: 'key_id', account: 'account_id' } as const satisfies Record<
  UsageDimension,
  string
>

const SUM_COLUMNS = {
  requests: 'requests',
  inputTokens: 'input_tokens',
  outputTokens: 'output_tokens',
  cacheReadTokens: 'cache_read_tokens',
  cacheWriteTokens: 'cache_write_tokens',
  costNanos: 'cost_nanos',
  listNanos: 'list_nanos',
  creditedNanos: 'credited_nanos',
  unpricedRequests: 'unpriced_requests',
  estimatedRequests: 'estimated_requests',
} as const satisfies Record<keyof UsageSums, string>

/**
 * SQLite's sum() of integers fails where it leaves 64 bits; it never wraps around or turns into a double. PostgreSQL's
 * is numeric and has no limit.
 */
const SUMS = raw(
  Object.values(SUM_COLUMNS)
    .map((column) => `CAST(coalesce(sum(${column}), 0) AS text) AS ${column}`)
    .join(', '),
)

/** Reports on usage: read from the daily sums alone, so that they cost the same after a thousand calls and a billion. */
export function* readUsage(query: UsageQuery): Operation<UsageReport> {
  const { after, limit } = query
  const dimensions = USAGE_DIMENSIONS.filter((dimension) => query.groupBy.includes(dimension))
  if (dimensions.length === 0) {
    const total = yield* readTotal(query)
    const ungrouped = { keyName: null, accountName: null, metadata: null }
    const only: UsageBucket = {
      day: null,
      model: null,
      keyId: null,
      ofAccountId: null,
      ...ungrouped,
      ...total,
    }
    return { buckets: after === null ? [only] : [], more: false, total }
  }
  const rows = yield pageSql(query, dimensions)
  const buckets = rows.slice(0, limit).map(bucketOf)
  const more = rows.length > limit
  // Where all buckets are on this page, the total is their sum, which is of the same instant.
  const total = after === null && !more ? totalOf(buckets) : yield* readTotal(query)
  return { buckets, more, total }
}

function* readTotal(query: UsageQuery): Operation<UsageSums> {
  const [row] = yield sql`SELECT ${SUMS} FROM ${source(query, query.startDay)}`
  return sumsOf(present(row))
}

/** Without the hint SQLite would go through the days of the whole account and leave out those of other keys. */
const OF_KEY = byStore({ sqlite: 'INDEXED BY rollup_by_key', postgres: '' })

function source({ accountId, keyId, model, endDay }: UsageQuery, startDay: string): Sql {
  const ofAccount = accountId === null ? sql`true` : sql`account_id = ${accountId}`
  const whose =
    keyId === null
      ? sql`rollup WHERE ${ofAccount}`
      : sql`rollup ${OF_KEY} WHERE key_id = ${keyId} AND ${ofAccount}`
  const which = model === undefined ? sql`` : sql`AND model = ${model}`
  return sql`${whose} AND day BETWEEN ${startDay} AND ${endDay} ${which}`
}

function pageSql(query: UsageQuery, dimensions: readonly UsageDimension[]): Sql {
  const { after, startDay } = query
  const list = raw(dimensions.map((dimension) => COLUMN[dimension]).join(', '))
  const name = dimensions.includes('key')
    ? sql`(SELECT name FROM api_key WHERE api_key.id = rollup.key_id) AS key_name,
      (SELECT metadata FROM api_key WHERE api_key.id = rollup.key_id) AS metadata, `
    : sql``
  const account = dimensions.includes('account')
    ? sql`(SELECT name FROM account WHERE account.id = rollup.account_id) AS account_name, `
    : sql``
  // Days before the end of the last page need not be read.
  const start = laterOf(startDay, dimensions.includes('day') ? (after?.day ?? null) : null)
  const goesOn = after === null ? sql`` : sql`AND (${list}) > (${join(cursorOf(after, dimensions))})`
  // One extra row shows whether there are more.
  return sql`SELECT ${list}, ${name} ${account} ${SUMS} FROM ${source(query, start)} ${goesOn}
    GROUP BY ${list} ORDER BY ${list} LIMIT ${query.limit + 1}`
}

function laterOf(day: string, other: string | null): string {
  return other !== null && other > day ? other : day
}

/** The bucket that a page comes after. */
function cursorOf(after: UsageGroup, dimensions: readonly UsageDimension[]): (string | null)[] {
  const values = { day: after.day, model: after.model, key: after.keyId, account: after.ofAccountId }
  return dimensions.map((dimension) => values[dimension])
}

function bucketOf(row: Row): UsageBucket {
  return {
    day: textOrNull(row, 'day'),
    model: textOrNull(row, 'model'),
    keyId: textOrNull(row, 'key_id'),
    keyName: textOrNull(row, 'key_name'),
    ofAccountId: textOrNull(row, 'account_id'),
    accountName: textOrNull(row, 'account_name'),
    metadata: row['metadata'] == null ? null : pairsOf(row['metadata']),
    ...sumsOf(row),
  }
}

function sumsOf(row: Row): UsageSums {
  return eachSum((name) => sum(row, SUM_COLUMNS[name]))
}

function totalOf(buckets: readonly UsageSums[]): UsageSums {
  return eachSum((name) => buckets.reduce((total, bucket) => total + bucket[name], 0n))
}

function eachSum(sumOf: (name: keyof UsageSums) => bigint): UsageSums {
  const names = Object.keys(SUM_COLUMNS) as (keyof UsageSums)[]
  return Object.fromEntries(names.map((name) => [name, sumOf(name)])) as Record<keyof UsageSums, bigint>
}
