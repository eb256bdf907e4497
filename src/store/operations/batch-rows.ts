import type { CallClosing, CallOpening, CallOwner } from '../../ledger/call.ts'
import { number, present, type Row, recordOf, text } from '../rows.ts'
import { tables } from '../tables.ts'
import { type EventSettings, eventSettings } from './budget-events.ts'
import { BALANCE_LOW, BUDGET_THRESHOLDS } from './events.ts'
import {
  ACCOUNT_COLUMNS,
  type AccountState,
  accountState,
  BUDGET_COLUMNS,
  type BudgetState,
  budgetState,
  MoneyRows,
} from './money-rows.ts'
import { type Batch, step } from './operation.ts'
import { NO_STATEMENT, prepare, prepareDeletes, prepareLine, prepareLocks, prepareReads } from './prepared.ts'
import { raw } from './sql.ts'

/**
 * Locks and reads what a batch of calls decides by. On PostgreSQL every batch and every command locks in this order, so
 * that none waits in a circle: the node; budgets by id; accounts with a ceiling or enforced credit, by id; the other
 * accounts, by id, when it adds to them in its last statement. A batch first waits in line for the rows of each
 * of the last three. The lock of a budget is the lock of its keys and holds:
 * whoever changes a key or closes a hold has it. Keys and accounts are read in later statements than the locks, because
 * a statement of PostgreSQL sees what was committed before it began, not before it got its lock.
 */

export interface CallBatch {
  readonly closings: readonly CallClosing[]
  readonly openings: readonly CallOpening[]
}

export interface BatchContext {
  /** The node that sends the batch, which must not be fenced. Null: no node. */
  readonly node: { readonly id: string; readonly epoch: bigint } | null
  readonly clock: 'database' | 'caller'
  readonly cache: BatchCache
}

/** Facts that a batch of this process need not read again. No decision depends on a fact that may have changed. */
export interface BatchCache {
  /** The owners of keys, which never change, by the digest of the key as text. */
  readonly owners: Map<string, CallOwner>
  /** The settings of events; null: the next batch reads them. */
  settings: EventSettings | null
  /** The rows as the last batch left them, if nobody else can write meanwhile; else null. */
  readonly rows: CachedRows | null
}

/** Keys by their digests; budgets and accounts by their ids. */
interface CachedRows {
  readonly keys: Map<string, KeyRow>
  readonly budgets: Map<string, BudgetState>
  readonly accounts: Map<string, AccountState>
}

export function createBatchCache(isOnlyWriter = false): BatchCache {
  const rows = isOnlyWriter ? { keys: new Map(), budgets: new Map(), accounts: new Map() } : null
  return { owners: new Map(), settings: null, rows }
}

export function clearCache(cache: BatchCache): void {
  cache.owners.clear()
  cache.settings = null
  clearRows(cache)
}

/** Call this after each other command, because it may have changed the rows. */
export function clearRows({ rows }: BatchCache): void {
  for (const cached of Object.values(rows ?? {})) cached.clear()
}

/** A larger cache is emptied, and fills again. */
const CACHED_MAX = 50_000

export interface BatchRows {
  /** The keys of the openings, in their order; undefined if there is no key with the digest. */
  readonly keys: readonly (KeyRow | undefined)[]
  /** The holds of the closings. They are deleted. */
  readonly holds: ReadonlyMap<string, HoldRow>
  /** The calls of closings without an open hold. */
  readonly closed: ReadonlyMap<string, ClosedCall>
  readonly money: MoneyRows
  /** The batch files that the calls name, if the same key uploaded them. */
  readonly files: ReadonlyMap<CallOpening, Row | undefined>
  readonly settings: EventSettings
  /** The database's clock, for all calls; null if each call brings its own time. */
  readonly nowMs: number | null
}

export interface KeyRow extends CallOwner {
  readonly id: string
  readonly personId: string | null
  readonly digest: Uint8Array
  readonly revokedAtMs: number | null
  readonly expiresAtMs: number | null
  readonly allowedModels: readonly string[] | null
  readonly logRequests: boolean
}

/** What a call takes over from its hold as it is. */
export const TAKEN_OVER = [
  ...(['id', 'accountId', 'keyId', 'personId', 'startedAtMs', 'month', 'day', 'method', 'path'] as const),
  ...(['surface', 'modelAsked', 'holdNanos', 'holdListNanos', 'priceVersion', 'rating', 'clientIp'] as const),
  ...(['userAgent', 'socketId', 'sessionId', 'parentId'] as const),
  ...(['objectId', 'children', 'childrenNanos', 'requests'] as const),
]

/** What a settlement needs of a hold: also what it frees. */
const HOLD = tables.hold.select([
  ...TAKEN_OVER,
  ...(['budgetId', 'state', 'accountHoldNanos', 'shortNanos', 'boundNanos'] as const),
])

export type HoldRow = ReturnType<typeof HOLD.read>

const CLOSED = tables.call.select(
  [
    ...(['id', 'accountId', 'keyId', 'state', 'startedAtMs', 'month', 'day', 'modelAsked'] as const),
    ...(['holdNanos', 'holdListNanos', 'lostListNanos', 'balanceNanos', 'objectId'] as const),
    ...(['requests', 'children', 'childrenNanos'] as const),
  ],
  'c',
)

/** A call that has ended. If it was interrupted, it may still settle. */
export type ClosedCall = ReturnType<typeof CLOSED.read> & CallOwner

/** Locks the node, so that fencing waits for the batch. A heartbeat does not wait. */
const LOCK_NODE = prepare`
  SELECT id FROM node WHERE id = ${'text'} AND epoch = ${'bigint'} AND fenced_at_ms IS NULL FOR KEY SHARE`

/** Other accounts are not locked, because all nodes would queue for their rows. */
export const IS_LIMITED = '(credit_enforced OR monthly_budget_nanos IS NOT NULL)'

const LINE_UP = prepareLine([
  'SELECT id FROM account WHERE id = ANY (',
  `) AND ${IS_LIMITED} UNION ALL SELECT unnest(`,
  ')',
])

const LOCK_BUDGETS = prepareReads(`SELECT ${BUDGET_COLUMNS} FROM budget b`, 'b.id', 'FOR NO KEY UPDATE')

const LOCK_LIMITED_ACCOUNTS = prepareLocks('account', IS_LIMITED)

const DELETE_HOLDS = prepareDeletes('hold', HOLD.list)

const READ_KEYS = prepareReads(
  'SELECT id, account_id, person_id, budget_id, digest, revoked_at_ms, expires_at_ms, allowed_models, log_requests FROM api_key',
  'digest',
)

const READ_ACCOUNTS = prepareReads(`SELECT ${ACCOUNT_COLUMNS} FROM account a`, 'a.id')

const READ_CLOSED = prepareReads(
  `SELECT ${CLOSED.list}, k.budget_id FROM call c JOIN api_key k ON k.id = c.key_id`,
  'c.id',
  'FOR NO KEY UPDATE OF c',
)

const READ_OWNERS = prepareReads('SELECT digest, account_id, budget_id FROM api_key', 'digest')
const READ_OWNERS_OF_HOLDS = prepareReads('SELECT account_id, budget_id FROM hold', 'id')
const READ_OWNERS_OF_CALLS = prepareReads(
  'SELECT c.account_id, k.budget_id FROM call c JOIN api_key k ON k.id = c.key_id',
  'c.id',
)

const READ_EVENT_SETTINGS = prepare`
  SELECT name, value FROM setting WHERE name IN (${raw(`'${BUDGET_THRESHOLDS}', '${BALANCE_LOW}'`)})`

const READ_FILE = prepare`
  SELECT f.models FROM batch_file f JOIN api_key k ON k.id = f.key_id AND k.account_id = f.account_id
  WHERE k.digest = ${'bytea'} AND f.file_id = ${'text'}`

const READ_CLOCK = prepare`SELECT now_ms() AS now_ms`

/** Null: the node was fenced. */
export function* readBatch(
  { closings, openings }: CallBatch,
  { node, clock, cache }: BatchContext,
): Batch<BatchRows | null> {
  const digestKeys = openings.map(({ digest }) => digestKey(digest))
  const digests = new Map<string, Uint8Array>()
  for (const [n, { digest }] of openings.entries()) digests.set(digestKeys[n] ?? '', digest)
  const { budgetIds, accountIds } = yield* findOwners(digests, closings, cache)
  const { settings } = cache
  const withFile = openings.filter(({ models }) => models.batchFile !== null)
  const ids = [...new Set(closings.map(({ requestId }) => requestId))]
  // Rows of a batch that was rolled back would be wrong, but then the cache is cleared.
  const cached = cache.rows ?? { keys: new Map(), budgets: new Map(), accounts: new Map() }
  const { keys, budgets, accounts } = cached
  const rows = yield step([
    node === null ? NO_STATEMENT : LOCK_NODE([node.id, node.epoch]),
    LINE_UP([...accountIds], [...budgetIds]),
    LOCK_BUDGETS(missing(budgetIds, budgets)),
    LOCK_LIMITED_ACCOUNTS([...accountIds]),
    DELETE_HOLDS(ids),
    READ_KEYS([...digests].filter(([name]) => !keys.has(name)).map(([, digest]) => digest)),
    READ_ACCOUNTS(missing(accountIds, accounts)),
    settings === null ? READ_EVENT_SETTINGS([]) : NO_STATEMENT,
    clock === 'database' ? READ_CLOCK([]) : NO_STATEMENT,
    ...withFile.map(({ digest, models }) => READ_FILE([digest, models.batchFile])),
  ])
  const [nodes = [], , budgetRows = [], , holdRows = [], keyRows = [], accountRows = [], settingRows = []] =
    rows
  if (node !== null && nodes.length === 0) return null
  const holds = new Map(holdRows.map((row) => [text(row, 'id'), HOLD.read(row)]))
  // A hold whose call was interrupted with its node stands for that call.
  const unread = ids.filter((id) => (holds.get(id)?.state ?? 'interrupted') === 'interrupted')
  const [closedRows = []] = unread.length === 0 ? [] : yield step([READ_CLOSED(unread)])
  for (const row of budgetRows) budgets.set(text(row, 'id'), budgetState(row))
  for (const row of accountRows) accounts.set(text(row, 'id'), accountState(row))
  for (const row of keyRows) {
    const name = digestKey(row['digest'] as Uint8Array)
    // A key that was created after `findOwners` has no locked budget, so it does not exist for this batch.
    if (cache.owners.has(name)) keys.set(name, recordOf<KeyRow>(row))
  }
  const current = settings ?? eventSettings(settingRows)
  cache.settings ??= current
  return {
    keys: digestKeys.map((name) => keys.get(name)),
    holds,
    closed: new Map(
      closedRows.map((row) => [text(row, 'id'), { ...CLOSED.read(row), budgetId: text(row, 'budget_id') }]),
    ),
    money: new MoneyRows(budgets, accounts),
    files: new Map(withFile.map((opening, n) => [opening, rows[9 + n]?.[0]])),
    settings: current,
    nowMs: clock === 'database' ? number(present(rows[8]?.[0]), 'now_ms') : null,
  }
}

function missing(ids: ReadonlySet<string>, cached: ReadonlyMap<string, unknown>): readonly string[] {
  return [...ids].filter((id) => !cached.has(id))
}

/** The budgets and accounts of all keys and calls of the batch. A digest without a key has none. */
function* findOwners(
  digests: ReadonlyMap<string, Uint8Array>,
  closings: readonly CallClosing[],
  cache: BatchCache,
): Batch<{ readonly budgetIds: ReadonlySet<string>; readonly accountIds: ReadonlySet<string> }> {
  const { owners } = cache
  if (owners.size > CACHED_MAX) clearCache(cache)
  const unknown = [...digests].filter(([name]) => !owners.has(name)).map(([, digest]) => digest)
  const unowned = closings.filter(({ owner }) => owner === undefined).map(({ requestId }) => requestId)
  const budgetIds = new Set<string>()
  const accountIds = new Set<string>()
  const add = ({ budgetId, accountId }: CallOwner): void => {
    budgetIds.add(budgetId)
    accountIds.add(accountId)
  }
  if (unknown.length > 0 || unowned.length > 0) {
    const [keyRows = [], ...ownerRows] = yield step([
      READ_OWNERS(unknown),
      READ_OWNERS_OF_HOLDS(unowned),
      READ_OWNERS_OF_CALLS(unowned),
    ])
    for (const row of keyRows) owners.set(digestKey(row['digest'] as Uint8Array), recordOf<CallOwner>(row))
    for (const row of ownerRows.flat()) add(recordOf<CallOwner>(row))
  }
  for (const name of digests.keys()) {
    const known = owners.get(name)
    if (known !== undefined) add(known)
  }
  for (const { owner } of closings) if (owner !== undefined) add(owner)
  return { budgetIds, accountIds }
}

export function digestKey(digest: Uint8Array): string {
  const { buffer, byteOffset, length } = digest
  return (Buffer.isBuffer(digest) ? digest : Buffer.from(buffer, byteOffset, length)).toString('latin1')
}
