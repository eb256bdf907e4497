import type { DatabaseSync } from 'node:sqlite'
import { FLOOR_FIGURES, type SumsRow } from '../../ledger/audited.ts'
import { HOLD_NANOS_MAX } from '../../ledger/decide-admission.ts'
import { differing } from './audit-compare.ts'
import { text } from './rows.ts'

/** The floors that the calls should have left, put together from calls that cost more than they held. */
export interface DerivedFloors {
  /** Of the calls after the one id, up to the other. */
  add(after: string, upTo: string): void
  differing(): Iterable<SumsRow>
}

/** Null: the books are from before there were floors. */
export function deriveFloors(db: DatabaseSync): DerivedFloors | null {
  if (db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'hold_floor'").get() === undefined) return null
  db.exec(
    `CREATE TEMP TABLE derived_floor (key_id TEXT, month TEXT, endpoint TEXT, model TEXT, cost_nanos INTEGER NOT NULL,
       list_nanos INTEGER NOT NULL, mark INTEGER NOT NULL DEFAULT 1,
       PRIMARY KEY (key_id, month, endpoint, model)) STRICT, WITHOUT ROWID`,
  )
  // A pair that is one too many has no row of its own, and stands under the row for all others of its key.
  const add = db.prepare(
    `INSERT INTO temp.derived_floor (key_id, month, endpoint, model, cost_nanos, list_nanos)
     SELECT call.key_id, call.month, iif(other.key_id IS NULL OR own.key_id IS NOT NULL, call.endpoint, ''),
       iif(other.key_id IS NULL OR own.key_id IS NOT NULL, coalesce(model_asked, ''), ''),
       min(cost_nanos, ${HOLD_NANOS_MAX}), min(call.list_nanos, ${HOLD_NANOS_MAX})
     FROM call
       LEFT JOIN hold_floor AS own ON own.key_id = call.key_id AND own.month = call.month
         AND own.endpoint = call.endpoint AND own.model = coalesce(model_asked, '')
       LEFT JOIN hold_floor AS other ON other.key_id = call.key_id AND other.month = call.month
         AND other.endpoint = '' AND other.model = ''
     WHERE call.id > ? AND call.id <= ? AND overrun = 1 AND call.endpoint IS NOT NULL
     ON CONFLICT DO UPDATE SET cost_nanos = max(cost_nanos, excluded.cost_nanos),
       list_nanos = max(list_nanos, excluded.list_nanos)`,
  )
  return {
    add(after, upTo) {
      add.run(after, upTo)
    },
    differing: () =>
      differing(db, FLOOR_FIGURES, {
        stored: `(SELECT hold_floor.*, nanos AS cost_nanos, coalesce(has_floors, 0) AS mark
          FROM hold_floor LEFT JOIN key_month USING (key_id, month))`,
        derived: 'temp.derived_floor',
        due: 'derived.key_id IS NOT NULL',
        key: ['key_id', 'month', 'endpoint', 'model'],
        where: (row) =>
          `key ${text(row, 'key_id')}, month ${text(row, 'month')}, endpoint ${text(row, 'endpoint')}, model ${text(row, 'model')}`,
      }),
  }
}
