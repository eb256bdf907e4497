import { type Batches, FLOOR_FIGURES, type SumsRow } from '../../ledger/audited.ts'
import { HOLD_NANOS_MAX } from '../../ledger/decide-admission.ts'
import { compared } from './audit-compare.ts'
import type { Database } from './database.ts'
import { bool, present, text } from './rows.ts'

/** The floors that the calls should have left, put together from calls that cost more than they held. */
export interface DerivedFloors {
  /** Of the calls after the one id, up to the other, or to the last. */
  add(after: string, upTo: string | null): Promise<void>
  compared(): Batches<SumsRow>
}

/** Null: the books are from before there were floors. */
export async function deriveFloors(
  db: Database,
  monthsAway: readonly string[],
): Promise<DerivedFloors | null> {
  const [found] = await db.query("SELECT to_regclass('hold_floor') IS NOT NULL AS there")
  if (!bool(present(found), 'there')) return null
  await db.query(
    `CREATE TEMP TABLE derived_floor (key_id text COLLATE "C", month text COLLATE "C", endpoint text COLLATE "C",
       model text COLLATE "C", cost_nanos bigint NOT NULL, list_nanos bigint NOT NULL,
       mark integer NOT NULL DEFAULT 1, PRIMARY KEY (key_id, month, endpoint, model)) ON COMMIT DROP`,
  )
  await db.query(
    `INSERT INTO derived_floor SELECT key_id, month, endpoint, model, nanos, list_nanos FROM hold_floor
     WHERE month = ANY ($1)`,
    [monthsAway],
  )
  return {
    async add(after, upTo) {
      // A pair that is one too many has no row of its own, and stands under the row for all others of its key.
      await db.query(
        `INSERT INTO derived_floor (key_id, month, endpoint, model, cost_nanos, list_nanos)
         SELECT key_id, month, CASE WHEN is_own THEN endpoint ELSE '' END, CASE WHEN is_own THEN model ELSE '' END,
           max(least(cost_nanos, ${HOLD_NANOS_MAX})), max(least(list_nanos, ${HOLD_NANOS_MAX}))
         FROM (
           SELECT call.key_id, call.month, call.endpoint, coalesce(model_asked, '') AS model, cost_nanos, call.list_nanos,
             other.key_id IS NULL OR own.key_id IS NOT NULL AS is_own
           FROM call
             LEFT JOIN hold_floor AS own ON own.key_id = call.key_id AND own.month = call.month
               AND own.endpoint = call.endpoint AND own.model = coalesce(model_asked, '')
             LEFT JOIN hold_floor AS other ON other.key_id = call.key_id AND other.month = call.month
               AND other.endpoint = '' AND other.model = ''
           WHERE call.id > $1 AND ($2::text IS NULL OR call.id <= $2) AND overrun AND call.endpoint IS NOT NULL
         ) AS over GROUP BY 1, 2, 3, 4
         ON CONFLICT (key_id, month, endpoint, model) DO UPDATE SET
           cost_nanos = greatest(derived_floor.cost_nanos, excluded.cost_nanos),
           list_nanos = greatest(derived_floor.list_nanos, excluded.list_nanos)`,
        [after, upTo],
      )
    },
    compared: () =>
      compared(db, FLOOR_FIGURES, {
        stored: `(SELECT hold_floor.*, nanos AS cost_nanos, coalesce(has_floors, false)::int AS mark
          FROM hold_floor LEFT JOIN key_month USING (key_id, month))`,
        derived: 'derived_floor',
        due: 'derived.key_id IS NOT NULL',
        key: ['key_id', 'month', 'endpoint', 'model'],
        where: (row) =>
          `key ${text(row, 'key_id')}, month ${text(row, 'month')}, endpoint ${text(row, 'endpoint')}, model ${text(row, 'model')}`,
      }),
  }
}
