import type { DatabaseSync } from 'node:sqlite'
import { limits } from '../../kernel/limits.ts'
import type { CallClosing, HoldFloor } from '../../ledger/call.ts'
import { HOLD_NANOS_MAX } from '../../ledger/decide-admission.ts'
import type { BatchKeys } from './batch-keys.ts'
import { inArrays } from './batch-rows.ts'
import type { OpenCall } from './open-calls.ts'

/** What is learned for the holds of a key's month from calls that cost more than they held. */
export interface HoldFloors {
  /** To be asked only where the month says that there are some. */
  find(keyId: string, month: string, endpoint: string, model: string | null): HoldFloor | null
  /** The call cost more than it held. */
  raise(call: OpenCall, closing: CallClosing): void
}

export function prepareHoldFloors(db: DatabaseSync, keys: BatchKeys): HoldFloors {
  const select = inArrays(
    db.prepare(
      `SELECT max(nanos), max(list_nanos) FROM hold_floor
       WHERE key_id = ? AND month = ? AND ((endpoint = ? AND model = ?) OR (endpoint = '' AND model = ''))`,
    ),
  )
  const selectOwn = db.prepare(
    'SELECT 1 FROM hold_floor WHERE key_id = ? AND month = ? AND endpoint = ? AND model = ?',
  )
  const count = inArrays(db.prepare('SELECT count(*) FROM hold_floor WHERE key_id = ? AND month = ?'))
  const raise = db.prepare(
    `INSERT INTO hold_floor (key_id, month, endpoint, model, nanos, list_nanos) VALUES (?, ?, ?, ?, ?, ?)
     ON CONFLICT DO UPDATE SET nanos = max(nanos, excluded.nanos), list_nanos = max(list_nanos, excluded.list_nanos)`,
  )
  const markMonth = db.prepare(
    `INSERT INTO key_month (key_id, month, has_floors) VALUES (?, ?, 1)
     ON CONFLICT (key_id, month) DO UPDATE SET has_floors = 1`,
  )

  function hasOwn(keyId: string, month: string, endpoint: string, model: string): boolean {
    if (selectOwn.get(keyId, month, endpoint, model) !== undefined) return true
    const [rows] = count.get(keyId, month) as unknown as readonly [bigint]
    return rows < limits.holdFloorsMax
  }

  return {
    find(keyId, month, endpoint, model) {
      const row = select.get(keyId, month, endpoint, model ?? '') as unknown as [bigint | null, bigint | null]
      const [nanos, listNanos] = row
      return nanos === null || listNanos === null ? null : { nanos, listNanos }
    },

    raise({ keyId, month, endpoint, modelAsked }, { costNanos, listNanos }) {
      if (endpoint === null) return
      const model = modelAsked ?? ''
      const pair = hasOwn(keyId, month, endpoint, model) ? [endpoint, model] : ['', '']
      raise.run(keyId, month, ...pair, atMost(costNanos), atMost(listNanos))
      markMonth.run(keyId, month)
      // What this batch has read of the key may say that there are none.
      keys.forget()
    },
  }
}

function atMost(nanos: bigint): bigint {
  return nanos < HOLD_NANOS_MAX ? nanos : HOLD_NANOS_MAX
}
