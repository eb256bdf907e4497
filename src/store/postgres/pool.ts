import pg from 'pg'
import { StoreGone, StoreRefused, StoreUnavailable } from '../../kernel/errors.ts'
import { limits } from '../../kernel/limits.ts'
import { fromKept, fromKeptJson, toKept } from './any-text.ts'
import type { Database } from './database.ts'
import { failureOf, gaveWay, leavesSound, unconnected } from './outcome.ts'
import type { Row } from './rows.ts'
import type { SessionSettings } from './session-settings.ts'

export interface PoolOptions {
  readonly url: string
  readonly connectionsMax: number
  /** How long a statement or a transaction may take, the wait for a connection included. Then: StoreInDoubt. */
  readonly statementMs: number
  readonly settings: SessionSettings
}

export interface Pool extends Database {
  close(): Promise<void>
}

/** How long a statement waits for a connection, a free one or a new one. Then: StoreUnavailable, nothing was sent. */
const CONNECT_MS = 1_800

/** Connections to the database, opened as they are needed. One that fails or hangs is thrown away. */
export function openPool({ url, connectionsMax, statementMs, settings }: PoolOptions): Pool {
  const pool = new pg.Pool({
    connectionString: url,
    application_name: 'tollgate',
    max: connectionsMax,
    connectionTimeoutMillis: CONNECT_MS,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    types: { getTypeParser },
    // A little before ours: a statement that the database has ended leaves no doubt.
    ...(settings.deadlines
      ? { statement_timeout: 0.9 * statementMs, idle_in_transaction_session_timeout: 2 * statementMs }
      : {}),
  })
  // A connection that is lost while nothing runs on it is missed by nobody: the next statement opens another.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))

  let closed = false

  async function withLease<T>(work: (lease: Lease) => Promise<T>): Promise<T> {
    if (closed) throw new StoreGone('the store is closed')
    const dueMs = performance.now() + statementMs
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

  /** The work, and once more if the database gave it up for another. */
  async function twice<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      if (!gaveWay(error)) throw error
      return await work()
    }
  }

  return {
    query: (text, values) => twice(() => withLease(async (lease) => (await run(lease, text, values)).rows)),
    transaction: (work, idleMsMax) =>
      twice(() => withLease((lease) => inTransaction(lease, work, idleMsMax))),
    close() {
      closed = true
      return pool.end()
    },
  }
}

/** A connection while it is used. */
interface Lease {
  readonly client: pg.PoolClient
  /** When all that is done with it has to be done. */
  readonly dueMs: number
  /** Whatever it says after this may be the answer to something else: it is not used again. */
  broken: boolean
}

async function inTransaction<T>(
  lease: Lease,
  work: (tx: Database) => Promise<T>,
  idleMsMax?: number,
): Promise<T> {
  const tx: Database = {
    query: async (text, values) => (await run(lease, text, values)).rows,
    transaction: (inner) => inner(tx),
  }
  // Together, which spares a round trip; and for this transaction only, since the connection may be a pooler's.
  const deadline =
    idleMsMax === undefined ? '' : `; SET LOCAL idle_in_transaction_session_timeout = ${idleMsMax}`
  await run(lease, `BEGIN${deadline}`)
  let result: T
  try {
    result = await work(tx)
  } catch (error) {
    if (!lease.broken) await run(lease, 'ROLLBACK')
    // What the work itself throws is a defect of ours, or a command that cannot be done.
    if (error instanceof StoreUnavailable || error instanceof StoreRefused) throw error
    throw new StoreRefused(error instanceof Error ? error.message : String(error), { cause: error })
  }
  // After a statement that failed, and whose failure the work has swallowed, COMMIT undoes and says so.
  const { command } = await run(lease, 'COMMIT')
  if (command !== 'COMMIT') throw new StoreRefused('a statement of the transaction failed')
  return result
}

async function run(
  lease: Lease,
  text: string,
  values: readonly unknown[] = [],
): Promise<pg.QueryResult<Row>> {
  // Zero would be no deadline at all.
  const query_timeout = Math.max(1, lease.dueMs - performance.now())
  const statement: TimedStatement = { text, values: values.map(asKept), query_timeout }
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

/** Per pool and not for the whole process: pg's own table is everybody's. */
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
