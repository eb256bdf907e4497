import pg from 'pg'
import { InstallationError, StoreGone, StoreRefused, StoreUnavailable } from '../../kernel/errors.ts'
import { limits } from '../../kernel/limits.ts'
import type { BoundValue, Statement } from '../operations/sql.ts'
import type { Row } from '../rows.ts'
import { StatementGroup, type StatementResult } from './statement-group.ts'

/**
 * PostgreSQL for the parts of the store. `int8` is a bigint, `bytea` a Buffer, `jsonb` parsed, `int4` a number, `bool`
 * a boolean. A failure is StoreUnavailable if the same statement may succeed later, else StoreRefused.
 *
 * A connection has no state outside a transaction: behind a pooler in transaction mode, the next statement may run on
 * another connection.
 */
export interface Queries {
  query(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
}

export interface Pool extends Queries {
  /**
   * Runs `work` between BEGIN and COMMIT, at READ COMMITTED. Each statement sees what was committed before it began, so
   * rows that a decision depends on must be locked first, and read in that statement or a later one. After a deadlock
   * or serialization failure, `work` is retried once.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>, limits?: TransactionLimits): Promise<T>
  close(): Promise<void>
}

interface Transaction extends Queries {
  /** Pipelines statements between BEGIN and `end`, and returns their rows. Rejects with the first failure. */
  pipeline(statements: readonly Statement[], end: TransactionEnd | null): Promise<readonly (readonly Row[])[]>
}

type TransactionEnd = 'COMMIT' | 'ROLLBACK'

interface TransactionLimits {
  /** The database ends a transaction that is idle for this long between two statements. */
  readonly idleMs: number
  /** How long the transaction may take, if longer than the pool's `statementMs`. */
  readonly totalMs: number
}

interface PoolOptions {
  readonly url: string
  readonly connectionsMax: number
  /** Timeout of a statement or transaction, with the wait for a connection; then it fails with StoreInDoubt. */
  readonly statementMs: number
  /** Timeout for getting a connection, if longer than CONNECT_MS. */
  readonly connectMs?: number
  /** Whether the database itself ends statements and transactions that take too long. */
  readonly deadlines: boolean
  /** For batches of calls: pipelined, prepared statements with the planner settings of `batchSettings`. */
  readonly isHot?: boolean
}

/** Batch statements always use an index. A node that is suspended in a batch loses its locks after 1 s. */
function batchSettings(statementMs: number): Settings {
  return [
    ['lock_timeout', String(Math.round((statementMs * 5) / 6))],
    ['idle_in_transaction_session_timeout', String(Math.round((statementMs * 5) / 9))],
    ['plan_cache_mode', 'force_generic_plan'],
    ...(['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin'] as const).map(
      (plan) => [plan, 'off'] as const,
    ),
  ]
}

const BEGIN: Statement = { text: 'BEGIN', values: [], name: 'BEGIN' }

type Settings = readonly (readonly [name: string, value: string])[]

/** For the transaction, because the connection may be a pooler's. */
function setLocal(settings: Settings): Statement {
  const set = settings.map(([name, value]) => `set_config('${name}', '${value}', true)`)
  return { text: `SELECT ${set.join(', ')}`, values: [] }
}

function timeouts(idleMs: number, totalMs: number): Settings {
  return [
    ['idle_in_transaction_session_timeout', String(idleMs)],
    ['statement_timeout', String(Math.round(0.9 * totalMs))],
  ]
}

/** How long a statement waits for a connection. After that, it fails with StoreUnavailable; nothing was sent. */
const CONNECT_MS = 1_800

/** A pool of connections, opened on demand. A connection that fails or hangs is discarded. */
export function openPool(options: PoolOptions): Pool {
  const { url, connectionsMax, connectMs, statementMs, deadlines, isHot = false } = options
  const hotSettings = batchSettings(statementMs)
  const setsAtConnect = isHot && deadlines
  const begin = [BEGIN, ...(isHot && !setsAtConnect ? [setLocal(hotSettings)] : [])]
  const pool = new pg.Pool({
    connectionString: url,
    application_name: 'tollgate',
    max: connectionsMax,
    connectionTimeoutMillis: Math.max(CONNECT_MS, connectMs ?? 0),
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    types: { getTypeParser },
    // The database's timeout is slightly shorter than ours: a statement that the database ended had no effect.
    ...(deadlines
      ? { statement_timeout: 0.9 * statementMs, idle_in_transaction_session_timeout: 2 * statementMs }
      : {}),
    ...(setsAtConnect
      ? { options: hotSettings.map(([name, value]) => `-c ${name}=${value}`).join(' ') }
      : {}),
  })
  // Ignore the loss of an idle connection: the next statement opens another.
  pool.on('error', () => {})
  pool.on('connect', (client) =>
    client.once('error', (error) => losses.set(client, error)).on('error', () => {}),
  )

  let closed = false

  async function withConnection<T>(work: (lease: Lease) => Promise<T>, totalMs = statementMs): Promise<T> {
    if (closed) throw new StoreGone('the database is closed')
    const dueMs = performance.now() + totalMs
    if (pool.waitingCount >= limits.readQueueMax) throw new StoreUnavailable('too many operations wait')
    const client = await pool.connect().catch((error: unknown) => {
      throw connectionFailure(error)
    })
    const lease = { client, dueMs, broken: false }
    try {
      return await work(lease)
    } finally {
      client.release(lease.broken)
    }
  }

  async function withRetry<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (!isRetryable(error)) throw error
      return await work()
    }
  }

  return {
    query: (text, values) =>
      withRetry(() =>
        withConnection(async (lease) => {
          if (values === undefined) return await runScript(lease, text)
          return (await runTogether(lease, [{ text, values: values as BoundValue[] }]))[0]?.rows ?? []
        }),
      ),
    transaction(work, limits) {
      const totalMs = Math.max(statementMs, limits?.totalMs ?? 0)
      const settings = limits === undefined ? [] : [setLocal(timeouts(limits.idleMs, totalMs))]
      return withRetry(() =>
        withConnection(
          (lease) => inTransaction(lease, work, [...begin, ...settings], setsAtConnect),
          totalMs,
        ),
      )
    },
    close() {
      closed = true
      return pool.end()
    },
  }
}

/** Why connections were lost between two statements. The next statement fails without a reason. */
const losses = new WeakMap<object, Error>()

interface Lease {
  readonly client: pg.PoolClient
  readonly dueMs: number
  /** A broken connection is not used again: its next answer may belong to an earlier statement. */
  broken: boolean
}

/** `cachesStatements`: the connection caches prepared statements by their names. */
async function inTransaction<T>(
  lease: Lease,
  work: (tx: Transaction) => Promise<T>,
  begin: readonly Statement[],
  cachesStatements: boolean,
): Promise<T> {
  let before = begin
  let isOpen = true

  const pipeline: Transaction['pipeline'] = async (statements, end) => {
    const sent = [...before, ...statements, ...(end === null ? [] : [{ text: end, values: [], name: end }])]
    const named = cachesStatements ? sent : sent.map(({ text, values }) => ({ text, values }))
    const results = await runTogether(lease, named)
    const rows = results.slice(before.length, before.length + statements.length)
    before = []
    if (end !== null) isOpen = false
    // If `work` swallowed the failure of a statement, COMMIT rolls back and answers ROLLBACK.
    if (end === 'COMMIT' && results.at(-1)?.tag !== 'COMMIT')
      throw new StoreRefused('a statement of the transaction failed')
    return rows.map((result) => result.rows)
  }
  const tx: Transaction = {
    pipeline,
    async query(text, values) {
      if (values !== undefined)
        return (await pipeline([{ text, values: values as BoundValue[] }], null))[0] ?? []
      await pipeline([], null)
      return await runScript(lease, text)
    },
  }
  try {
    const result = await work(tx)
    if (isOpen) await pipeline([], 'COMMIT')
    return result
  } catch (error) {
    throw await rollBack(lease, error)
  }
}

/** Rolls back, and returns the error for the caller. Unknown errors of `work` are defects, or invalid commands. */
async function rollBack(lease: Lease, error: unknown): Promise<Error> {
  if (!lease.broken) await runScript(lease, 'ROLLBACK')
  // An InstallationError is a message to the operator, of an import or a migration.
  const isKnown = [StoreUnavailable, StoreRefused, InstallationError].some((kind) => error instanceof kind)
  if (isKnown) return error as Error
  return new StoreRefused(error instanceof Error ? error.message : String(error), { cause: error })
}

async function runTogether(
  lease: Lease,
  statements: readonly Statement[],
): Promise<readonly StatementResult[]> {
  if (statements.length === 0) return []
  try {
    return await new Promise((resolve, reject) => {
      const deliver = (error: Error | null, results: readonly StatementResult[]): void =>
        error === null ? resolve(results) : reject(error)
      lease.client.query(new StatementGroup(statements, getTypeParser, timeLeftMs(lease), deliver))
    })
  } catch (error) {
    throw failureOf(lease, error)
  }
}

/** Runs a text that may have several statements. */
async function runScript(lease: Lease, text: string): Promise<readonly Row[]> {
  try {
    const statement = { text, query_timeout: timeLeftMs(lease) }
    return (await lease.client.query<Row>(statement)).rows
  } catch (error) {
    throw failureOf(lease, error)
  }
}

/** 0 would mean no deadline. */
function timeLeftMs({ dueMs }: Lease): number {
  return Math.max(1, dueMs - performance.now())
}

function failureOf(lease: Lease, error: unknown): Error {
  lease.broken ||= !leavesConnectionUsable(error)
  return storeFailure(error instanceof pg.DatabaseError ? error : (losses.get(lease.client) ?? error))
}

/** Set parsers per pool: pg's own table is global to the process. */
function getTypeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
  if (oid === pg.types.builtins.INT8) return BigInt
  return pg.types.getTypeParser(oid, format ?? 'text') as (value: string) => unknown
}

/** A pooler in transaction mode refuses session settings. Behind one, only the node enforces deadlines. */
export async function probeDeadlines(url: string): Promise<boolean> {
  const pool = openPool({ url, deadlines: true, connectionsMax: 1, connectMs: 5_000, statementMs: 60_000 })
  try {
    await pool.query('SELECT 1')
    return true
  } catch (error) {
    if (/unsupported startup parameter/i.test((error as Error).message)) return false
    throw error
  } finally {
    await pool.close()
  }
}

/** The connection broke or the time ran out during a statement. The statement may have taken effect, or still may. */
export class StoreInDoubt extends StoreUnavailable {
  override readonly name = 'StoreInDoubt'
}

/** The command itself is wrong: bad data, a constraint, the schema. All other errors may be temporary. */
const REFUSED_CLASSES = /^(?:0A|21|22|23|2F|38|39|42|44|P0)/

/** A missing privilege may be temporary: the owner may grant it again. */
const INSUFFICIENT_PRIVILEGE = '42501'

const IDLE_IN_TRANSACTION = '25P03'

const IDLE_TEXT =
  'this process did nothing for so long in the middle of a transaction that the database ended it: the process was ' +
  'suspended, or its machine was too busy'

/** The transaction was rolled back and can be retried. */
const RETRYABLE_STATES: ReadonlySet<string> = new Set(['40001', '40P01'])

export function sqlState(error: unknown): string | null {
  if (error instanceof StoreRefused || error instanceof StoreUnavailable) return sqlState(error.cause)
  return error instanceof pg.DatabaseError ? (error.code ?? null) : null
}

function isRetryable(error: unknown): boolean {
  return RETRYABLE_STATES.has(sqlState(error) ?? '')
}

/** A connection can be reused only after an error of a statement. */
function leavesConnectionUsable(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.severity === 'ERROR'
}

function storeFailure(error: unknown): Error {
  if (error instanceof StoreRefused || error instanceof StoreUnavailable) return error
  const { message } = error instanceof Error ? error : new Error(String(error))
  if (!(error instanceof pg.DatabaseError)) return new StoreInDoubt(message, { cause: error })
  const code = error.code ?? ''
  if (code === IDLE_IN_TRANSACTION) return new StoreInDoubt(IDLE_TEXT, { cause: error })
  if (REFUSED_CLASSES.test(code) && code !== INSUFFICIENT_PRIVILEGE)
    return new StoreRefused(message, { cause: error })
  return leavesConnectionUsable(error)
    ? new StoreUnavailable(message, { cause: error })
    : new StoreInDoubt(message, { cause: error })
}

function connectionFailure(error: unknown): StoreUnavailable {
  // For a host with several addresses, the error has no message, but one error per address.
  const [first] = error instanceof AggregateError ? error.errors : [error]
  const message = first instanceof Error ? first.message : String(first)
  return new StoreUnavailable(`no connection to the database: ${message}`, { cause: error })
}
