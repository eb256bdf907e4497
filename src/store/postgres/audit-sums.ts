import { type AccountSums, type BooksReader, DAY_SUMS, MONTH_SUMS } from '../../ledger/audited.ts'
import { compared } from './audit-compare.ts'
import { type DerivedFloors, deriveFloors } from './audit-floors.ts'
import type { Database } from './database.ts'
import { takeDays, takeLosses } from './months-away.ts'
import { bool, nanos, type Row, text, textOrNull } from './rows.ts'

const MODEL = "coalesce(model_served, model_asked, '')"

/** Sums over calls that are not in a rollup, though a key's month or the account has them. */
const OTHER_SUMS = ['held_nanos', 'lost_nanos', 'calls_credited'] as const
const DERIVED = [...DAY_SUMS, ...OTHER_SUMS]

/** Where nothing is said, the sum of the column over settled calls. */
const EXPRESSIONS: Readonly<Record<string, string>> = {
  requests: "count(*) FILTER (WHERE state = 'settled')",
  credited_nanos: '0',
  unpriced_requests: "count(*) FILTER (WHERE state = 'settled' AND unpriced)",
  estimated_requests: "count(*) FILTER (WHERE state = 'settled' AND estimated)",
  held_nanos: "coalesce(sum(hold_nanos) FILTER (WHERE state = 'in_flight'), 0)",
  lost_nanos: 'sum(lost_list_nanos)',
  calls_credited: 'count(*) FILTER (WHERE credited)',
}

/**
 * The derived sums live in temporary tables of the database, so that memory does not depend on how many days, models
 * and keys there are. Sums are numeric, which has no end. The months and accounts are added up from the days, which
 * saves reading all calls again.
 */
export async function bookSums(
  db: Database,
  chunkCalls: number,
  monthsAway: readonly string[],
): Promise<Pick<BooksReader, 'addUp' | 'months' | 'days' | 'accounts' | 'floors'>> {
  await createTables(db)
  const floors = await deriveFloors(db, monthsAway)
  return {
    async addUp(onCalls) {
      await addCalls(db, floors, chunkCalls, onCalls)
      await takeDays(db, monthsAway)
      await db.query(
        `INSERT INTO derived_day (account_id, day, model, key_id, credited_nanos)
         SELECT call.account_id, day, ${MODEL}, key_id, sum(amount_nanos)
         FROM credit JOIN call ON call.id = credit.call_id GROUP BY 1, 2, 3, 4
         ON CONFLICT (account_id, day, model, key_id) DO UPDATE SET credited_nanos = excluded.credited_nanos`,
      )
      await db.query(
        `INSERT INTO derived_month
         SELECT key_id, left(day, 7), sum(cost_nanos), sum(held_nanos), sum(lost_nanos)
         FROM derived_day GROUP BY 1, 2`,
      )
      await takeLosses(db, monthsAway)
      await db.query('ANALYZE derived_day, derived_month')
    },

    months: () =>
      compared(db, MONTH_SUMS, {
        stored: 'key_month',
        derived: 'derived_month',
        // An admission makes the row before it knows whether the call is admitted.
        due: 'derived.key_id IS NOT NULL OR (stored.spent_nanos = 0 AND stored.held_nanos = 0 AND stored.lost_nanos = 0)',
        key: ['key_id', 'month'],
        where: (row) => `key ${text(row, 'key_id')}, month ${text(row, 'month')}`,
      }),

    days: () =>
      compared(db, DAY_SUMS, {
        stored: 'rollup',
        derived: 'derived_day',
        // A day on which calls were only interrupted, say, has no rollup.
        due: 'derived.requests > 0',
        key: ['account_id', 'day', 'model', 'key_id'],
        where: (row) =>
          `day ${text(row, 'day')}, model ${text(row, 'model')}, key ${text(row, 'key_id')}, account ${text(row, 'account_id')}`,
      }),

    async *accounts() {
      yield (await db.query(ACCOUNTS)).map(accountSums)
    },

    async *floors() {
      if (floors !== null) yield* floors.compared()
    },
  }
}

async function createTables(db: Database): Promise<void> {
  const sums = (columns: readonly string[]): string =>
    columns.map((column) => `${column} numeric NOT NULL DEFAULT 0`).join(', ')
  await db.query(
    `CREATE TEMP TABLE derived_day (account_id text, day text COLLATE "C", model text COLLATE "C",
       key_id text COLLATE "C", ${sums(DERIVED)}, PRIMARY KEY (account_id, day, model, key_id)) ON COMMIT DROP`,
  )
  await db.query(
    `CREATE TEMP TABLE derived_month (key_id text COLLATE "C", month text COLLATE "C", ${sums(MONTH_SUMS)},
       PRIMARY KEY (key_id, month)) ON COMMIT DROP`,
  )
}

/** In chunks, few enough calls that progress shows, and so many that finding the end of one costs nothing. */
async function addCalls(
  db: Database,
  floors: DerivedFloors | null,
  chunkCalls: number,
  onCalls: (count: number) => void,
): Promise<void> {
  const sums = DERIVED.map(
    (column) => EXPRESSIONS[column] ?? `coalesce(sum(${column}) FILTER (WHERE state = 'settled'), 0)`,
  )
  const added = DERIVED.map((column) => `${column} = derived_day.${column} + excluded.${column}`)
  for (let after = ''; ; ) {
    const [end] = await db.query(
      `SELECT id FROM call WHERE id > $1 ORDER BY id LIMIT 1 OFFSET ${chunkCalls - 1}`,
      [after],
    )
    await db.query(
      `INSERT INTO derived_day (account_id, day, model, key_id, ${DERIVED.join(', ')})
       SELECT account_id, day, ${MODEL}, key_id, ${sums.join(', ')}
       FROM call WHERE id > $1 AND ($2::text IS NULL OR id <= $2) GROUP BY 1, 2, 3, 4
       ON CONFLICT (account_id, day, model, key_id) DO UPDATE SET ${added.join(', ')}`,
      [after, end === undefined ? null : text(end, 'id')],
    )
    await floors?.add(after, end === undefined ? null : text(end, 'id'))
    onCalls(chunkCalls)
    if (end === undefined) return
    after = text(end, 'id')
  }
}

function accountSums(row: Row): AccountSums {
  const sum = (column: string): bigint => BigInt(text(row, column))
  return {
    id: text(row, 'id'),
    stored: {
      creditedNanos: nanos(row, 'credited_nanos'),
      chargedNanos: nanos(row, 'charged_nanos'),
      heldNanos: nanos(row, 'held_nanos'),
      enforced: bool(row, 'credit_enforced') ? 1n : 0n,
    },
    derived: {
      creditedNanos: sum('derived_credited'),
      chargedNanos: sum('derived_charged'),
      heldNanos: sum('derived_held'),
    },
    topUps: sum('top_ups'),
    callsMarkedCredited: sum('calls_credited'),
    callsCreditedBack: sum('credited_back'),
    foreignKey: textOrNull(row, 'foreign_key'),
  }
}

const ACCOUNTS = `
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
  SELECT account.id, credited_nanos, charged_nanos, held_nanos, credit_enforced,
    coalesce(amount, 0)::text AS derived_credited, coalesce(cost, 0)::text AS derived_charged,
    coalesce(held, 0)::text AS derived_held, coalesce(top_ups, 0)::text AS top_ups,
    coalesce(calls_credited, 0)::text AS calls_credited, coalesce(credited_back, 0)::text AS credited_back,
    foreign_key
  FROM account
    LEFT JOIN journal ON journal.account_id = account.id
    LEFT JOIN calls ON calls.account_id = account.id
    LEFT JOIN strangers ON strangers.account_id = account.id
  ORDER BY account.id`
