import type { DatabaseSync } from 'node:sqlite'
import type { Clock } from '../../kernel/clock.ts'
import { createUlidSource } from '../../kernel/ids.ts'
import { RERATE } from '../../ledger/audited.ts'
import {
  type ChangedCall,
  creditOf,
  type RerateCandidate,
  type RerateSelection,
  type RerateWriter,
} from '../../ledger/rerate.ts'
import { openLedgerFile } from './audit-reader.ts'
import { integer, nanos, number, present, type Row, text, textOrNull } from './rows.ts'

/** Calls per batch: some tens of milliseconds during which the gateway beside us waits for the write lock. */
export const RERATE_BATCH_CALLS = 2_000

const SELECTED = `
  FROM call
  WHERE id > :after AND state = 'settled' AND started_at_ms >= :from AND started_at_ms < :to
    AND (:model IS NULL OR model_served = :model OR model_asked = :model)
    AND (:unpriced_only = 0 OR unpriced = 1)`

export function openRerateWriter(file: string, clock: Clock): RerateWriter | null {
  const db = openLedgerFile(file, { readOnly: false })
  if (db === null) return null
  // A booking that was reported must outlast a power cut, as one of the gateway does.
  db.exec('PRAGMA synchronous = FULL')
  const countCalls = db.prepare(`SELECT count(*) AS count ${SELECTED}`)
  const selectCalls = db.prepare(
    `SELECT id, account_id, key_id, day, coalesce(model_served, model_asked, '') AS model, started_at_ms, usage,
       rating, cost_nanos, list_nanos,
       (SELECT coalesce(sum(amount_nanos), 0) FROM credit WHERE call_id = call.id) AS credited_nanos,
       EXISTS (SELECT 1 FROM credit WHERE call_id = call.id AND kind = 'credit_back') AS credited_back,
       (SELECT group_concat(once, char(10)) FROM credit WHERE call_id = call.id AND kind = 'rerate') AS rerates
     ${SELECTED} ORDER BY id LIMIT ${RERATE_BATCH_CALLS}`,
  )
  return {
    count: async (selection) => number(present(countCalls.get(bind(selection, ''))), 'count'),
    read: async (selection, afterId) => selectCalls.all(bind(selection, afterId)).map(candidate),
    book: bookIn(db, clock),
    async close() {
      db.close()
    },
  }
}

function bind(selection: RerateSelection, afterId: string) {
  return {
    after: afterId,
    from: integer(selection.fromMs),
    to: integer(selection.toMs),
    model: selection.model,
    unpriced_only: selection.unpricedOnly ? 1n : 0n,
  }
}

function candidate(row: Row): RerateCandidate {
  return {
    id: text(row, 'id'),
    accountId: text(row, 'account_id'),
    keyId: text(row, 'key_id'),
    day: text(row, 'day'),
    model: text(row, 'model'),
    startedAtMs: number(row, 'started_at_ms'),
    usage: textOrNull(row, 'usage'),
    rating: text(row, 'rating'),
    costNanos: nanos(row, 'cost_nanos'),
    listNanos: nanos(row, 'list_nanos'),
    creditedNanos: nanos(row, 'credited_nanos'),
    creditedBack: row['credited_back'] === 1n,
    rerates: textOrNull(row, 'rerates')?.split('\n') ?? [],
  }
}

/**
 * The call itself is never edited: its record stays what was billed then. The entry, the account's credit and what
 * the day shows as credited move together.
 */
function bookIn(db: DatabaseSync, clock: Clock): RerateWriter['book'] {
  const nextUlid = createUlidSource(clock)
  const keepVersion = db.prepare('INSERT OR IGNORE INTO price_version (id, json) VALUES (?, ?)')
  // The condition holds off whoever credited the call since it was read; the unique index holds off a second run.
  const insertEntry = db.prepare(
    `INSERT INTO credit (id, account_id, kind, amount_nanos, reason, call_id, once, at_ms)
     SELECT :id, :account, 'rerate', :amount, :reason, :call, :once, :at
     WHERE (SELECT coalesce(sum(amount_nanos), 0) FROM credit WHERE call_id = :call) = :credited
       AND NOT EXISTS (SELECT 1 FROM credit WHERE call_id = :call AND kind = 'credit_back')
     ON CONFLICT DO NOTHING`,
  )
  const moveAccount = db.prepare('UPDATE account SET credited_nanos = credited_nanos + ? WHERE id = ?')
  const moveRollup = db.prepare(
    `UPDATE rollup SET credited_nanos = credited_nanos + ?
     WHERE account_id = ? AND day = ? AND model = ? AND key_id = ?`,
  )

  function bookOne(changed: ChangedCall, atMs: number): boolean {
    const { call, version } = changed
    const amountNanos = creditOf(changed)
    const inserted = insertEntry.run({
      id: `crd_${nextUlid()}`,
      account: call.accountId,
      amount: amountNanos,
      reason: `Priced again with ${version.id}`,
      call: call.id,
      once: `${RERATE}${version.id}`,
      at: integer(atMs),
      credited: call.creditedNanos,
    })
    if (inserted.changes === 0n) return false
    moveAccount.run(amountNanos, call.accountId)
    const moved = moveRollup.run(amountNanos, call.accountId, call.day, call.model, call.keyId)
    if (moved.changes !== 1n) {
      throw new Error(
        `there is no rollup for call ${call.id}; tollgate audit says what is wrong with the books`,
      )
    }
    return true
  }

  return async (changed) => {
    let calls = 0
    let total = 0n
    db.exec('BEGIN IMMEDIATE')
    try {
      const atMs = clock.nowMs()
      // A version is some 100 KB of text: once per batch, not once per call.
      for (const [id, json] of new Map(changed.map(({ version }) => [version.id, version.json]))) {
        keepVersion.run(id, json)
      }
      for (const one of changed) {
        if (!bookOne(one, atMs)) continue
        calls += 1
        total += creditOf(one)
      }
      db.exec('COMMIT')
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK')
      throw error
    }
    return { calls, nanos: total }
  }
}
