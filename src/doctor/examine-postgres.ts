import type { Clock } from '../kernel/clock.ts'
import type { Secret } from '../kernel/secret.ts'
import { type Database, openPool, probeSettings } from '../store/postgres/database.ts'
import { SCHEMA_VERSION } from '../store/postgres/migrate.ts'
import { NODE } from '../store/postgres/postgres-store.ts'
import { bool, number, present, type Row, text, textOrNull } from '../store/rows.ts'
import type { BooksFacts, NodesFacts, PostgresFacts, ServerFacts } from './postgres-facts.ts'

const ROUND_TRIPS = 9

/** Asks the database, changes nothing in it, and is no node. Never rejects. */
export async function examinePostgres(
  databaseUrl: Secret,
  deadlineMs: number,
  clock: Clock,
): Promise<PostgresFacts> {
  const url = databaseUrl.reveal()
  try {
    const { deadlines: takesSettings } = await probeSettings(url)
    const pool = openPool({ url, connectionsMax: 1, statementMs: deadlineMs, settings: { deadlines: false } })
    try {
      return await pool.transaction(async (tx) => {
        await tx.query('SET TRANSACTION READ ONLY')
        return await readFacts(tx, takesSettings, clock)
      })
    } finally {
      await pool.close()
    }
  } catch (error) {
    return { kind: 'unreachable', reason: (error as Error).message }
  }
}

async function readFacts(db: Database, takesSettings: boolean, clock: Clock): Promise<PostgresFacts> {
  const server = { ...(await readServer(db)), ...(await measure(db, clock)), takesSettings }
  const schemaVersion = await readSchemaVersion(db)
  const isReadable = schemaVersion !== null && schemaVersion <= SCHEMA_VERSION
  return {
    kind: 'open',
    server,
    schemaVersionKnown: SCHEMA_VERSION,
    schemaVersion,
    books: isReadable ? await readBooks(db) : null,
  }
}

async function readServer(
  db: Database,
): Promise<Omit<ServerFacts, 'takesSettings' | 'roundTrip' | 'aheadMs'>> {
  const row = await one(
    db,
    `SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS number,
       pg_is_in_recovery() AS is_replica, current_setting('default_transaction_read_only')::boolean AS is_read_only,
       coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS may_create,
       current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('full_page_writes') AS full_page_writes, pg_database_size(current_database()) AS bytes`,
  )
  return {
    version: text(row, 'version'),
    majorVersion: Math.trunc(number(row, 'number') / 10_000),
    isReplica: bool(row, 'is_replica'),
    isReadOnly: bool(row, 'is_read_only'),
    mayCreateTables: bool(row, 'may_create'),
    durability: {
      fsync: text(row, 'fsync'),
      synchronousCommit: text(row, 'synchronous_commit'),
      fullPageWrites: text(row, 'full_page_writes'),
    },
    bytes: number(row, 'bytes'),
  }
}

async function measure(db: Database, clock: Clock): Promise<Pick<ServerFacts, 'roundTrip' | 'aheadMs'>> {
  const took: number[] = []
  let aheadMs = 0
  for (let i = 0; i < ROUND_TRIPS; i++) {
    const [startMs, beforeMs] = [clock.monotonicMs(), clock.nowMs()]
    const row = await one(db, 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms')
    took.push(clock.monotonicMs() - startMs)
    const databaseMs = number(row, 'now_ms')
    aheadMs = beforeMs > databaseMs ? beforeMs - databaseMs : Math.min(0, clock.nowMs() - databaseMs)
  }
  const medianMs = took.sort((a, b) => a - b)[ROUND_TRIPS >> 1] ?? 0
  return { roundTrip: { medianMs, count: ROUND_TRIPS }, aheadMs }
}

async function readSchemaVersion(db: Database): Promise<number | null> {
  const found = await one(db, "SELECT to_regclass('schema_version') IS NOT NULL AS there")
  if (!bool(found, 'there')) return null
  const [row] = await db.query('SELECT version FROM schema_version')
  return row === undefined ? null : number(row, 'version')
}

async function readBooks(db: Database): Promise<BooksFacts> {
  const keys = await one(
    db,
    `SELECT (SELECT value FROM setting WHERE name = 'pepper') AS pepper,
       (SELECT count(*) FROM call WHERE state = 'in_flight') AS open_calls,
       count(*) FILTER (WHERE NOT bootstrap) AS in_force, count(*) FILTER (WHERE bootstrap) AS bootstrap
     FROM admin_key WHERE revoked_at_ms IS NULL`,
  )
  const months = await one(
    db,
    `SELECT count(*) AS count, coalesce(sum(pg_total_relation_size(inhrelid)), 0)::bigint AS bytes
     FROM pg_inherits WHERE inhparent = 'call'::regclass`,
  )
  return {
    contents: {
      pepperFingerprint: textOrNull(keys, 'pepper'),
      adminKeysInForce: number(keys, 'in_force'),
      bootstrapKeyInForce: number(keys, 'bootstrap') > 0,
      openCalls: number(keys, 'open_calls'),
    },
    nodes: await readNodes(db),
    months: { count: number(months, 'count'), bytes: number(months, 'bytes') },
  }
}

async function readNodes(db: Database): Promise<NodesFacts> {
  const row = await one(
    db,
    `WITH others AS (
       SELECT id, now_ms() - seen_at_ms AS silent_ms, fenced_at_ms IS NULL AND seen_at_ms >= now_ms() - $1 AS alive
       FROM node WHERE cleared_at_ms IS NULL
     )
     SELECT count(*) FILTER (WHERE alive) AS alive, count(*) FILTER (WHERE NOT alive) AS unswept,
       coalesce(max(silent_ms) FILTER (WHERE NOT alive), 0) AS silent_ms,
       (SELECT count(*) FROM call
        WHERE state = 'in_flight' AND node_id IN (SELECT id FROM others WHERE NOT alive)) AS calls
     FROM others`,
    [NODE.silentMs],
  )
  return {
    alive: number(row, 'alive'),
    unswept: number(row, 'unswept'),
    callsOfUnswept: number(row, 'calls'),
    longestSilenceMs: number(row, 'silent_ms'),
  }
}

async function one(db: Database, sql: string, values: readonly unknown[] = []): Promise<Row> {
  const [row] = await db.query(sql, values)
  return present(row)
}
