import type { DatabaseSync } from 'node:sqlite'
import {
  type AccountSums,
  type Batches,
  type BooksReader,
  DAY_SUMS,
  MONTH_SUMS,
  type SumsRow,
} from '../../ledger/audited.ts'
import { type Comparison, differing } from './audit-compare.ts'
import { type DerivedFloors, deriveFloors } from './audit-floors.ts'
import { inBatches } from './in-batches.ts'
import { nanos, text, textOrNull } from './rows.ts'

/** Few enough that a chunk is grouped in memory, and many enough that finding its end costs nothing. */
const CHUNK_CALLS = 10_000

const MODEL = "coalesce(model_served, model_asked, '')"

/** Sums over calls that are not in a rollup, though a key's month or the account has them. */
const OTHER_SUMS = ['held_nanos', 'lost_nanos', 'calls_credited'] as const
const DERIVED = [...DAY_SUMS, ...OTHER_SUMS]

/** Where nothing is said, the sum of the column over settled calls. */
const EXPRESSIONS: Readonly<Record<string, string>> = {
  requests: "sum(state = 'settled')",
  credited_nanos: '0',
  unpriced_requests: "sum(iif(state = 'settled', unpriced, 0))",
  estimated_requests: "sum(iif(state = 'settled', estimated, 0))",
  held_nanos: "sum(iif(state = 'in_flight', hold_nanos, 0))",
  lost_nanos: 'sum(lost_list_nanos)',
  calls_credited: 'sum(credited)',
}

/**
 * The derived sums live in temporary tables, on disk if they grow, so that memory does not depend on how many days,
 * models and keys there are. The months and accounts are added up from the days, which saves reading all calls again.
 */
export function bookSums(
  db: DatabaseSync,
): Pick<BooksReader, 'addUp' | 'months' | 'days' | 'accounts' | 'floors'> {
  let floors: DerivedFloors | null = null
  return {
    async addUp(onCalls) {
      createTables(db)
      floors = deriveFloors(db)
      addCalls(db, floors, onCalls)
      db.exec(
        `INSERT INTO temp.derived_day (account_id, day, model, key_id, credited_nanos)
           SELECT call.account_id, day, ${MODEL}, key_id, sum(amount_nanos)
           FROM credit JOIN call ON call.id = credit.call_id GROUP BY 1, 2, 3, 4
           ON CONFLICT DO UPDATE SET credited_nanos = excluded.credited_nanos;
         INSERT INTO temp.derived_month
           SELECT key_id, substr(day, 1, 7), sum(cost_nanos), sum(held_nanos), sum(lost_nanos)
           FROM temp.derived_day GROUP BY 1, 2;`,
      )
    },

    months: () =>
      compared(db, MONTH_SUMS, {
        stored: 'key_month',
        derived: 'temp.derived_month',
        due: 'derived.key_id IS NOT NULL',
        key: ['key_id', 'month'],
        where: (row) => `key ${text(row, 'key_id')}, month ${text(row, 'month')}`,
      }),

    days: () =>
      compared(db, DAY_SUMS, {
        stored: 'rollup',
        derived: 'temp.derived_day',
        // A day on which calls were only interrupted, say, has no rollup.
        due: 'derived.requests > 0',
        key: ['account_id', 'day', 'model', 'key_id'],
        where: (row) =>
          `day ${text(row, 'day')}, model ${text(row, 'model')}, key ${text(row, 'key_id')}, account ${text(row, 'account_id')}`,
      }),

    accounts: () => inBatches(readAccounts(db)),
    floors: () => inBatches(floors?.differing() ?? []),
  }
}

function* readAccounts(db: DatabaseSync): Iterable<AccountSums> {
  for (const row of db.prepare(ACCOUNTS).iterate()) {
    yield {
      id: text(row, 'id'),
      stored: {
        creditedNanos: nanos(row, 'credited_nanos'),
        chargedNanos: nanos(row, 'charged_nanos'),
        heldNanos: nanos(row, 'held_nanos'),
        enforced: nanos(row, 'credit_enforced'),
      },
      derived: {
        creditedNanos: nanos(row, 'derived_credited'),
        chargedNanos: nanos(row, 'derived_charged'),
        heldNanos: nanos(row, 'derived_held'),
      },
      topUps: nanos(row, 'top_ups'),
      callsMarkedCredited: nanos(row, 'calls_credited'),
      callsCreditedBack: nanos(row, 'credited_back'),
      foreignKey: textOrNull(row, 'foreign_key'),
    }
  }
}

function createTables(db: DatabaseSync): void {
  db.exec(
    `CREATE TEMP TABLE derived_day (account_id TEXT, day TEXT, model TEXT, key_id TEXT,
       ${DERIVED.map((column) => `${column} INTEGER NOT NULL DEFAULT 0`).join(', ')},
       PRIMARY KEY (account_id, day, model, key_id)) STRICT, WITHOUT ROWID;
     CREATE TEMP TABLE derived_month (key_id TEXT, month TEXT,
       ${MONTH_SUMS.map((column) => `${column} INTEGER NOT NULL`).join(', ')},
       PRIMARY KEY (key_id, month)) STRICT, WITHOUT ROWID;`,
  )
}

function addCalls(db: DatabaseSync, floors: DerivedFloors | null, onCalls: (count: number) => void): void {
  const sums = DERIVED.map((column) => EXPRESSIONS[column] ?? `sum(iif(state = 'settled', ${column}, 0))`)
  const add = db.prepare(
    `INSERT INTO temp.derived_day (account_id, day, model, key_id, ${DERIVED.join(', ')})
     SELECT account_id, day, ${MODEL}, key_id, ${sums.join(', ')}
     FROM call WHERE id > ? AND id <= ? GROUP BY 1, 2, 3, 4
     ON CONFLICT DO UPDATE SET ${DERIVED.map((column) => `${column} = ${column} + excluded.${column}`).join(', ')}`,
  )
  const findEnd = db.prepare(`SELECT id FROM call WHERE id > ? ORDER BY id LIMIT 1 OFFSET ${CHUNK_CALLS - 1}`)
  const findLast = db.prepare('SELECT id FROM call ORDER BY id DESC LIMIT 1')
  const last = findLast.get()?.['id']
  if (typeof last !== 'string') return
  for (let after = ''; after < last; ) {
    const end = String(findEnd.get(after)?.['id'] ?? last)
    add.run(after, end)
    floors?.add(after, end)
    after = end
    onCalls(CHUNK_CALLS)
  }
}

function compared(db: DatabaseSync, columns: readonly string[], tables: Comparison): Batches<SumsRow> {
  return inBatches(differing(db, columns, tables))
}

const ACCOUNTS = `
  WITH journal AS (
    SELECT account_id, sum(amount_nanos) AS amount, sum(kind = 'top_up') AS top_ups,
      count(DISTINCT iif(kind = 'credit_back', call_id, NULL)) AS credited_back
    FROM credit GROUP BY account_id
  ), calls AS (
    SELECT account_id, sum(cost_nanos) AS cost, sum(held_nanos) AS held, sum(calls_credited) AS calls_credited
    FROM temp.derived_day GROUP BY account_id
  ), strangers AS (
    SELECT derived_day.account_id, min(key_id) AS foreign_key
    FROM temp.derived_day LEFT JOIN api_key ON api_key.id = key_id
    WHERE api_key.account_id IS NOT derived_day.account_id GROUP BY 1
  )
  SELECT account.id, credited_nanos, charged_nanos, held_nanos, credit_enforced,
    coalesce(amount, 0) AS derived_credited, coalesce(cost, 0) AS derived_charged,
    coalesce(held, 0) AS derived_held, coalesce(top_ups, 0) AS top_ups,
    coalesce(calls_credited, 0) AS calls_credited, coalesce(credited_back, 0) AS credited_back, foreign_key
  FROM account
    LEFT JOIN journal ON journal.account_id = account.id
    LEFT JOIN calls ON calls.account_id = account.id
    LEFT JOIN strangers ON strangers.account_id = account.id
  ORDER BY account.id`
