import type { CallClosing, CallOpening } from '../../ledger/call.ts'
import { nanos, nanosOrNull, number, present, type Row, recordOf, text, textOrNull } from '../rows.ts'
import { BALANCE_LOW, BUDGET_THRESHOLDS } from './events.ts'
import { ACCOUNT_COLUMNS, BUDGET_COLUMNS, MoneyRows } from './money-rows.ts'
import { type Batch, step } from './operation.ts'
import { FOR_UPDATE, oneOf, onPostgres, prepare, prepareLists, raw } from './sql.ts'

/** Calls to settle and calls to admit in one transaction. */
export interface CallBatch {
  readonly closings: readonly CallClosing[]
  readonly openings: readonly CallOpening[]
}

export interface BatchParts {
  /** The node that sends the batch, which must not be fenced. Null: no node. */
  readonly node: { readonly id: string; readonly epoch: bigint } | null
  readonly clock: 'database' | 'caller'
}

export interface BatchRows {
  /** The keys of the openings, by `digestName`. */
  readonly keys: ReadonlyMap<string, KeyRow>
  readonly calls: ReadonlyMap<string, CallRow>
  readonly money: MoneyRows
  /** The batch files that the calls name, if the same key uploaded them. */
  readonly files: ReadonlyMap<CallOpening, Row | undefined>
  readonly settings: readonly Row[]
  /** The database's clock, for all calls; null if each call brings its own time. */
  readonly nowMs: number | null
}

export interface KeyRow {
  readonly id: string
  readonly accountId: string
  readonly budgetId: string
  readonly digest: Uint8Array
  readonly revokedAtMs: number | null
  readonly expiresAtMs: number | null
  readonly allowedModels: readonly string[] | null
  readonly logRequests: boolean
}

/** A call to settle, as its admission or an earlier closing left it. */
export interface CallRow {
  readonly id: string
  readonly accountId: string
  readonly keyId: string
  readonly budgetId: string
  readonly state: string
  readonly startedAtMs: number
  readonly month: string
  readonly day: string
  readonly modelAsked: string | null
  readonly endpoint: string | null
  readonly holdNanos: bigint
  readonly holdListNanos: bigint
  readonly accountHoldNanos: bigint
  readonly lostListNanos: bigint
  readonly balanceNanos: bigint | null
  readonly requests: number
}

/** Written without `recordOf`, which takes four times as long and would run for each settled call. */
function callRow(row: Row): CallRow {
  return {
    id: text(row, 'id'),
    accountId: text(row, 'account_id'),
    keyId: text(row, 'key_id'),
    budgetId: text(row, 'budget_id'),
    state: text(row, 'state'),
    startedAtMs: number(row, 'started_at_ms'),
    month: text(row, 'month'),
    day: text(row, 'day'),
    modelAsked: textOrNull(row, 'model_asked'),
    endpoint: textOrNull(row, 'endpoint'),
    holdNanos: nanos(row, 'hold_nanos'),
    holdListNanos: nanos(row, 'hold_list_nanos'),
    accountHoldNanos: nanos(row, 'account_hold_nanos'),
    lostListNanos: nanos(row, 'lost_list_nanos'),
    balanceNanos: nanosOrNull(row, 'balance_nanos'),
    requests: number(row, 'requests'),
  }
}

/** Locks the node, so that fencing waits for the batch. A heartbeat does not wait. */
const LOCK_NODE = prepare`
  SELECT id FROM node WHERE id = ${'text'} AND epoch = ${'bigint'} AND fenced_at_ms IS NULL FOR KEY SHARE`

/**
 * Locks and reads the keys. A revocation waits for this lock, and later admissions see the revocation. Admissions do
 * not block each other here.
 */
const READ_KEYS = prepareLists`
  SELECT id, account_id, budget_id, digest, revoked_at_ms, expires_at_ms, allowed_models, log_requests FROM api_key
  WHERE ${oneOf('digest', 'bytea')} ${onPostgres('FOR KEY SHARE')}`

const READ_CALLS = prepareLists`
  SELECT c.id, c.account_id, c.key_id, k.budget_id, c.state, c.started_at_ms, c.month, c.day, c.model_asked, c.endpoint,
    c.hold_nanos, c.hold_list_nanos, c.account_hold_nanos, c.lost_list_nanos, c.balance_nanos, c.requests
  FROM call c JOIN api_key k ON k.id = c.key_id WHERE ${oneOf('c.id', 'text')} ORDER BY c.id
  ${onPostgres('FOR NO KEY UPDATE OF c')}`

const READ_BUDGETS = prepareLists`
  SELECT ${BUDGET_COLUMNS} FROM budget b WHERE b.id IN (
    SELECT budget_id FROM api_key WHERE ${oneOf('digest', 'bytea')} UNION ALL
    SELECT k.budget_id FROM call c JOIN api_key k ON k.id = c.key_id WHERE ${oneOf('c.id', 'text')})
  ORDER BY b.id ${FOR_UPDATE}`

const READ_ACCOUNTS = prepareLists`
  SELECT ${ACCOUNT_COLUMNS} FROM account a WHERE a.id IN (
    SELECT account_id FROM api_key WHERE ${oneOf('digest', 'bytea')} UNION ALL
    SELECT account_id FROM call WHERE ${oneOf('id', 'text')})
  ORDER BY a.id ${FOR_UPDATE}`

const READ_EVENT_SETTINGS = prepare`
  SELECT name, value FROM setting WHERE name IN (${raw(`'${BUDGET_THRESHOLDS}', '${BALANCE_LOW}'`)})`

const READ_FILE = prepare`
  SELECT f.models FROM batch_file f JOIN api_key k ON k.id = f.key_id AND k.account_id = f.account_id
  WHERE k.digest = ${'bytea'} AND f.file_id = ${'text'}`

const READ_CLOCK = prepare`SELECT now_ms() AS now_ms`

/** Locks and reads everything that the decisions of a batch depend on, in one step. Null: the node was fenced. */
export function* readBatch(
  { closings, openings }: CallBatch,
  { node, clock }: BatchParts,
): Batch<BatchRows | null> {
  const ids = [...new Set(closings.map(({ requestId }) => requestId))]
  const digests = [...new Map(openings.map(({ digest }) => [digestName(digest), digest])).values()]
  const withFile = openings.filter(({ models }) => models.batchFile !== null)
  const read = (yield step([
    ...(node === null ? [] : [LOCK_NODE([node.id, node.epoch])]),
    ...(digests.length === 0 ? [] : [READ_KEYS(digests)]),
    ...(ids.length === 0 ? [] : [READ_CALLS(ids), READ_EVENT_SETTINGS([])]),
    READ_BUDGETS(digests, ids),
    READ_ACCOUNTS(digests, ids),
    ...withFile.map(({ digest, models }) => READ_FILE([digest, models.batchFile])),
    ...(clock === 'database' ? [READ_CLOCK([])] : []),
  ])).values()
  const next = (): readonly Row[] => read.next().value ?? []
  if (node !== null && next().length === 0) return null
  const keys = digests.length === 0 ? [] : next()
  const [calls, settings] = ids.length === 0 ? [[], []] : [next(), next()]
  return {
    keys: new Map(keys.map((row) => [digestName(row['digest'] as Uint8Array), recordOf<KeyRow>(row)])),
    calls: new Map(calls.map((row) => [text(row, 'id'), callRow(row)])),
    money: new MoneyRows(next(), next()),
    files: new Map(withFile.map((opening) => [opening, next()[0]])),
    settings,
    nowMs: clock === 'database' ? number(present(next()[0]), 'now_ms') : null,
  }
}

export function digestName({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString('latin1')
}
