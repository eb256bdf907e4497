import { COMMAND_LINE } from '../../kernel/actor.ts'
import type { Clock } from '../../kernel/clock.ts'
import { createUlidSource } from '../../kernel/ids.ts'
import {
  type Booked,
  type ChangedCall,
  creditOf,
  RERATE,
  type RerateCandidate,
  type RerateSelection,
  type RerateWriter,
} from '../../ledger/rerate.ts'
import { bool, nanos, number, present, type Row, text, textOrNull } from '../rows.ts'
import { recordBalanceMove } from './budget-events.ts'
import { CREDITED_NANOS, creditDays, moveAccount } from './credits.ts'
import type { Ask, Operation } from './operation.ts'
import { keepPriceVersion } from './settings.ts'
import { FOR_UPDATE, join, now, onPostgres, type Sql, sql } from './sql.ts'

/** Calls per batch: settlements of the account wait some tens of milliseconds for it. */
const RERATE_BATCH_CALLS = 2_000

export interface LedgerConnection {
  readonly ask: Ask
  /** Does the operation in one transaction. */
  doAtomically<T>(operate: () => Operation<T>): Promise<T>
  close(): Promise<void>
}

export function rerateWriter({ ask, doAtomically, close }: LedgerConnection, clock: Clock): RerateWriter {
  const nextUlid = createUlidSource(clock)
  return {
    async count(selection) {
      const [row] = await ask(sql`SELECT count(*) AS count FROM ${selected(selection, '')}`)
      return number(present(row), 'count')
    },

    async read(selection, afterId) {
      const rows = await ask(sql`
        SELECT id, account_id, key_id, day, coalesce(model_served, model_asked, '') AS model, started_at_ms, usage,
          rating, cost_nanos, list_nanos, ${CREDITED_NANOS} AS credited_nanos,
          EXISTS (SELECT 1 FROM credit WHERE credit.call_id = call.id AND kind = 'credit_back') AS credited_back,
          (SELECT string_agg(once, ${'\n'}) FROM credit WHERE credit.call_id = call.id AND kind = 'rerate') AS rerates
        FROM (SELECT * FROM ${selected(selection, afterId)} ORDER BY id LIMIT ${RERATE_BATCH_CALLS}) AS call
        ORDER BY id`)
      return rows.map(candidate)
    },

    book: (changed) => doAtomically(() => book(changed, nextUlid, clock.nowMs())),
    close,
  }
}

function selected({ fromMs, toMs, model, unpricedOnly }: RerateSelection, afterId: string): Sql {
  const ofModel = model === null ? sql`` : sql`AND (model_served = ${model} OR model_asked = ${model})`
  const unpriced = unpricedOnly ? sql`AND unpriced` : sql``
  return sql`call WHERE id > ${afterId} AND state = 'settled' AND started_at_ms >= ${fromMs}
    AND started_at_ms < ${toMs} ${ofModel} ${unpriced}`
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

/**
 * A rerate never edits the call itself: its record stays as it was billed then. The entry, the account's credit and the
 * credited sum of the day move together.
 */
function* book(changed: readonly ChangedCall[], nextUlid: () => string, atMs: number): Operation<Booked> {
  if (changed.length === 0) return { calls: 0, nanos: 0n }
  // A price version is some 100 KB of text, so it is sent once per batch, not once per call.
  for (const [id, json] of new Map(changed.map(({ version }) => [version.id, version.json])))
    yield* keepPriceVersion(id, json)

  const calls = changed.map(({ call }) => sql`(${call.id}, ${call.day.slice(0, 7)})`)
  yield onPostgres(sql`
    WITH changed (id, month) AS (VALUES ${join(calls)})
    SELECT 1 FROM call JOIN changed ON call.id = changed.id AND call.month = changed.month
    ORDER BY call.id ${FOR_UPDATE} OF call`)

  const entries = new Map(changed.map((one) => [`crd_${nextUlid()}`, one]))
  const inserted = yield insertEntries(entries, atMs)
  const booked = inserted.flatMap((row) => entries.get(text(row, 'id')) ?? [])
  const parts = booked.map((one) => ({ ...one.call, amountNanos: creditOf(one) }))
  const totals = new Map<string, bigint>()
  for (const { accountId, amountNanos } of parts)
    totals.set(accountId, (totals.get(accountId) ?? 0n) + amountNanos)
  for (const [accountId, total] of [...totals].sort()) {
    const balance = yield* moveAccount(accountId, total)
    yield* recordBalanceMove({ accountId, after: balance, movedNanos: total, actor: COMMAND_LINE }, atMs)
  }
  if (parts.length > 0) yield* creditDays(parts)
  return { calls: parts.length, nanos: parts.reduce((sum, { amountNanos }) => sum + amountNanos, 0n) }
}

/** The condition leaves out calls that were credited since they were read; the unique index prevents a second run. */
function insertEntries(entries: ReadonlyMap<string, ChangedCall>, atMs: number): Sql {
  const rows = [...entries].map(([id, one]) => {
    const { call, version } = one
    return sql`(${id}, ${call.accountId}, ${creditOf(one)}, ${`Priced again with ${version.id}`}, ${call.id},
      ${`${RERATE}${version.id}`}, ${call.creditedNanos})`
  })
  return sql`
    WITH entry (id, account_id, nanos, reason, call_id, once, credited) AS (VALUES ${join(rows)})
    INSERT INTO credit (id, account_id, kind, amount_nanos, reason, call_id, once, at_ms)
    SELECT id, account_id, 'rerate', nanos, reason, call_id, once, ${now(atMs)} FROM entry
    WHERE (SELECT coalesce(sum(amount_nanos), 0) FROM credit WHERE credit.call_id = entry.call_id) = credited
      AND NOT EXISTS (SELECT 1 FROM credit WHERE credit.call_id = entry.call_id AND kind = 'credit_back')
    ON CONFLICT DO NOTHING RETURNING id`
}
