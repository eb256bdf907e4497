import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import { DAY_SUMS } from '../../ledger/audited.ts'
import {
  USAGE_DIMENSIONS,
  type UsageBucket,
  type UsageDimension,
  type UsageGroup,
  type UsageQuery,
  type UsageSums,
} from '../../ledger/usage-report.ts'
import type { ReadOperations } from './read-operations.ts'
import { integer, nanos, present, type Row, textOrNull } from './rows.ts'

const COLUMN = { day: 'day', model: 'model', key: 'key_id' } as const satisfies Record<UsageDimension, string>

/** SQLite's sum() of integers fails where it leaves 64 bits; it never wraps around or turns into a double. */
const SUMS = DAY_SUMS.map((column) => `coalesce(sum(${column}), 0) AS ${column}`).join(', ')

const WITHIN = 'account_id = :account AND day BETWEEN :start AND :end'

/** By itself SQLite would go through the days of the whole account and leave out what is not the key's. */
const OF_ACCOUNT = `rollup WHERE ${WITHIN}`
const OF_KEY = `rollup INDEXED BY rollup_by_key WHERE key_id = :key AND ${WITHIN}`

type Bound = Record<string, SQLInputValue>

/** Reports on usage: read from the daily sums alone, so that they cost the same after a thousand calls and a billion. */
export function usageOperation(db: DatabaseSync): Pick<ReadOperations, 'readUsage'> {
  const statements = new Map<string, StatementSync>()
  // There are 30 different ones, and most installations use a few.
  function prepared(sql: string): StatementSync {
    const known = statements.get(sql) ?? db.prepare(sql)
    statements.set(sql, known)
    return known
  }

  function readBuckets(query: UsageQuery, dimensions: readonly UsageDimension[], within: Bound): Row[] {
    const columns = dimensions.map((dimension) => COLUMN[dimension])
    const position = positionOf(query.after, dimensions)
    return prepared(pageSql(columns, query.keyId !== null, position !== null)).all({
      ...within,
      ...position,
      // Days before the one where the last page ended need not be looked at.
      start: laterOf(query.startDay, dimensions.includes('day') ? (query.after?.day ?? null) : null),
      // One more than asked for tells whether there are more.
      limit: integer(query.limit + 1),
    })
  }

  return {
    readUsage(query) {
      const { accountId, keyId, startDay, endDay, limit } = query
      const within: Bound = { account: accountId, start: startDay, end: endDay }
      if (keyId !== null) within['key'] = keyId
      const total = sumsOf(present(prepared(`SELECT ${SUMS} FROM ${source(keyId !== null)}`).get(within)))
      const dimensions = USAGE_DIMENSIONS.filter((dimension) => query.groupBy.includes(dimension))
      if (dimensions.length === 0) {
        const only: UsageBucket = { day: null, model: null, keyId: null, keyName: null, ...total }
        return { buckets: query.after === null ? [only] : [], more: false, total }
      }
      const rows = readBuckets(query, dimensions, within)
      return { buckets: rows.slice(0, limit).map(bucketOf), more: rows.length > limit, total }
    },
  }
}

function laterOf(day: string, other: string | null): string {
  return other !== null && other > day ? other : day
}

function source(ofKey: boolean): string {
  return ofKey ? OF_KEY : OF_ACCOUNT
}

function pageSql(columns: readonly string[], ofKey: boolean, goesOn: boolean): string {
  const list = columns.join(', ')
  const after = goesOn ? `AND (${list}) > (${columns.map((column) => `:after_${column}`).join(', ')})` : ''
  const name = columns.includes(COLUMN.key)
    ? '(SELECT name FROM api_key WHERE id = key_id) AS key_name, '
    : ''
  return `SELECT ${list}, ${name}${SUMS} FROM ${source(ofKey)} ${after} GROUP BY ${list} ORDER BY ${list} LIMIT :limit`
}

/** The bucket that a page comes after, as the statement takes it. */
function positionOf(after: UsageGroup | null, dimensions: readonly UsageDimension[]): Bound | null {
  if (after === null) return null
  const values = { day: after.day, model: after.model, key: after.keyId }
  const position: Bound = {}
  for (const dimension of dimensions) position[`after_${COLUMN[dimension]}`] = values[dimension]
  return position
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
  return {
    requests: nanos(row, 'requests'),
    inputTokens: nanos(row, 'input_tokens'),
    outputTokens: nanos(row, 'output_tokens'),
    cacheReadTokens: nanos(row, 'cache_read_tokens'),
    cacheWriteTokens: nanos(row, 'cache_write_tokens'),
    costNanos: nanos(row, 'cost_nanos'),
    listNanos: nanos(row, 'list_nanos'),
    creditedNanos: nanos(row, 'credited_nanos'),
    unpricedRequests: nanos(row, 'unpriced_requests'),
    estimatedRequests: nanos(row, 'estimated_requests'),
  }
}
