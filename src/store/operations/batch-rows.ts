import type { CallClosing, CallOpening } from '../../ledger/call.ts'
import { number, present, type Row, recordOf } from '../rows.ts'
import { type EventSettings, eventSettings } from './budget-events.ts'
import { BALANCE_LOW, BUDGET_THRESHOLDS } from './events.ts'
import { ACCOUNT_COLUMNS, BUDGET_COLUMNS, MoneyRows } from './money-rows.ts'
import { type Batch, step } from './operation.ts'
import { NO_STATEMENT, prepare, prepareReads } from './prepared.ts'
import { raw } from './sql.ts'

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

/** The account and budget of a key, which never change. */
interface Owners {
  readonly accountId: string
  readonly budgetId: string
}

/** Facts that a batch of this process need not read again. No decision depends on a fact that may have changed. */
export interface BatchCache {
  /** By the digest of the key, as text. */
  readonly owners: Map<string, Owners>
  /** Calls that this process admitted. If one has changed since, its closing fails and the batch reads it again. */
  readonly openCalls: Map<string, CallRow>
  /** The settings of events; null: the next batch reads them. */
  settings: EventSettings | null
}

export function createBatchCache(): BatchCache {
  return { owners: new Map(), openCalls: new Map(), settings: null }
}

export function clearCache(cache: BatchCache): void {
  cache.owners.clear()
  cache.openCalls.clear()
  cache.settings = null
}

/** A larger cache is emptied, and fills again. */
export const CACHED_MAX = 50_000

export interface BatchRows {
  /** The keys of the openings, in their order; undefined if there is no key with the digest. */
  readonly keys: readonly (KeyRow | undefined)[]
  readonly calls: ReadonlyMap<string, CallRow>
  readonly cache: BatchCache
  readonly money: MoneyRows
  /** The batch files that the calls name, if the same key uploaded them. */
  readonly files: ReadonlyMap<CallOpening, Row | undefined>
  readonly settings: EventSettings
  /** The database's clock, for all calls; null if each call brings its own time. */
  readonly nowMs: number | null
}

export interface KeyRow extends Owners {
  readonly id: string
  readonly digest: Uint8Array
  readonly revokedAtMs: number | null
  readonly expiresAtMs: number | null
  readonly allowedModels: readonly string[] | null
  readonly logRequests: boolean
}

/** A call to settle, as its admission or an earlier closing left it. */
export interface CallRow extends Owners {
  readonly id: string
  readonly keyId: string
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

/** Locks the node, so that fencing waits for the batch. A heartbeat does not wait. */
const LOCK_NODE = prepare`
  SELECT id FROM node WHERE id = ${'text'} AND epoch = ${'bigint'} AND fenced_at_ms IS NULL FOR KEY SHARE`

/** Locks and reads the keys. A revocation waits for this lock; admissions do not wait for each other. */
const READ_KEYS = prepareReads(
  `SELECT id, account_id, budget_id, digest, revoked_at_ms, expires_at_ms, allowed_models, log_requests FROM api_key`,
  'digest',
  'FOR KEY SHARE',
)

const READ_OWNERS = prepareReads('SELECT digest, account_id, budget_id FROM api_key', 'digest')

const READ_OWNERS_OF_CALLS = prepareReads(
  'SELECT c.account_id, k.budget_id FROM call c JOIN api_key k ON k.id = c.key_id',
  'c.id',
)

const READ_CALLS = prepareReads(
  `SELECT c.id, c.account_id, c.key_id, k.budget_id, c.state, c.started_at_ms, c.month, c.day, c.model_asked, c.endpoint,
    c.hold_nanos, c.hold_list_nanos, c.account_hold_nanos, c.lost_list_nanos, c.balance_nanos, c.requests
  FROM call c JOIN api_key k ON k.id = c.key_id`,
  'c.id',
  'FOR NO KEY UPDATE OF c',
)

const READ_BUDGETS = prepareReads(`SELECT ${BUDGET_COLUMNS} FROM budget b`, 'b.id', 'FOR NO KEY UPDATE')

const READ_ACCOUNTS = prepareReads(`SELECT ${ACCOUNT_COLUMNS} FROM account a`, 'a.id', 'FOR NO KEY UPDATE')

const READ_EVENT_SETTINGS = prepare`
  SELECT name, value FROM setting WHERE name IN (${raw(`'${BUDGET_THRESHOLDS}', '${BALANCE_LOW}'`)})`

const READ_FILE = prepare`
  SELECT f.models FROM batch_file f JOIN api_key k ON k.id = f.key_id AND k.account_id = f.account_id
  WHERE k.digest = ${'bytea'} AND f.file_id = ${'text'}`

const READ_CLOCK = prepare`SELECT now_ms() AS now_ms`

/** Locks and reads every row that the decisions depend on. Null: the node was fenced. */
export function* readBatch(
  { closings, openings }: CallBatch,
  { node, clock, cache }: BatchContext,
): Batch<BatchRows | null> {
  const digestKeys = openings.map(({ digest }) => digestKey(digest))
  const digests = new Map<string, Uint8Array>()
  for (const [n, { digest }] of openings.entries()) digests.set(digestKeys[n] ?? '', digest)
  const calls = new Map<string, CallRow>()
  const unread = new Set<string>()
  for (const { requestId } of closings) {
    const call = cache.openCalls.get(requestId)
    if (call === undefined) unread.add(requestId)
    else calls.set(requestId, call)
  }
  const owners = yield* findOwners(digests, [...unread], calls, cache)
  const { settings } = cache
  const withFile = openings.filter(({ models }) => models.batchFile !== null)
  const rows = yield step([
    node === null ? NO_STATEMENT : LOCK_NODE([node.id, node.epoch]),
    READ_KEYS([...digests.values()]),
    READ_CALLS([...unread]),
    READ_BUDGETS([...owners.budgetIds]),
    READ_ACCOUNTS([...owners.accountIds]),
    settings === null ? READ_EVENT_SETTINGS([]) : NO_STATEMENT,
    clock === 'database' ? READ_CLOCK([]) : NO_STATEMENT,
    ...withFile.map(({ digest, models }) => READ_FILE([digest, models.batchFile])),
  ])
  const rowsOf = (statement: number): readonly Row[] => rows[statement] ?? []
  if (node !== null && rowsOf(0).length === 0) return null
  const keys = new Map<string, KeyRow>()
  for (const row of rowsOf(1)) {
    const name = digestKey(row['digest'] as Uint8Array)
    // A key that was created after `findOwners` has no locked budget, so it does not exist for this batch.
    if (cache.owners.has(name)) keys.set(name, recordOf<KeyRow>(row))
  }
  for (const row of rowsOf(2)) {
    const call = recordOf<CallRow>(row)
    calls.set(call.id, call)
  }
  const current = settings ?? eventSettings(rowsOf(5))
  if (settings === null) cache.settings = current
  return {
    keys: digestKeys.map((name) => keys.get(name)),
    calls,
    cache,
    money: new MoneyRows(rowsOf(3), rowsOf(4)),
    files: new Map(withFile.map((opening, n) => [opening, rowsOf(7 + n)[0]])),
    settings: current,
    nowMs: clock === 'database' ? number(present(rowsOf(6)[0]), 'now_ms') : null,
  }
}

/** The budgets and accounts of all keys and calls of the batch. A digest without a key has none. */
function* findOwners(
  digests: ReadonlyMap<string, Uint8Array>,
  unread: readonly string[],
  calls: ReadonlyMap<string, CallRow>,
  { owners }: BatchCache,
): Batch<{ readonly budgetIds: ReadonlySet<string>; readonly accountIds: ReadonlySet<string> }> {
  if (owners.size > CACHED_MAX) owners.clear()
  const unknown = [...digests].filter(([name]) => !owners.has(name)).map(([, digest]) => digest)
  const budgetIds = new Set<string>()
  const accountIds = new Set<string>()
  const add = ({ budgetId, accountId }: Owners): void => {
    budgetIds.add(budgetId)
    accountIds.add(accountId)
  }
  if (unknown.length > 0 || unread.length > 0) {
    const [keyRows = [], callRows = []] = yield step([READ_OWNERS(unknown), READ_OWNERS_OF_CALLS(unread)])
    for (const row of keyRows) owners.set(digestKey(row['digest'] as Uint8Array), recordOf<Owners>(row))
    for (const row of callRows) add(recordOf<Owners>(row))
  }
  for (const name of digests.keys()) {
    const known = owners.get(name)
    if (known !== undefined) add(known)
  }
  for (const call of calls.values()) add(call)
  return { budgetIds, accountIds }
}

export function digestKey(digest: Uint8Array): string {
  const { buffer, byteOffset, length } = digest
  return (Buffer.isBuffer(digest) ? digest : Buffer.from(buffer, byteOffset, length)).toString('latin1')
}
