import type { Clock } from '../../kernel/clock.ts'
import { createUlidSource } from '../../kernel/ids.ts'
import { COMMAND_LINE } from '../../kernel/vocabulary.ts'
import {
  type Booked,
  type ChangedCall,
  CREDIT_BACK,
  creditOf,
  RERATE,
  type RerateCandidate,
  type RerateSelection,
  type RerateWriter,
} from '../../ledger/rerate.ts'
import { bool, number, present, type Row, recordOf, text, textOrNull } from '../rows.ts'
import { bookEntry, CREDITED_NANOS, creditDays } from './credits.ts'
import type { Ask, Operation } from './operation.ts'
import { storePriceVersion } from './settings.ts'
import { FOR_UPDATE, join, onPostgres, type Sql, sql } from './sql.ts'

/** Calls per batch. Settlements of the account wait tens of milliseconds for one. */
const RERATE_BATCH_CALLS = 2_000

export interface LedgerConnection {
  readonly ask: Ask
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
          credited AS credited_back,
          (SELECT string_agg(once, ${'\n'}) FROM credit_call WHERE call_id = call.id AND once <> ${CREDIT_BACK}) AS rerates
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
  const rerates = textOrNull(row, 'rerates')?.split('\n') ?? []
  return { ...recordOf<RerateCandidate>(row), creditedBack: bool(row, 'credited_back'), rerates }
}

/**
 * A rerate never changes the call: its record stays as billed. The ledger entry, the account's credit and the credited
 * sum of the day change together.
 */
function* book(changed: readonly ChangedCall[], nextUlid: () => string, atMs: number): Operation<Booked> {
  if (changed.length === 0) return { calls: 0, nanos: 0n }
  // A price version is about 100 KB, so it is sent once per batch, not per call.
  for (const [id, json] of new Map(changed.map(({ version }) => [version.id, version.json])))
    yield* storePriceVersion(id, json)

  const calls = changed.map(({ call }) => sql`(${call.id}, ${call.day.slice(0, 7)})`)
  yield onPostgres(sql`
    WITH changed (id, month) AS (VALUES ${join(calls)})
    SELECT 1 FROM call JOIN changed ON call.id = changed.id AND call.month = changed.month
    ORDER BY call.id ${FOR_UPDATE} OF call`)

  // One ledger entry per account.
  const accountIds = [...new Set(changed.map(({ call }) => call.accountId))].sort()
  const creditIds = new Map(accountIds.map((accountId) => [accountId, `crd_${nextUlid()}`]))
  const inserted = yield insertCalls(changed, creditIds)
  const byCall = new Map(changed.map((one) => [one.call.id, one]))
  const booked = inserted.flatMap((row) => byCall.get(text(row, 'call_id')) ?? [])
  const parts = booked.map((one) => ({ ...one.call, amountNanos: creditOf(one) }))
  for (const [accountId, id] of creditIds) {
    const own = parts.filter((part) => part.accountId === accountId)
    if (own.length === 0) continue
    const amountNanos = own.reduce((sum, part) => sum + part.amountNanos, 0n)
    const reason = `${own.length} calls priced again`
    yield* bookEntry({
      ...{ id, accountId, kind: 'correction', amountNanos, reason, actor: COMMAND_LINE, atMs },
    })
  }
  if (parts.length > 0) yield* creditDays(parts)
  return { calls: parts.length, nanos: parts.reduce((sum, { amountNanos }) => sum + amountNanos, 0n) }
}

/** The condition skips calls that were credited since they were read; the primary key prevents a second run. */
function insertCalls(changed: readonly ChangedCall[], creditIds: ReadonlyMap<string, string>): Sql {
  const rows = changed.map((one) => {
    const { call, version } = one
    return sql`(${call.id}, ${RERATE + version.id}, ${creditIds.get(call.accountId) ?? ''}, ${creditOf(one)},
      ${call.creditedNanos})`
  })
  return sql`
    WITH one (call_id, once, credit_id, nanos, credited) AS (VALUES ${join(rows)})
    INSERT INTO credit_call (call_id, once, credit_id, amount_nanos)
    SELECT call_id, once, credit_id, nanos FROM one
    WHERE (SELECT coalesce(sum(amount_nanos), 0) FROM credit_call AS other WHERE other.call_id = one.call_id) = credited
      AND NOT EXISTS (
        SELECT 1 FROM credit_call AS other WHERE other.call_id = one.call_id AND other.once = ${CREDIT_BACK})
    ON CONFLICT DO NOTHING RETURNING call_id`
}
