import {
  type AuditCounts,
  type AuditedCall,
  type AuditedCredit,
  type Batches,
  type BooksReader,
  type OpenBooks,
  RERATE,
} from '../../ledger/audited.ts'
import { bookSums } from './audit-sums.ts'
import type { Database } from './database.ts'
import { openLedger, openSnapshot } from './ledger-snapshot.ts'
import { findMonthsAway } from './months-away.ts'
import { bool, nanos, nanosOrNull, number, present, type Row, text, textOrNull } from './rows.ts'

/** What the database adds up at once, in batches: it takes longer than a batch is read, and shows progress. */
const CHUNK_BATCHES = 10

/** Rows in memory at once. */
const BATCH_ROWS_MAX = 5_000

/** The books as they stand now, and as they stay for whoever reads them here. Null: there are none. */
export async function openBooks(url: string): Promise<OpenBooks | null> {
  const pool = await openLedger(url)
  if (pool === null) return null
  const { prepared, close } = await openSnapshot(pool, booksIn)
  return { ...prepared, close }
}

/** The books as one transaction sees them. */
export async function booksIn(db: Database, batchRows: number = BATCH_ROWS_MAX): Promise<BooksReader> {
  const versionJson = priceVersions(db)
  const monthsAway = await findMonthsAway(db)
  return {
    monthsAway,
    counts: () => readCounts(db),
    calls: () => readCalls(db, versionJson, batchRows),
    credits: () => readCredits(db, versionJson, batchRows, monthsAway.length > 0),
    ...(await bookSums(db, batchRows * CHUNK_BATCHES, monthsAway)),
  }
}

async function readCounts(db: Database): Promise<AuditCounts> {
  const count = async (table: string): Promise<number> => {
    const [row] = await db.query(`SELECT count(*) AS count FROM ${table}`)
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

/** A version is some 100 KB of text, and calls in order of time change it rarely: a few are enough to keep. */
const VERSIONS_KEPT_MAX = 64

function priceVersions(db: Database): VersionJson {
  const kept = new Map<string, string | null>()
  return async (id) => {
    const known = kept.get(id)
    if (known !== undefined) return known
    const [row] = await db.query('SELECT json FROM price_version WHERE id = $1', [id])
    const found = row === undefined ? null : text(row, 'json')
    if (kept.size >= VERSIONS_KEPT_MAX) kept.clear()
    kept.set(id, found)
    return found
  }
}

async function* readCalls(db: Database, versionJson: VersionJson, batchRows: number): Batches<AuditedCall> {
  for (let after = ''; ; ) {
    const rows = await db.query(
      `SELECT id, state, month, day, rating, price_version, usage, started_at_ms, overrun, input_tokens,
         output_tokens, cache_read_tokens, cache_write_tokens, hold_nanos, hold_list_nanos, lost_list_nanos,
         ended_at_ms, cost_nanos, list_nanos, balance_nanos
       FROM call WHERE id > $1 ORDER BY id LIMIT ${batchRows}`,
      [after],
    )
    const last = rows.at(-1)
    if (last === undefined) return
    const calls: AuditedCall[] = []
    for (const row of rows) calls.push(auditedCall(row, await versionJson(text(row, 'price_version'))))
    yield calls
    if (rows.length < batchRows) return
    after = text(last, 'id')
  }
}

function auditedCall(row: Row, priceVersionJson: string | null): AuditedCall {
  return {
    id: text(row, 'id'),
    state: text(row, 'state'),
    month: text(row, 'month'),
    day: text(row, 'day'),
    rating: text(row, 'rating'),
    priceVersion: text(row, 'price_version'),
    priceVersionJson,
    usage: textOrNull(row, 'usage'),
    startedAtMs: nanos(row, 'started_at_ms'),
    overrun: flag(row, 'overrun'),
    inputTokens: nanos(row, 'input_tokens'),
    outputTokens: nanos(row, 'output_tokens'),
    cacheReadTokens: nanos(row, 'cache_read_tokens'),
    cacheWriteTokens: nanos(row, 'cache_write_tokens'),
    holdNanos: nanos(row, 'hold_nanos'),
    holdListNanos: nanos(row, 'hold_list_nanos'),
    lostListNanos: nanos(row, 'lost_list_nanos'),
    endedAtMs: nanosOrNull(row, 'ended_at_ms'),
    costNanos: nanosOrNull(row, 'cost_nanos'),
    listNanos: nanosOrNull(row, 'list_nanos'),
    balanceNanos: nanosOrNull(row, 'balance_nanos'),
  }
}

/** Before every entry. */
const BEGINNING: CreditPlace = ['', false, '']
type CreditPlace = readonly [callId: string, isLast: boolean, id: string]

/**
 * First the entries about no call: the index that gives the others call by call does not hold them. Nothing is booked
 * about a call once it is credited back; the id of that entry may be older than that of a rerate before it, because it
 * is made before the store is asked.
 */
const CREDITS = [
  `SELECT * FROM credit WHERE call_id IS NULL AND id > $3::text AND ($1::text, $2::boolean) IS NOT NULL
   ORDER BY id`,
  `SELECT * FROM credit WHERE call_id >= $1::text
     AND (call_id, kind = 'credit_back', id) > ($1::text, $2::boolean, $3::text)
   ORDER BY call_id, kind = 'credit_back', id`,
]

async function* readCredits(
  db: Database,
  versionJson: VersionJson,
  batchRows: number,
  areCallsAway: boolean,
): Batches<AuditedCredit> {
  for (const entries of CREDITS) {
    let after: CreditPlace | null = BEGINNING
    while (after !== null) {
      const rows = await db.query(
        `SELECT entry.id, entry.account_id, kind, amount_nanos, call_id, once, call.account_id AS call_account_id,
           state, credited, cost_nanos, usage, rating
         FROM (${entries} LIMIT ${batchRows}) AS entry LEFT JOIN call ON call.id = entry.call_id
         ORDER BY call_id, kind = 'credit_back', entry.id`,
        after,
      )
      const credits: AuditedCredit[] = []
      for (const row of rows) {
        const credit = await auditedCredit(row, versionJson)
        // An entry does not say of which month its call was. One that is missing in a month that is here shows in sums.
        if (areCallsAway && credit.callId !== null && credit.call === null) continue
        credits.push(credit)
      }
      yield credits
      after = rows.length < batchRows ? null : placeAfter(rows)
    }
  }
}

function placeAfter(rows: readonly Row[]): CreditPlace | null {
  const last = rows.at(-1)
  if (last === undefined) return null
  return [textOrNull(last, 'call_id') ?? '', text(last, 'kind') === 'credit_back', text(last, 'id')]
}

async function auditedCredit(row: Row, versionJson: VersionJson): Promise<AuditedCredit> {
  const kind = text(row, 'kind')
  const once = textOrNull(row, 'once')
  const version = kind === 'rerate' && once?.startsWith(RERATE) ? once.slice(RERATE.length) : null
  const callAccountId = textOrNull(row, 'call_account_id')
  return {
    id: text(row, 'id'),
    accountId: text(row, 'account_id'),
    kind,
    amountNanos: nanos(row, 'amount_nanos'),
    callId: textOrNull(row, 'call_id'),
    once,
    call:
      callAccountId === null
        ? null
        : {
            accountId: callAccountId,
            state: text(row, 'state'),
            credited: flag(row, 'credited'),
            costNanos: nanosOrNull(row, 'cost_nanos'),
            usage: textOrNull(row, 'usage'),
            rating: text(row, 'rating'),
          },
    priceVersionJson: version === null ? null : await versionJson(version),
  }
}

function flag(row: Row, column: string): bigint {
  return bool(row, column) ? 1n : 0n
}
