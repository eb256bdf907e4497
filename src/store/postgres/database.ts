import pg from 'pg'
import { StoreGone, StoreRefused, StoreUnavailable } from '../../kernel/errors.ts'
import { limits } from '../../kernel/limits.ts'
import type { Statement } from '../operations/sql.ts'
import type { Row } from '../rows.ts'

/**
 * PostgreSQL stores every character but U+0000, and clients may send U+0000 too: in a model's name, a path, the name of a
 * key. U+0000 is stored as two characters, and U+0001, the escape, as two others, so that texts stay different and in the
 * same order. The database's client writes all texts this way and reads them back; JSON has to be made here, because
 * JSON spells the character out and the client cannot see it.
 */

const UNKEPT = /[\0\u0001]/g
const KEPT = /\u0001([\u0001\u0002])/g

/** A text as it is stored. A lone surrogate is no character, and becomes the replacement character, as in UTF-8. */
export function toKept(text: string): string {
  return text.replace(UNKEPT, (character) => (character === '\0' ? '\u0001\u0001' : '\u0001\u0002'))
}

export function fromKept(text: string): string {
  return text.includes('\u0001')
    ? text.replace(KEPT, (_, second) => (second === '\u0001' ? '\0' : '\u0001'))
    : text
}

/** JSON for a parameter of type jsonb. */
export function toKeptJson(value: unknown): string {
  return JSON.stringify(value, (_, part) => (typeof part === 'string' ? toKept(part.toWellFormed()) : part))
}

/** JSON that came from a column of type jsonb. */
export function fromKeptJson(json: string): unknown {
  return JSON.parse(json, (_, part) => (typeof part === 'string' ? fromKept(part) : part))
}

/**
 * PostgreSQL as the parts of the store use it. `int8` comes as bigint, `bytea` as Buffer, `jsonb` parsed, `int4` as number,
 * `bool` as boolean. Failures are StoreUnavailable where the same statement may succeed later, else StoreRefused.
 *
 * No state stays on a connection between two statements outside a transaction: behind a pooler in transaction mode the
 * next statement may run on another connection.
 */
export interface Database {
  /** One statement, or, in the work of a transaction, one of its statements. */
  query(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
  /**
   * Does the work between BEGIN and COMMIT, at READ COMMITTED: each statement sees the commits from before it began, so
   * rows that a decision depends on are locked in one statement and read in it or a later one. If the database rolled the
   * transaction back in favour of another (a deadlock, a serialization failure) the whole work is done again, once. A
   * transaction inside the work of another is part of that other one.
   */
  transaction<T>(work: (tx: Database) => Promise<T>, limits?: TransactionLimits): Promise<T>
}

export interface TransactionLimits {
  /** The database ends a transaction that is silent for so long between two statements. */
  readonly idleMs: number
  /** How long the transaction may take, where that is longer than `statementMs` of the pool. */
  readonly totalMs: number
}

export interface PoolOptions {
  readonly url: string
  readonly connectionsMax: number
  /** How long a statement or a transaction may take, the wait for a connection included. Then: StoreInDoubt. */
  readonly statementMs: number
  /** The timeout of waiting for a connection, where it is longer than CONNECT_MS. */
  readonly connectMs?: number
  readonly settings: SessionSettings
  /** For batches of calls: statements are pipelined, prepared by name, and planned as `batchSettings` says. */
  readonly isHot?: boolean
}

/** Sends statements without waiting in between. Rejects with the first failure. */
export type Flight = (statements: readonly Statement[]) => Promise<readonly pg.QueryResult<Row>[]>

/**
 * The plans of a batch are made once and find rows by their index, however small the table was when they were made. The lock
 * timeout (1.5 s of 1.8) ends a statement before the node stops waiting. A node that is paused in a batch holds its locks
 * for a shorter time (1 s), so that other nodes and commands that wait for these locks are done in time.
 */
function batchSettings(statementMs: number): readonly (readonly [name: string, value: string])[] {
  return [
    ['lock_timeout', String(Math.round((statementMs * 5) / 6))],
    ['idle_in_transaction_session_timeout', String(Math.round((statementMs * 5) / 9))],
    ['plan_cache_mode', 'force_generic_plan'],
    ...(['enable_seqscan', 'enable_hashjoin', 'enable_mergejoin'] as const).map(
      (plan) => [plan, 'off'] as const,
    ),
  ]
}

export interface Pool extends Database {
  /**
   * Does the work on one connection, on which it sends statements in flights: all of a flight go at once, and their answers
   * come together. The work begins and ends its transaction itself; if it throws, the transaction is rolled back, and where
   * the database did that in favour of another, the whole work is done again, once.
   */
  session<T>(work: (fly: Flight) => Promise<T>): Promise<T>
  readonly begin: Statement
  close(): Promise<void>
}

/** How long a statement waits for a connection, free or new. Then: StoreUnavailable, and nothing was sent. */
const CONNECT_MS = 1_800

/** Connections to the database, opened as they are needed. A connection that fails or hangs is thrown away. */
export function openPool(options: PoolOptions): Pool {
  const { url, connectionsMax, connectMs, statementMs, settings, isHot = false } = options
  const hotSettings = batchSettings(statementMs)
  const keepsSettings = isHot && settings.deadlines
  const pool = new pg.Pool({
    connectionString: url,
    application_name: 'tollgate',
    max: connectionsMax,
    connectionTimeoutMillis: Math.max(CONNECT_MS, connectMs ?? 0),
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    types: { getTypeParser },
    // The database's timeout is a little before ours: a statement that the database has ended leaves no doubt.
    ...(settings.deadlines
      ? { statement_timeout: 0.9 * statementMs, idle_in_transaction_session_timeout: 2 * statementMs }
      : {}),
    ...(isHot ? { pipeline: true } : {}),
    ...(keepsSettings
      ? { options: hotSettings.map(([name, value]) => `-c ${name}=${value}`).join(' ') }
      : {}),
  })
  // A connection that is lost while nothing runs on it is not missed: the next statement opens another.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))

  let closed = false

  async function withLease<T>(work: (lease: Lease) => Promise<T>, totalMs = statementMs): Promise<T> {
    if (closed) throw new StoreGone('the store is closed')
    const dueMs = performance.now() + totalMs
    if (pool.waitingCount >= limits.readQueueMax) throw new StoreUnavailable('too many operations wait')
    const client = await pool.connect().catch((error: unknown) => {
      throw unconnected(error)
    })
    const lease = { client, dueMs, broken: false }
    try {
      return await work(lease)
    } finally {
      client.release(lease.broken)
    }
  }

  /** Does the work, and once more if the database rolled it back in favour of another transaction. */
  async function twice<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (!gaveWay(error)) throw error
      return await work()
    }
  }

  return {
    query: (text, values) =>
      twice(() => withLease(async (lease) => (await run(lease, { text, values })).rows)),
    transaction(work, limits) {
      if (limits === undefined) return twice(() => withLease((lease) => inTransaction(lease, work, '')))
      const totalMs = Math.max(statementMs, limits.totalMs)
      const deadlines = [
        `; SET LOCAL idle_in_transaction_session_timeout = ${limits.idleMs}`,
        `; SET LOCAL statement_timeout = ${Math.round(0.9 * totalMs)}`,
      ].join('')
      return twice(() => withLease((lease) => inTransaction(lease, work, deadlines), totalMs))
    },
    session: (work) => twice(() => withLease((lease) => inSession(lease, work, keepsSettings))),
    begin: {
      text: keepsSettings
        ? 'BEGIN'
        : `BEGIN; ${hotSettings.map(([name, value]) => `SET LOCAL ${name} = '${value}'`).join('; ')}`,
      values: [],
    },
    close() {
      closed = true
      return pool.end()
    },
  }
}

interface Lease {
  readonly client: pg.PoolClient
  readonly dueMs: number
  /** A broken connection is not used again: its next answer may belong to an earlier statement. */
  broken: boolean
}

async function inTransaction<T>(
  lease: Lease,
  work: (tx: Database) => Promise<T>,
  deadlines: string,
): Promise<T> {
  const tx: Database = {
    query: async (text, values) => (await run(lease, { text, values })).rows,
    transaction: (inner) => inner(tx),
  }
  // BEGIN and SET go together, which spares a round trip; SET LOCAL, since the connection may be a pooler's.
  await run(lease, { text: `BEGIN${deadlines}` })
  let result: T
  try {
    result = await work(tx)
  } catch (error) {
    throw await rolledBack(lease, error)
  }
  // If the work has swallowed the failure of a statement, COMMIT rolls back and answers ROLLBACK.
  const { command } = await run(lease, { text: 'COMMIT' })
  if (command !== 'COMMIT') throw new StoreRefused('a statement of the transaction failed')
  return result
}

/** An error that the work itself throws is a defect of ours, or a command that cannot be done. */
async function rolledBack(lease: Lease, error: unknown): Promise<Error> {
  if (!lease.broken) await run(lease, { text: 'ROLLBACK' })
  if (error instanceof StoreUnavailable || error instanceof StoreRefused) return error
  return new StoreRefused(error instanceof Error ? error.message : String(error), { cause: error })
}

const IN_FAILED_TRANSACTION = '25P02'

async function inSession<T>(
  lease: Lease,
  work: (fly: Flight) => Promise<T>,
  keepsNames: boolean,
): Promise<T> {
  const fly: Flight = async (statements) => {
    const sent = statements.map(({ text, values, name }) =>
      run(lease, { text, values, ...(keepsNames && name !== undefined ? { name } : {}) }),
    )
    const outcomes = await Promise.allSettled(sent)
    const failures = outcomes.filter((outcome) => outcome.status === 'rejected').map(({ reason }) => reason)
    if (failures.length > 0)
      throw failures.find((failure) => sqlState(failure) !== IN_FAILED_TRANSACTION) ?? failures[0]
    return outcomes.map((outcome) => (outcome as PromiseFulfilledResult<pg.QueryResult<Row>>).value)
  }
  try {
    return await work(fly)
  } catch (error) {
    throw await rolledBack(lease, error)
  }
}

interface Sent {
  readonly text: string
  readonly values?: readonly unknown[] | undefined
  readonly name?: string
}

async function run(lease: Lease, { text, values = [], name }: Sent): Promise<pg.QueryResult<Row>> {
  // Zero would be no deadline at all.
  const query_timeout = Math.max(1, lease.dueMs - performance.now())
  const statement: TimedStatement = {
    ...{ text, values: values.map(asKept), query_timeout },
    ...(name === undefined ? {} : { name }),
  }
  try {
    return await lease.client.query<Row>(statement)
  } catch (error) {
    lease.broken ||= !leavesSound(error)
    throw failureOf(error)
  }
}

interface TimedStatement extends pg.QueryConfig {
  /** Known to pg, not to its types. */
  readonly query_timeout: number
}

function asKept(value: unknown): unknown {
  if (typeof value === 'string') return toKept(value)
  return Array.isArray(value) ? value.map(asKept) : value
}

const { builtins } = pg.types

/** Parsers are set per pool and not for the whole process: pg's own table is shared by all users of the package. */
function getTypeParser(oid: number, format?: 'text' | 'binary'): (value: string) => unknown {
  switch (oid) {
    case builtins.INT8:
      return BigInt
    case builtins.TEXT:
    case builtins.VARCHAR:
      return fromKept
    case builtins.JSONB:
    case builtins.JSON:
      return parseJson
    default:
      return pg.types.getTypeParser(oid, format ?? 'text') as (value: string) => unknown
  }
}

function parseJson(json: string): unknown {
  return json.includes('\\u0001') ? fromKeptJson(json) : JSON.parse(json)
}

export interface SessionSettings {
  /** Whether the database itself ends statements and transactions that take too long. */
  readonly deadlines: boolean
}

/**
 * A pooler in transaction mode lends the same connection to many clients, and refuses settings that would stay on it.
 * Behind a pooler only the node enforces deadlines, and the operator may set `statement_timeout` on the role.
 */
export async function probeSettings(url: string): Promise<SessionSettings> {
  try {
    await connectOnce(url, { statement_timeout: 60_000, idle_in_transaction_session_timeout: 60_000 })
    return { deadlines: true }
  } catch (error) {
    if (!isRefusedSetting(error)) throw unconnected(error)
  }
  await connectOnce(url, {}).catch((error: unknown) => {
    throw unconnected(error)
  })
  return { deadlines: false }
}

async function connectOnce(url: string, settings: pg.ClientConfig): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000, ...settings })
  client.on('error', () => {})
  try {
    await client.connect()
  } finally {
    await client.end()
  }
}

function isRefusedSetting(error: unknown): boolean {
  return error instanceof pg.DatabaseError && /unsupported startup parameter/i.test(error.message)
}

/** The connection broke or the time ran out during a statement: the statement may have been done, or be done yet. */
export class StoreInDoubt extends StoreUnavailable {
  override readonly name = 'StoreInDoubt'
}

/**
 * Classes of errors where the command itself is wrong: bad data, a constraint, a statement that does not fit the schema.
 * All other errors (starting, stopping, full, out of connections, read-only after a failover) may pass.
 */
const REFUSED_CLASSES: ReadonlySet<string> = new Set([
  '0A',
  '21',
  '22',
  '23',
  '2F',
  '38',
  '39',
  '42',
  '44',
  'P0',
])

/** A missing privilege may pass: the owner of the database may grant it again. */
const INSUFFICIENT_PRIVILEGE = '42501'

/** A serialization failure or a deadlock: the database has rolled the transaction back in favour of another. */
const GAVE_WAY: ReadonlySet<string> = new Set(['40001', '40P01'])

export function sqlState(error: unknown): string | null {
  if (error instanceof StoreRefused || error instanceof StoreUnavailable) return sqlState(error.cause)
  return error instanceof pg.DatabaseError ? (error.code ?? null) : null
}

function gaveWay(error: unknown): boolean {
  return GAVE_WAY.has(sqlState(error) ?? '')
}

/** Whether the connection can be used again. An error of a statement leaves it sound; any other error does not. */
function leavesSound(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.severity === 'ERROR'
}

/** The failure of a statement that was sent, as an error of the port. */
export function failureOf(error: unknown): Error {
  if (error instanceof StoreRefused || error instanceof StoreUnavailable) return error
  const { message } = error instanceof Error ? error : new Error(String(error))
  if (!(error instanceof pg.DatabaseError)) return new StoreInDoubt(message, { cause: error })
  const code = error.code ?? ''
  if (REFUSED_CLASSES.has(code.slice(0, 2)) && code !== INSUFFICIENT_PRIVILEGE) {
    return new StoreRefused(message, { cause: error })
  }
  return leavesSound(error)
    ? new StoreUnavailable(message, { cause: error })
    : new StoreInDoubt(message, { cause: error })
}

/** No connection: nothing was sent. */
export function unconnected(error: unknown): StoreUnavailable {
  // A host name with several addresses fails with an error for each address, and no message of its own.
  const [first] = error instanceof AggregateError ? error.errors : [error]
  const message = first instanceof Error ? first.message : String(first)
  return new StoreUnavailable(`no connection to the database: ${message}`, { cause: error })
}
