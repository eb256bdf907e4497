import { USAGE_DIMENSIONS, type UsageDimension } from '../../kernel/vocabulary.ts'
import { dayOf, monthOf, startOfDayMs } from '../../ledger/calendar.ts'
import { columnOf, TOKEN_COLUMNS } from '../../ledger/call-columns.ts'
import {
  type AttentionKey,
  type AttentionKeys,
  type Overview,
  type OverviewQuery,
  USAGE_SUMS,
  type UsageBucket,
  type UsageGroup,
  type UsageQuery,
  type UsageReport,
  type UsageSums,
} from '../../ledger/usage-report.ts'
import { number, numberOrNull, present, type Row, readValue, recordOf, sum, textOrNull } from '../rows.ts'
import { getBalance } from './credits.ts'
import { atomic, currentTime, type Operation } from './operation.ts'
import { and, byStore, join, onPostgres, raw, type Sql, sql } from './sql.ts'
import { startedWithin } from './start-range.ts'

const COLUMN = {
  day: 'day',
  hour: 'hour_ms',
  model: 'model',
  key: 'key_id',
  person: 'person_id',
  account: 'account_id',
} as const satisfies Record<UsageDimension, string>

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const HOURLY_SUMS = raw([...Object.values(TOKEN_COLUMNS), 'cost_nanos', 'list_nanos'].join(', '))

/** SQLite's sum() of integers fails on 64-bit overflow; it never wraps or becomes a double. */
const SUMS = raw(
  USAGE_SUMS.map(columnOf)
    .map((column) => `CAST(coalesce(sum(${column}), 0) AS text) AS ${column}`)
    .join(', '),
)

/** For a day of a large account the planner read all 8.5 million sums of a database, which took 5.2 s instead of 0.2 s. */
const FORCE_INDEX = onPostgres("SELECT set_config('enable_seqscan', 'off', true)")

/** Reports by day read only the daily sums, so they cost the same after a thousand calls and after a billion. */
const readUsage = atomic(function* (query: UsageQuery): Operation<UsageReport> {
  const { accountId, after, limit } = query
  if (accountId !== null) yield FORCE_INDEX
  const dimensions = USAGE_DIMENSIONS.filter((dimension) => query.groupBy.includes(dimension))
  if (dimensions.length === 0) {
    const [row] = yield totalSql(query)
    const only = bucketOf(present(row))
    return { buckets: after === null ? [only] : [], more: false, total: totalOf([only]) }
  }
  const rows = yield pageSql(query, dimensions)
  const buckets = rows.slice(0, limit).map(bucketOf)
  const more = rows.length > limit
  // If all buckets are on this page, the total is their sum, from the same snapshot.
  if (after === null && !more) return { buckets, more, total: totalOf(buckets) }
  const [row] = yield totalSql(query)
  return { buckets, more, total: sumsOf(present(row)) }
})

function totalSql(query: UsageQuery): Sql {
  return sql`SELECT ${SUMS} FROM ${rollupSql(query, query.startDay)}`
}

/** Without the hint SQLite would scan the days of the whole account and filter by key. */
const BY_KEY_HINT = byStore({ sqlite: 'INDEXED BY rollup_by_key', postgres: '' })

function rollupSql(query: UsageQuery, startDay: string): Sql {
  const { accountId, keyId, personId = null, model, endDay } = query
  if (query.groupBy.includes('hour')) return hourlySql(query, startDay)
  const ofAccount = accountId === null ? sql`true` : sql`account_id = ${accountId}`
  const ofKey = keyId === null ? sql`` : sql`AND key_id = ${keyId}`
  const ofPerson =
    personId === null ? sql`` : sql`AND key_id IN (SELECT id FROM api_key WHERE person_id = ${personId})`
  const hint = keyId === null && personId === null ? sql`` : BY_KEY_HINT
  const ofOwner = sql`rollup ${hint} WHERE ${ofAccount} ${ofKey} ${ofPerson}`
  const ofModel = model === undefined ? sql`` : sql`AND model = ${model}`
  const rows = sql`${ofOwner} AND day BETWEEN ${startDay} AND ${endDay} ${ofModel}`
  return query.groupBy.includes('person')
    ? sql`(SELECT rollup.*, ${PERSON_OF_KEY} AS person_id FROM ${rows}) AS rollup WHERE true`
    : rows
}

/** Not null: a cursor is compared with it. */
const PERSON_OF_KEY = raw("(SELECT coalesce(person_id, '') FROM api_key WHERE api_key.id = rollup.key_id)")

/** The settled calls with the columns of daily sums. */
function hourlySql(query: UsageQuery, startDay: string): Sql {
  const { accountId, keyId, personId = null, model, endDay } = query
  const where = startedWithin(startOfDayMs(startDay), startOfDayMs(endDay) + DAY_MS)
  if (keyId !== null) where.push(sql`key_id = ${keyId}`)
  else if (accountId !== null) where.push(sql`account_id = ${accountId}`)
  if (personId !== null) where.push(sql`person_id = ${personId}`)
  const ofModel = model === undefined ? sql`` : sql`AND model = ${model}`
  return sql`(
    SELECT account_id, key_id, coalesce(person_id, '') AS person_id, coalesce(model_served, model_asked, '') AS model,
      started_at_ms - started_at_ms % ${HOUR_MS} AS hour_ms, requests, ${HOURLY_SUMS},
      CASE WHEN unpriced THEN requests ELSE 0 END AS unpriced_requests,
      CASE WHEN estimated THEN requests ELSE 0 END AS estimated_requests,
      (SELECT coalesce(sum(amount_nanos), 0) FROM credit_call WHERE call_id = call.id) AS credited_nanos
    FROM call WHERE ${and(where)} AND state = 'settled' AND requests > 0
  ) AS rollup WHERE ${accountId === null ? sql`true` : sql`account_id = ${accountId}`} ${ofModel}`
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
  const person = dimensions.includes('person')
    ? sql`(SELECT email FROM person WHERE person.id = rollup.person_id) AS person_email, `
    : sql``
  // Days before the end of the last page need not be read.
  const reached = after?.day ?? after?.hour?.slice(0, 10) ?? ''
  const start = reached > startDay ? reached : startDay
  const afterCursor = after === null ? sql`` : sql`AND (${list}) > (${join(cursorOf(after, dimensions))})`
  return sql`SELECT ${list}, ${name} ${person} ${account} ${SUMS} FROM ${rollupSql(query, start)} ${afterCursor}
    GROUP BY ${list} ORDER BY ${list} LIMIT ${query.limit + 1}`
}

function cursorOf(after: UsageGroup, dimensions: readonly UsageDimension[]): (string | number | null)[] {
  const { day, model, keyId, personId, ofAccountId } = after
  const hour = after.hour === null ? null : Date.parse(after.hour)
  const values = { day, hour, model, key: keyId, person: personId ?? '', account: ofAccountId }
  return dimensions.map((dimension) => values[dimension])
}

function bucketOf(row: Row): UsageBucket {
  const hourMs = numberOrNull(row, 'hour_ms')
  return {
    day: textOrNull(row, 'day'),
    hour: hourMs === null ? null : new Date(hourMs).toISOString(),
    model: textOrNull(row, 'model'),
    keyId: textOrNull(row, 'key_id'),
    keyName: textOrNull(row, 'key_name'),
    personId: textOrNull(row, 'person_id') || null,
    personEmail: textOrNull(row, 'person_email'),
    ofAccountId: textOrNull(row, 'account_id'),
    accountName: textOrNull(row, 'account_name'),
    metadata: readValue('metadata', row['metadata'] ?? null) as UsageBucket['metadata'],
    ...sumsOf(row),
  }
}

function sumsOf(row: Row): UsageSums {
  return eachSum((name) => sum(row, columnOf(name)))
}

function totalOf(buckets: readonly UsageSums[]): UsageSums {
  return eachSum((name) => buckets.reduce((total, bucket) => total + bucket[name], 0n))
}

function eachSum(sumOf: (name: keyof UsageSums) => bigint): UsageSums {
  return Object.fromEntries(USAGE_SUMS.map((name) => [name, sumOf(name)])) as Record<keyof UsageSums, bigint>
}

function* countInFlight(accountId: string): Operation<number> {
  const [row] = yield sql`
    SELECT count(*) AS calls FROM hold WHERE state = 'in_flight' AND parent_id IS NULL AND account_id = ${accountId}`
  return number(present(row), 'calls')
}

/** Scans only indexes with few rows: it takes a fraction of a second with 100,000 keys, and no admission waits. */
function* readOverview({ accountId, atMs, listedMax }: OverviewQuery): Operation<Overview> {
  const nowMs = yield* currentTime(atMs)
  const [today, month] = [dayOf(nowMs), monthOf(nowMs)]
  const days = { startDay: `${month}-01`, endDay: today, groupBy: [], after: null, limit: 1 }
  const { total: sums } = yield* readUsage({ accountId, keyId: null, ...days })
  const capped = cappedKeys(accountId, nowMs)
  const expiring = expiringKeys(accountId, nowMs, nowMs + 7 * DAY_MS)
  return {
    month,
    requests: sums.requests,
    costNanos: sums.costNanos,
    listNanos: sums.listNanos,
    creditedNanos: sums.creditedNanos,
    balance: yield* getBalance(accountId),
    inFlight: yield* countInFlight(accountId),
    nearCap: yield* listAttentionKeys(capped, NEAR_CAP, BY_SPEND, listedMax),
    exhausted: yield* listAttentionKeys(capped, EXHAUSTED, BY_SPEND, listedMax),
    expiring: yield* listAttentionKeys(expiring, sql`true`, sql`expires_at_ms`, listedMax),
    unpricedModels: (yield sql`
      SELECT model, CAST(sum(unpriced_requests) AS bigint) AS requests FROM rollup
      WHERE account_id = ${accountId} AND day >= ${dayOf(nowMs - 6 * DAY_MS)} AND day <= ${today}
        AND unpriced_requests > 0
      GROUP BY model ORDER BY sum(unpriced_requests) DESC, model LIMIT ${listedMax}`).map(
      recordOf<Overview['unpricedModels'][number]>,
    ),
    ...(yield* readWebhookFailures(accountId, nowMs - DAY_MS)),
    refusals: (yield sql`
      SELECT code, count(*) AS calls FROM refused_call
      WHERE ${and([sql`account_id = ${accountId}`, ...startedWithin(nowMs - DAY_MS, null)])}
      GROUP BY code ORDER BY count(*) DESC, code LIMIT ${listedMax}`).map(
      recordOf<Overview['refusals'][number]>,
    ),
  }
}

/** Longer than all attempts of a delivery together can take (28 hours). */
const DELIVERY_ATTEMPTS_MS = 3 * DAY_MS

function* readWebhookFailures(
  accountId: string,
  sinceMs: number,
): Operation<Pick<Overview, 'failedDeliveries' | 'disabledWebhooks'>> {
  const [row] = yield sql`
    SELECT (SELECT count(*) FROM webhook WHERE account_id = ${accountId} AND disabled_reason <> 'manual') AS disabled,
      (SELECT count(*) FROM webhook_delivery JOIN webhook ON webhook.id = webhook_id
       WHERE account_id = ${accountId} AND webhook_delivery.created_at_ms >= ${sinceMs - DELIVERY_ATTEMPTS_MS} AND status = 'failed'
         AND coalesce(last_attempt_at_ms, webhook_delivery.created_at_ms) >= ${sinceMs}) AS failed`
  return {
    failedDeliveries: number(present(row), 'failed'),
    disabledWebhooks: number(present(row), 'disabled'),
  }
}

/** Keys that have spent 80 % of their cap. The expression cannot overflow 64 bits. */
const NEAR_CAP = sql`spent_nanos < cap_nanos AND spent_nanos >= cap_nanos - cap_nanos / 5`
const EXHAUSTED = sql`spent_nanos >= cap_nanos`
const BY_SPEND = sql`spent_nanos DESC`

/** SQLite uses a partial index only with the hint, and if the conditions are the same text as in the index. */
function cappedKeys(accountId: string, nowMs: number): Sql {
  const usable = sql`revoked_at_ms IS NULL AND (expires_at_ms IS NULL OR expires_at_ms > ${nowMs})`
  return sql`SELECT k.id, name, 'month' AS period, monthly_budget_nanos AS cap_nanos, expires_at_ms, spent_nanos
    FROM budget AS b ${byStore({ sqlite: 'INDEXED BY budget_capped', postgres: '' })}
    JOIN api_key AS k ON k.budget_id = b.id
    WHERE b.account_id = ${accountId} AND monthly_budget_nanos > 0 AND month = ${monthOf(nowMs)} AND ${usable}
    UNION ALL
    SELECT k.id, name, 'day' AS period, daily_budget_nanos AS cap_nanos, expires_at_ms, day_spent_nanos AS spent_nanos
    FROM budget AS b ${byStore({ sqlite: 'INDEXED BY budget_day_capped', postgres: '' })}
    JOIN api_key AS k ON k.budget_id = b.id
    WHERE b.account_id = ${accountId} AND daily_budget_nanos > 0 AND day = ${dayOf(nowMs)} AND ${usable}`
}

function expiringKeys(accountId: string, nowMs: number, untilMs: number): Sql {
  return sql`SELECT k.id, name, 'month' AS period, CAST(NULL AS bigint) AS cap_nanos, expires_at_ms,
      CAST(0 AS bigint) AS spent_nanos
    FROM api_key AS k ${byStore({ sqlite: 'INDEXED BY api_key_expiring', postgres: '' })} JOIN budget AS b ON b.id = k.budget_id
    WHERE k.account_id = ${accountId} AND expires_at_ms IS NOT NULL AND revoked_at_ms IS NULL
      AND device_until_ms IS NULL
      AND expires_at_ms > ${nowMs} AND expires_at_ms <= ${untilMs}`
}

function* listAttentionKeys(from: Sql, condition: Sql, order: Sql, max: number): Operation<AttentionKeys> {
  const rows = yield sql`
    SELECT id, name, period, cap_nanos, expires_at_ms, spent_nanos, count(*) OVER () AS all_keys
    FROM (${from}) AS k WHERE ${condition} ORDER BY ${join([order, sql`id, period`])} LIMIT ${max}`
  const keys = rows.map(recordOf<AttentionKey & { readonly allKeys: number }>)
  return { count: keys[0]?.allKeys ?? 0, keys: keys.map(({ allKeys: _, ...key }) => key) }
}

export const USAGE = { brief: {}, reads: { readUsage, readOverview } }
