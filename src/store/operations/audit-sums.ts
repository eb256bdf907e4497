import {
  type AccountSums,
  type Batches,
  type BooksReader,
  DAY_SUMS,
  FLOOR_FIGURES,
  MONTH_SUMS,
  type SumsRow,
} from '../../ledger/audited.ts'
import { HOLD_NANOS_MAX } from '../../ledger/decide-admission.ts'
import { bool, nanos, type Row, sum, text, textOrNull } from '../rows.ts'
import type { Ask } from './operation.ts'
import { byStore, join, onPostgres, raw, type Sql, sql } from './sql.ts'

const MODEL = raw("coalesce(model_served, model_asked, '')")

/** Sums over calls that are not in a rollup, though a key's month or the account has them. */
const OTHER_SUMS = ['held_nanos', 'lost_nanos', 'calls_credited'] as const
const DERIVED = [...DAY_SUMS, ...OTHER_SUMS]

/** Expressions of derived sums; a column that is not listed is summed over settled calls. */
const EXPRESSIONS: Readonly<Record<string, string>> = {
  requests: "coalesce(sum(requests) FILTER (WHERE state = 'settled'), 0)",
  credited_nanos: '0',
  unpriced_requests: "coalesce(sum(requests) FILTER (WHERE state = 'settled' AND unpriced), 0)",
  estimated_requests: "coalesce(sum(requests) FILTER (WHERE state = 'settled' AND estimated), 0)",
  held_nanos: "coalesce(sum(hold_nanos) FILTER (WHERE state = 'in_flight'), 0)",
  lost_nanos: 'sum(lost_list_nanos)',
  calls_credited: 'count(*) FILTER (WHERE credited)',
}

const each = (columns: readonly string[], textOf: (column: string) => string): Sql =>
  raw(columns.map(textOf).join(', '))

/**
 * The derived sums live in temporary tables, so that memory does not depend on how many days, models and keys there
 * are. The months and accounts are added up from the days, which saves reading all calls again. The stored sums of months
 * whose calls are away are taken for derived, as far as anything can be known.
 */
export async function bookSums(
  ask: Ask,
  chunkCalls: number,
  monthsAway: readonly string[],
): Promise<Pick<BooksReader, 'addUp' | 'months' | 'days' | 'accounts' | 'floors'>> {
  const isAway = (column: string): Sql =>
    monthsAway.length === 0 ? sql`false` : sql`${raw(column)} IN (${join(monthsAway)})`
  const hasFloors = await hasTable(ask, 'hold_floor')
  await createTables(ask)
  if (hasFloors)
    await ask(sql`
      INSERT INTO derived_floor (key_id, month, endpoint, model, cost_nanos, list_nanos)
      SELECT key_id, month, endpoint, model, nanos, list_nanos FROM hold_floor WHERE ${isAway('month')}`)

  return {
    async addUp(onCalls) {
      await addCalls(ask, hasFloors, chunkCalls, onCalls)
      const columns = raw(`account_id, day, model, key_id, ${DAY_SUMS.join(', ')}`)
      await ask(sql`
        INSERT INTO derived_day (${columns}) SELECT ${columns} FROM rollup WHERE ${isAway('substr(day, 1, 7)')}`)
      await ask(sql`
        INSERT INTO derived_day (account_id, day, model, key_id, credited_nanos)
        SELECT call.account_id, day, ${MODEL}, key_id, sum(amount_nanos)
        FROM credit JOIN call ON call.id = credit.call_id GROUP BY 1, 2, 3, 4
        ON CONFLICT (account_id, day, model, key_id) DO UPDATE SET credited_nanos = excluded.credited_nanos`)
      await ask(sql`
        INSERT INTO derived_month (key_id, month, spent_nanos, held_nanos, lost_nanos)
        SELECT key_id, substr(day, 1, 7), sum(cost_nanos), sum(held_nanos), sum(lost_nanos)
        FROM derived_day GROUP BY 1, 2`)
      // The sum spent is in the days; the sum lost is nowhere else. Nothing should be held for calls that are away.
      await ask(sql`
        INSERT INTO derived_month (key_id, month, lost_nanos)
        SELECT key_id, month, lost_nanos FROM key_month WHERE ${isAway('month')}
        ON CONFLICT (key_id, month) DO UPDATE SET lost_nanos = excluded.lost_nanos`)
      await ask(onPostgres('ANALYZE derived_day, derived_month'))
    },
    months: () => compared(ask, MONTHS),
    days: () => compared(ask, DAYS),
    async *accounts() {
      yield (await ask(ACCOUNTS)).map(accountSums)
    },
    async *floors() {
      if (hasFloors) yield* compared(ask, FLOORS)
    },
  }
}

/** Whether there is a table of this name. */
async function hasTable(ask: Ask, name: string): Promise<boolean> {
  const found = await ask(
    byStore({
      sqlite: sql`SELECT 1 FROM sqlite_master WHERE name = ${name}`,
      postgres: sql`SELECT 1 WHERE to_regclass(${name}) IS NOT NULL`,
    }),
  )
  return found.length > 0
}

async function createTables(ask: Ask): Promise<void> {
  const name = byStore({ sqlite: 'TEXT', postgres: 'text COLLATE "C"' })
  // PostgreSQL's sums are numeric, which has no limit.
  const amount = byStore({ sqlite: 'INTEGER', postgres: 'numeric' })
  const end = byStore({ sqlite: 'STRICT, WITHOUT ROWID', postgres: 'ON COMMIT DROP' })
  const create = (table: string, key: readonly string[], sums: readonly string[]): Sql => {
    const columns = [
      ...key.map((column) => sql`${raw(column)} ${name}`),
      ...sums.map(
        (column) => sql`${raw(column)} ${amount} NOT NULL DEFAULT ${raw(column === 'mark' ? '1' : '0')}`,
      ),
    ]
    return sql`CREATE TEMP TABLE ${raw(table)} (${join(columns)}, PRIMARY KEY (${raw(key.join(', '))})) ${end}`
  }
  await ask(create('derived_day', DAYS.key, DERIVED))
  await ask(create('derived_month', MONTHS.key, MONTH_SUMS))
  await ask(create('derived_floor', FLOORS.key, FLOOR_FIGURES))
}

/** Calls are added in chunks, small enough that progress shows, and so large that finding the end of a chunk costs nothing. */
async function addCalls(
  ask: Ask,
  hasFloors: boolean,
  chunkCalls: number,
  onCalls: (count: number) => void,
): Promise<void> {
  for (let after = ''; ; ) {
    const [end] = await ask(
      sql`SELECT id FROM call WHERE id > ${after} ORDER BY id LIMIT 1 OFFSET ${chunkCalls - 1}`,
    )
    const upTo = end === undefined ? sql`` : sql`AND call.id <= ${text(end, 'id')}`
    const chunk = sql`call.id > ${after} ${upTo}`
    await ask(addDays(chunk))
    if (hasFloors) await ask(addFloors(chunk))
    onCalls(chunkCalls)
    if (end === undefined) return
    after = text(end, 'id')
  }
}

function addDays(chunk: Sql): Sql {
  const sums = each(
    DERIVED,
    (column) => EXPRESSIONS[column] ?? `coalesce(sum(${column}) FILTER (WHERE state = 'settled'), 0)`,
  )
  return sql`
    INSERT INTO derived_day (account_id, day, model, key_id, ${raw(DERIVED.join(', '))})
    SELECT account_id, day, ${MODEL}, key_id, ${sums} FROM call WHERE ${chunk} GROUP BY 1, 2, 3, 4
    ON CONFLICT (account_id, day, model, key_id) DO UPDATE SET
      ${each(DERIVED, (column) => `${column} = derived_day.${column} + excluded.${column}`)}`
}

const LEAST = byStore({ sqlite: 'min', postgres: 'least' })
const GREATEST = byStore({ sqlite: 'max', postgres: 'greatest' })

/**
 * The floors that the calls should have left, put together from calls that cost more than they held. A pair of endpoint and
 * model beyond the limit has no row of its own, and stands under the row for all others of its key.
 */
function addFloors(chunk: Sql): Sql {
  const most = raw(`${HOLD_NANOS_MAX}`)
  return sql`
    INSERT INTO derived_floor (key_id, month, endpoint, model, cost_nanos, list_nanos)
    SELECT key_id, month, CASE WHEN is_own THEN endpoint ELSE '' END, CASE WHEN is_own THEN model ELSE '' END,
      max(${LEAST}(cost_nanos, ${most})), max(${LEAST}(list_nanos, ${most}))
    FROM (
      SELECT call.key_id, call.month, call.endpoint, coalesce(model_asked, '') AS model, cost_nanos, call.list_nanos,
        other.key_id IS NULL OR own.key_id IS NOT NULL AS is_own
      FROM call
        LEFT JOIN hold_floor AS own ON own.key_id = call.key_id AND own.month = call.month
          AND own.endpoint = call.endpoint AND own.model = coalesce(model_asked, '')
        LEFT JOIN hold_floor AS other ON other.key_id = call.key_id AND other.month = call.month
          AND other.endpoint = '' AND other.model = ''
      WHERE ${chunk} AND overrun AND call.endpoint IS NOT NULL
    ) AS over GROUP BY 1, 2, 3, 4
    ON CONFLICT (key_id, month, endpoint, model) DO UPDATE SET
      cost_nanos = ${GREATEST}(derived_floor.cost_nanos, excluded.cost_nanos),
      list_nanos = ${GREATEST}(derived_floor.list_nanos, excluded.list_nanos)`
}

interface Comparison {
  readonly stored: string
  readonly derived: string
  /** Whether there should be, or may be, a stored row. */
  readonly due: Sql
  readonly key: readonly string[]
  readonly columns: readonly string[]
  where(row: Row): string
}

const MONTHS: Comparison = {
  stored: 'key_month',
  derived: 'derived_month',
  // An admission to PostgreSQL makes the row before it knows whether the call is admitted.
  due: sql`derived.key_id IS NOT NULL ${onPostgres(
    'OR (stored.spent_nanos = 0 AND stored.held_nanos = 0 AND stored.lost_nanos = 0)',
  )}`,
  key: ['key_id', 'month'],
  columns: MONTH_SUMS,
  where: (row) => `key ${text(row, 'key_id')}, month ${text(row, 'month')}`,
}

const DAYS: Comparison = {
  stored: 'rollup',
  derived: 'derived_day',
  // A day on which calls were only interrupted, say, has no rollup.
  due: sql`derived.requests > 0`,
  key: ['account_id', 'day', 'model', 'key_id'],
  columns: DAY_SUMS,
  where: (row) =>
    `day ${text(row, 'day')}, model ${text(row, 'model')}, key ${text(row, 'key_id')}, account ${text(row, 'account_id')}`,
}

const FLOORS: Comparison = {
  stored: `(SELECT hold_floor.*, nanos AS cost_nanos, CASE WHEN has_floors THEN 1 ELSE 0 END AS mark
    FROM hold_floor LEFT JOIN key_month USING (key_id, month))`,
  derived: 'derived_floor',
  due: sql`derived.key_id IS NOT NULL`,
  key: ['key_id', 'month', 'endpoint', 'model'],
  columns: FLOOR_FIGURES,
  where: (row) =>
    `key ${text(row, 'key_id')}, month ${text(row, 'month')}, endpoint ${text(row, 'endpoint')}, model ${text(row, 'model')}`,
}

/** Every row of a comparison is a difference, so a few are enough. */
const DIFFERENCES_MAX = 100

/** Rows of a table that differ from the derived rows. */
async function* compared(ask: Ask, comparison: Comparison): Batches<SumsRow> {
  const { stored, derived, due, key, columns } = comparison
  const isStored = raw(`stored.${key[0]} IS NOT NULL`)
  const isDue = sql`coalesce(${due}, false)`
  const list = (side: string): Sql => each(columns, (column) => `coalesce(${side}.${column}, 0)`)
  const shown = (side: string): Sql =>
    each(columns, (column) => `CAST(coalesce(${side}.${column}, 0) AS text) AS ${side}_${column}`)
  const rows = await ask(sql`
    SELECT ${each(key, (column) => `coalesce(stored.${column}, derived.${column}) AS ${column}`)},
      ${shown('stored')}, ${shown('derived')}, ${isStored} AS is_stored, ${isDue} AS is_due
    FROM ${raw(stored)} AS stored FULL JOIN ${raw(derived)} AS derived
      ON ${raw(key.map((column) => `derived.${column} = stored.${column}`).join(' AND '))}
    WHERE CASE WHEN ${isDue} THEN (${list('stored')}) <> (${list('derived')}) ELSE ${isStored} END
    ORDER BY ${each(key, (column) => String(key.indexOf(column) + 1))} LIMIT ${DIFFERENCES_MAX}`)
  yield rows.map((row) => {
    const side = (name: string): Record<string, bigint> =>
      Object.fromEntries(columns.map((column) => [column, sum(row, `${name}_${column}`)]))
    return {
      where: comparison.where(row),
      stored: bool(row, 'is_stored') ? side('stored') : null,
      derived: bool(row, 'is_due') ? side('derived') : null,
    }
  })
}

function accountSums(row: Row): AccountSums {
  return {
    id: text(row, 'id'),
    stored: {
      creditedNanos: nanos(row, 'credited_nanos'),
      chargedNanos: nanos(row, 'charged_nanos'),
      heldNanos: nanos(row, 'held_nanos'),
      enforced: bool(row, 'credit_enforced') ? 1n : 0n,
    },
    derived: {
      creditedNanos: sum(row, 'derived_credited'),
      chargedNanos: sum(row, 'derived_charged'),
      heldNanos: sum(row, 'derived_held'),
    },
    topUps: sum(row, 'top_ups'),
    callsMarkedCredited: sum(row, 'calls_credited'),
    callsCreditedBack: sum(row, 'credited_back'),
    foreignKey: textOrNull(row, 'foreign_key'),
  }
}

const DERIVED_OF_ACCOUNT = {
  derived_credited: 'amount',
  derived_charged: 'cost',
  derived_held: 'held',
  top_ups: 'top_ups',
  calls_credited: 'calls_credited',
  credited_back: 'credited_back',
}

const ACCOUNTS = sql`
  WITH journal AS (
    SELECT credit.account_id, sum(amount_nanos) AS amount, count(*) FILTER (WHERE kind = 'top_up') AS top_ups,
      count(DISTINCT call.id) FILTER (WHERE kind = 'credit_back') AS credited_back
    FROM credit LEFT JOIN call ON call.id = call_id GROUP BY credit.account_id
  ), calls AS (
    SELECT account_id, sum(cost_nanos) AS cost, sum(held_nanos) AS held, sum(calls_credited) AS calls_credited
    FROM derived_day GROUP BY account_id
  ), strangers AS (
    SELECT derived_day.account_id, min(key_id) AS foreign_key
    FROM derived_day LEFT JOIN api_key ON api_key.id = key_id
    WHERE api_key.account_id IS DISTINCT FROM derived_day.account_id GROUP BY 1
  )
  SELECT account.id, credited_nanos, charged_nanos, held_nanos, credit_enforced, foreign_key,
    ${raw(
      Object.entries(DERIVED_OF_ACCOUNT)
        .map(([name, column]) => `CAST(coalesce(${column}, 0) AS text) AS ${name}`)
        .join(', '),
    )}
  FROM account
    LEFT JOIN journal ON journal.account_id = account.id
    LEFT JOIN calls ON calls.account_id = account.id
    LEFT JOIN strangers ON strangers.account_id = account.id
  ORDER BY account.id`
