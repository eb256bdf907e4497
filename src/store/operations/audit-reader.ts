import {
  type AuditCounts,
  type AuditedCall,
  type AuditedCredit,
  type Batches,
  type BooksReader,
  RERATE,
} from '../../ledger/audited.ts'
import { number, present, type Row, text, textOrNull } from '../rows.ts'
import { bookSums } from './audit-sums.ts'
import type { Ask } from './operation.ts'
import { byStore, onPostgres, raw, type Sql, sql } from './sql.ts'

/** The most rows in memory at once. */
const BATCH_ROWS_MAX = 5_000

/** The chunk that is added up at once, in batches: adding up takes longer than reading a batch, and shows progress. */
const CHUNK_BATCHES = 10

/** The books as one transaction sees them. Makes temporary tables, and writes nothing else. */
export async function booksIn(ask: Ask, batchRows: number = BATCH_ROWS_MAX): Promise<BooksReader> {
  const versionJson = priceVersions(ask)
  const monthsAway = await findMonthsAway(ask)
  return {
    monthsAway,
    counts: () => readCounts(ask),
    calls: () => readCalls(ask, versionJson, batchRows),
    credits: () => readCredits(ask, versionJson, batchRows, monthsAway.length > 0),
    ...(await bookSums(ask, batchRows * CHUNK_BATCHES, monthsAway)),
  }
}

/** Months that have sums, and whose partition of calls has been detached. */
async function findMonthsAway(ask: Ask): Promise<string[]> {
  const rows = await ask(
    onPostgres(`
      WITH kept AS (
        SELECT DISTINCT left(day, 7) AS month FROM rollup
        UNION SELECT month FROM key_month WHERE spent_nanos <> 0 OR held_nanos <> 0 OR lost_nanos <> 0
      ), here AS (
        SELECT replace(right(relname, 7), '_', '-') AS month
        FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid WHERE inhparent = 'call'::regclass
      )
      SELECT month FROM kept WHERE month NOT IN (SELECT month FROM here) ORDER BY month`),
  )
  return rows.map((row) => text(row, 'month'))
}

async function readCounts(ask: Ask): Promise<AuditCounts> {
  const count = async (table: string): Promise<number> => {
    const [row] = await ask(sql`SELECT count(*) AS count FROM ${raw(table)}`)
    return number(present(row), 'count')
  }
  return {
    calls: await count('call'),
    keys: await count('api_key'),
    months: await count('key_month'),
    days: await count('rollup'),
    credits: await count('credit'),
  }
}

type VersionJson = (id: string) => Promise<string | null>

/** A price version is some 100 KB of text, and calls in order of time rarely change it: a cache of a few is enough. */
const VERSIONS_KEPT_MAX = 64

function priceVersions(ask: Ask): VersionJson {
  const kept = new Map<string, string | null>()
  return async (id) => {
    const known = kept.get(id)
    if (known !== undefined) return known
    const [row] = await ask(sql`SELECT json FROM price_version WHERE id = ${id}`)
    const found = row === undefined ? null : text(row, 'json')
    if (kept.size >= VERSIONS_KEPT_MAX) kept.clear()
    kept.set(id, found)
    return found
  }
}

/** A flag as the number that SQLite keeps. */
function flagNumber(column: string): Sql {
  return byStore({ sqlite: column, postgres: `${column}::int::bigint` })
}

/** The columns are named as in `AuditedCall`, so that a row is one: making another object costs more than reading the row. */
const CALL_COLUMNS = sql`id, state, month, day, rating, usage, price_version AS "priceVersion",
  started_at_ms AS "startedAtMs", ended_at_ms AS "endedAtMs", ${flagNumber('overrun')} AS overrun,
  input_tokens AS "inputTokens", output_tokens AS "outputTokens", cache_read_tokens AS "cacheReadTokens",
  cache_write_tokens AS "cacheWriteTokens", hold_nanos AS "holdNanos", hold_list_nanos AS "holdListNanos",
  lost_list_nanos AS "lostListNanos", cost_nanos AS "costNanos", list_nanos AS "listNanos",
  balance_nanos AS "balanceNanos"`

async function* readCalls(ask: Ask, versionJson: VersionJson, batchRows: number): Batches<AuditedCall> {
  for (let after = ''; ; ) {
    const rows = await ask(
      sql`SELECT ${CALL_COLUMNS} FROM call WHERE id > ${after} ORDER BY id LIMIT ${batchRows}`,
    )
    const last = rows.at(-1)
    if (last === undefined) return
    const calls: AuditedCall[] = []
    let version = ''
    let priceVersionJson: string | null = null
    for (const row of rows as unknown as readonly AuditedCall[]) {
      if (row.priceVersion !== version || calls.length === 0) {
        version = row.priceVersion
        priceVersionJson = await versionJson(version)
      }
      calls.push(Object.assign(row, { priceVersionJson }))
    }
    yield calls
    if (rows.length < batchRows) return
    after = text(last, 'id')
  }
}

/** The place before every entry. */
const BEGINNING: CreditPlace = ['', false, '']
type CreditPlace = readonly [callId: string, isLast: boolean, id: string]

/** Without the hint SQLite might sort all entries for each batch. */
const BY_CALL = byStore({ sqlite: 'INDEXED BY credit_once', postgres: '' })

/**
 * Entries about no call come first: the index that gives the others call by call does not hold them. No entry is booked
 * about a call after its credit-back; the id of the credit-back may be older than that of a rerate before it, because the
 * id is made before the store is asked.
 */
const CREDITS: readonly ((after: CreditPlace) => Sql)[] = [
  ([, , id]) => sql`credit WHERE call_id IS NULL AND id > ${id} ORDER BY id`,
  ([callId, isLast, id]) => sql`credit ${BY_CALL} WHERE call_id >= ${callId}
    AND (call_id, kind = 'credit_back', id) > (${callId}, ${isLast}, ${id})
    ORDER BY call_id, kind = 'credit_back', id`,
]

async function* readCredits(
  ask: Ask,
  versionJson: VersionJson,
  batchRows: number,
  areCallsAway: boolean,
): Batches<AuditedCredit> {
  for (const entries of CREDITS) {
    let after: CreditPlace | null = BEGINNING
    while (after !== null) {
      const rows = await ask(sql`
        SELECT entry.id, entry.account_id AS "accountId", kind, amount_nanos AS "amountNanos", call_id AS "callId",
          once, call.account_id AS "callAccountId", state, ${flagNumber('credited')} AS credited,
          cost_nanos AS "costNanos", usage, rating
        FROM (SELECT * FROM ${entries(after)} LIMIT ${batchRows}) AS entry LEFT JOIN call ON call.id = entry.call_id
        ORDER BY call_id, kind = 'credit_back', entry.id`)
      const credits: AuditedCredit[] = []
      for (const row of rows) {
        const credit = await auditedCredit(row as unknown as CreditRow, versionJson)
        // An entry does not name the month of its call. A call that is missing in a month that is here shows in the sums.
        if (areCallsAway && credit.callId !== null && credit.call === null) continue
        credits.push(credit)
      }
      yield credits
      after = rows.length < batchRows ? null : placeAfter(rows)
    }
  }
}

type CreditRow = Omit<AuditedCredit, 'call' | 'priceVersionJson'> &
  Omit<NonNullable<AuditedCredit['call']>, 'accountId'> & { readonly callAccountId: string | null }

function placeAfter(rows: readonly Row[]): CreditPlace | null {
  const last = rows.at(-1)
  if (last === undefined) return null
  return [textOrNull(last, 'callId') ?? '', text(last, 'kind') === 'credit_back', text(last, 'id')]
}

async function auditedCredit(row: CreditRow, versionJson: VersionJson): Promise<AuditedCredit> {
  const { id, accountId, kind, amountNanos, callId, once, callAccountId } = row
  const { state, credited, costNanos, usage, rating } = row
  const version = kind === 'rerate' && once?.startsWith(RERATE) ? once.slice(RERATE.length) : null
  return {
    ...{ id, accountId, kind, amountNanos, callId, once },
    call:
      callAccountId === null ? null : { accountId: callAccountId, state, credited, costNanos, usage, rating },
    priceVersionJson: version === null ? null : await versionJson(version),
  }
}
