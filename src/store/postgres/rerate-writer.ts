import type { Clock } from '../../kernel/clock.ts'
import { createUlidSource } from '../../kernel/ids.ts'
import { RERATE } from '../../ledger/audited.ts'
import {
  creditOf,
  type RerateCandidate,
  type RerateSelection,
  type RerateWriter,
} from '../../ledger/rerate.ts'
import { toKeptJson } from './any-text.ts'
import { Bound } from './bound.ts'
import { askAtLength, openLedger } from './ledger-snapshot.ts'
import { monthRange } from './month-range.ts'
import { bool, nanos, number, present, type Row, text, textOrNull } from './rows.ts'

/** Calls per batch: some tens of milliseconds during which settlements of the account wait. */
export const RERATE_BATCH_CALLS = 2_000

export async function openRerateWriter(url: string, clock: Clock): Promise<RerateWriter | null> {
  const db = await openLedger(url)
  if (db === null) return null
  const nextUlid = createUlidSource(clock)
  return {
    async count(selection) {
      const bound = new Bound()
      const [row] = await askAtLength(
        db,
        `SELECT count(*) AS count FROM ${selected(bound, selection, '')}`,
        bound.values,
      )
      return number(present(row), 'count')
    },

    async read(selection, afterId) {
      const bound = new Bound()
      const rows = await askAtLength(
        db,
        `SELECT id, account_id, key_id, day, coalesce(model_served, model_asked, '') AS model, started_at_ms, usage,
           rating, cost_nanos, list_nanos, entries.*
         FROM (SELECT * FROM ${selected(bound, selection, afterId)} ORDER BY id LIMIT ${RERATE_BATCH_CALLS}) AS call,
           LATERAL (
             SELECT coalesce(sum(amount_nanos), 0)::bigint AS credited_nanos,
               coalesce(bool_or(kind = 'credit_back'), false) AS credited_back,
               string_agg(once, chr(10)) FILTER (WHERE kind = 'rerate') AS rerates
             FROM credit WHERE credit.call_id = call.id
           ) AS entries
         ORDER BY id`,
        bound.values,
      )
      return rows.map(candidate)
    },

    async book(changed) {
      // A version is some 100 KB of text: once per batch, not once per call.
      for (const [id, json] of new Map(changed.map(({ version }) => [version.id, version.json]))) {
        await db.query('INSERT INTO price_version (id, json) VALUES ($1, $2) ON CONFLICT DO NOTHING', [
          id,
          json,
        ])
      }
      const entries = changed.map((one) => ({
        id: `crd_${nextUlid()}`,
        accountId: one.call.accountId,
        nanos: String(creditOf(one)),
        reason: `Priced again with ${one.version.id}`,
        callId: one.call.id,
        once: `${RERATE}${one.version.id}`,
        credited: String(one.call.creditedNanos),
        day: one.call.day,
        model: one.call.model,
        keyId: one.call.keyId,
      }))
      const [row] = await db.query(
        'SELECT calls, nanos::text AS nanos FROM book_rerates($1::jsonb, now_ms())',
        [toKeptJson(entries)],
      )
      const booked = present(row)
      return { calls: number(booked, 'calls'), nanos: BigInt(text(booked, 'nanos')) }
    },

    close: () => db.close(),
  }
}

function selected(bound: Bound, selection: RerateSelection, afterId: string): string {
  const { fromMs, toMs, model, unpricedOnly } = selection
  const where = [
    `id > ${bound.as('text', afterId)}`,
    "state = 'settled'",
    `started_at_ms >= ${bound.integer(fromMs)}`,
    `started_at_ms < ${bound.integer(toMs)}`,
    ...monthRange(bound, fromMs, toMs),
  ]
  if (model !== null) {
    const name = bound.as('text', model)
    where.push(`(model_served = ${name} OR model_asked = ${name})`)
  }
  if (unpricedOnly) where.push('unpriced')
  return `call WHERE ${where.join(' AND ')}`
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
    creditedBack: bool(row, 'credited_back'),
    rerates: textOrNull(row, 'rerates')?.split('\n') ?? [],
  }
}
