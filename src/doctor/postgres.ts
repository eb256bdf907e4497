import type { Clock } from '../kernel/clock.ts'
import type { Secret } from '../kernel/secret.ts'
import { type Database, openPool, probeSettings } from '../store/postgres/database.ts'
import { NODE } from '../store/postgres/postgres-store.ts'
import { bool, number, present, type Row, text, textOrNull } from '../store/rows.ts'
import { SCHEMA_VERSION } from '../store/schema.ts'
import { type Check, counted, inBytes, inMs, inTime, verdicts } from './check.ts'
import type { DatabaseContents, KnownBooks } from './examiner.ts'

const ROUND_TRIPS = 9

/** The facts that the doctor has learned of the database that nodes share. None of them is secret. */
export type PostgresFacts =
  | { readonly kind: 'unreachable'; readonly reason: string }
  | {
      readonly kind: 'open'
      readonly server: ServerFacts
      readonly schemaVersionKnown: number
      /** Null: there are no books in the database yet. */
      readonly schemaVersion: number | null
      /** Null where the schema is not there, or not ours to read. */
      readonly books: BooksFacts | null
    }

type ServerFacts = Awaited<ReturnType<typeof readServer>> &
  Awaited<ReturnType<typeof measure>> & {
    /** Whether a connection may have settings of its own. A pooler in transaction mode refuses them. */
    readonly takesSettings: boolean
  }
type BooksFacts = Awaited<ReturnType<typeof readBooks>>
type NodesFacts = BooksFacts['nodes']

/** Asks the database, changes nothing in it, and does not register as a node. Never rejects. */
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

async function readServer(db: Database) {
  const row = await one(
    db,
    `SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS number,
       pg_is_in_recovery() AS is_replica, current_setting('default_transaction_read_only')::boolean AS is_read_only,
       coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS may_create,
       current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit,
       current_setting('full_page_writes') AS full_page_writes, pg_database_size(current_database()) AS bytes`,
  )
  return {
    /** The version as the server says it, such as "17.5". */
    version: text(row, 'version'),
    majorVersion: Math.trunc(number(row, 'number') / 10_000),
    /** Whether the server follows another server and takes no writes. */
    isReplica: bool(row, 'is_replica'),
    /** Whether transactions are read-only unless they ask for more, by the settings of server, database or role. */
    isReadOnly: bool(row, 'is_read_only'),
    /** Whether tables can be made: the schema at the first start, and every month one for its calls. */
    mayCreateTables: bool(row, 'may_create'),
    /** The settings for durability, in the server's words. */
    durability: {
      fsync: text(row, 'fsync'),
      synchronousCommit: text(row, 'synchronous_commit'),
      fullPageWrites: text(row, 'full_page_writes'),
    },
    bytes: number(row, 'bytes'),
  }
}

/**
 * `aheadMs`: the least that this machine is ahead. The database wrote its answer at any moment of a round trip, so the
 * shortest one tells most.
 */
export async function measure(db: Database, clock: Clock) {
  const trips: { tookMs: number; aheadMs: number }[] = []
  for (let i = 0; i < ROUND_TRIPS; i++) {
    const [startMs, beforeMs] = [clock.monotonicMs(), clock.nowMs()]
    const row = await one(db, 'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms')
    const tookMs = clock.monotonicMs() - startMs
    const databaseMs = number(row, 'now_ms')
    const aheadMs = beforeMs > databaseMs ? beforeMs - databaseMs : Math.min(0, clock.nowMs() - databaseMs)
    trips.push({ tookMs, aheadMs })
  }
  trips.sort((a, b) => a.tookMs - b.tookMs)
  const medianMs = trips[ROUND_TRIPS >> 1]?.tookMs ?? 0
  return { roundTrip: { medianMs, count: ROUND_TRIPS }, aheadMs: trips[0]?.aheadMs ?? 0 }
}

async function readSchemaVersion(db: Database): Promise<number | null> {
  const found = await one(db, "SELECT to_regclass('schema_version') IS NOT NULL AS there")
  if (!bool(found, 'there')) return null
  const [row] = await db.query('SELECT version FROM schema_version')
  return row === undefined ? null : number(row, 'version')
}

async function readBooks(db: Database) {
  const keys = await one(
    db,
    `SELECT (SELECT value FROM setting WHERE name = 'pepper') AS pepper,
       (SELECT count(*) FROM call WHERE state = 'in_flight' AND node_id <> '') AS open_calls,
       count(*) FILTER (WHERE NOT bootstrap) AS in_force, count(*) FILTER (WHERE bootstrap) AS bootstrap
     FROM admin_key WHERE revoked_at_ms IS NULL`,
  )
  const months = await one(
    db,
    `SELECT count(DISTINCT month) AS count, pg_total_relation_size('call') AS bytes FROM call`,
  )
  const contents: DatabaseContents = {
    pepperFingerprint: textOrNull(keys, 'pepper'),
    adminKeysInForce: number(keys, 'in_force'),
    bootstrapKeyInForce: number(keys, 'bootstrap') > 0,
    openCalls: number(keys, 'open_calls'),
  }
  return {
    contents,
    nodes: await readNodes(db),
    months: { count: number(months, 'count'), bytes: number(months, 'bytes') },
  }
}

async function readNodes(db: Database) {
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
    /** Nodes that are gone or given up, and whose calls no node has closed yet. */
    unswept: number(row, 'unswept'),
    callsOfUnswept: number(row, 'calls'),
    /** How long the unswept node that is silent longest has not been heard of. Zero: there is no such node. */
    longestSilenceMs: number(row, 'silent_ms'),
  }
}

async function one(db: Database, sql: string, values: readonly unknown[] = []): Promise<Row> {
  const [row] = await db.query(sql, values)
  return present(row)
}

const MAJOR_VERSION_MIN = 15
const MAJOR_VERSION_TESTED_MAX = 18
/** Every call waits for two round trips in all: one when it is admitted, one when it is settled. */
const ROUND_TRIP_MS_MAX = 10
/** Nodes close the calls that a lost node has left within 30 s. */
const SWEPT_WITHIN_MS = 60_000
const CLOCK_MS_MAX = 1_000

type Open = Extract<PostgresFacts, { kind: 'open' }>

export function* checkPostgres(place: string, facts: PostgresFacts): Generator<Check> {
  if (facts.kind === 'unreachable') {
    yield verdicts('database').problem(
      `${place} does not answer as it should: ${facts.reason}`,
      'See that it runs and can be reached from here, and that TOLLGATE_DATABASE_URL has the right user and password.',
    )
    return
  }
  const { server, books } = facts
  yield checkSharedDatabase(place, facts)
  yield checkWrites(server)
  yield checkDurability(server.durability)
  yield checkRoundTrip(server.roundTrip)
  yield checkDatabaseClock(server.aheadMs)
  yield checkPooler(server.takesSettings)
  if (books === null) return
  yield checkNodes(books.nodes, books.contents.openCalls)
  const { count, bytes } = books.months
  yield verdicts('call_months').ok(
    `${counted(count, 'month')} of calls, ${inBytes(bytes)}; the database has ${inBytes(server.bytes)} in all`,
  )
}

export function checkSharedDatabase(
  place: string,
  { server, schemaVersion, schemaVersionKnown }: Open,
): Check {
  const { ok, warning, problem } = verdicts('database')
  const found = `PostgreSQL ${server.version} at ${place}`
  if (server.majorVersion < MAJOR_VERSION_MIN)
    return problem(
      `${found}, which is older than Tollgate works with`,
      `Upgrade the server to PostgreSQL ${MAJOR_VERSION_MIN} or later.`,
    )
  if (schemaVersion !== null && schemaVersion > schemaVersionKnown)
    return problem(
      `${found}, schema version ${schemaVersion}, but this Tollgate knows up to ${schemaVersionKnown}: a newer one wrote it`,
      'Start that newer version, or restore a backup made before the upgrade.',
    )
  if (schemaVersion !== null && schemaVersion < schemaVersionKnown)
    return warning(
      `${found}, schema version ${schemaVersion}, of an older Tollgate; the next start upgrades it to ${schemaVersionKnown}`,
      'Make a backup first. Nodes of the version before may go on serving meanwhile.',
    )
  const schema = schemaVersion === null ? 'no books in it yet: the first start makes them' : ''
  const state = `${found}, ${schema || `schema version ${schemaVersion}`}`
  if (server.majorVersion > MAJOR_VERSION_TESTED_MAX)
    return warning(
      `${state}; Tollgate was tested up to PostgreSQL ${MAJOR_VERSION_TESTED_MAX}`,
      'Try it beside your production first, or use a version that was tested.',
    )
  return ok(state)
}

export function checkWrites(server: ServerFacts): Check {
  const { ok, problem } = verdicts('database_writes')
  if (server.isReplica)
    return problem(
      'the server is a replica, which takes no writes: no call would be admitted',
      'Name the primary in TOLLGATE_DATABASE_URL, or an address that follows it in a failover.',
    )
  if (server.isReadOnly)
    return problem(
      'transactions are read-only here (default_transaction_read_only): no call would be admitted',
      'Switch it off for the server, the database or the role; a full disk may have switched it on.',
    )
  if (!server.mayCreateTables)
    return problem(
      'the role may not create tables: neither the first ones nor, each month, one for its calls',
      'Make the role the owner of the database, or grant it CREATE on the schema.',
    )
  return ok('the role may write and create tables')
}

export function checkDurability({
  fsync,
  synchronousCommit,
  fullPageWrites,
}: ServerFacts['durability']): Check {
  const { ok, warning } = verdicts('durability')
  const settings = {
    fsync,
    synchronous_commit: synchronousCommit,
    full_page_writes: fullPageWrites,
  }
  const off = Object.entries(settings).filter(([, value]) => value === 'off')
  if (off.length === 0) return ok(`fsync on, synchronous_commit ${synchronousCommit}, full_page_writes on`)
  const losesOnly = off.every(([setting]) => setting === 'synchronous_commit')
  return warning(
    `${off.map(([setting]) => setting).join(', ')} off: a power cut ${losesOnly ? 'loses settled calls' : 'loses settled calls or breaks the database'}`,
    `Switch ${off.length === 1 ? 'it' : 'them'} on in the settings of the server, the database or the role.`,
  )
}

export function checkRoundTrip({ medianMs, count }: ServerFacts['roundTrip']): Check {
  const { ok, warning } = verdicts('round_trip')
  const found = `${inMs(medianMs)} to the database and back (median of ${count})`
  return medianMs <= ROUND_TRIP_MS_MAX
    ? ok(found)
    : warning(
        `${found}, which every call waits for before it goes upstream`,
        'Run the nodes in the same region and network as the database.',
      )
}

/** Nothing depends on the difference of the clocks: the check explains differences between the times of logs. */
export function checkDatabaseClock(aheadMs: number): Check {
  const { ok } = verdicts('database_clock')
  const offMs = Math.abs(aheadMs)
  if (offMs <= CLOCK_MS_MAX) return ok("agrees with this machine's; only the database's decides")
  return ok(
    `this machine is ${inTime(offMs)} ${aheadMs > 0 ? 'ahead of' : 'behind'} the database, whose clock alone decides`,
  )
}

function checkPooler(takesSettings: boolean): Check {
  return verdicts('pooler').ok(
    takesSettings
      ? 'connections have settings of their own: none, or one in session mode'
      : 'a pooler in transaction mode stands between; the nodes keep the deadlines of statements themselves',
  )
}

export function checkNodes(nodes: NodesFacts, openCalls: number): Check {
  const { ok, warning } = verdicts('nodes')
  const { alive, unswept, callsOfUnswept, longestSilenceMs } = nodes
  const serving =
    alive === 0
      ? 'no node serves now'
      : `${counted(alive, 'node')} ${alive === 1 ? 'serves' : 'serve'} now, with ${counted(openCalls - callsOfUnswept, 'call')} in flight`
  if (unswept === 0 || longestSilenceMs <= SWEPT_WITHIN_MS) return ok(serving)
  const left = `${counted(unswept, 'node')} not heard of for up to ${inTime(longestSilenceMs)} left ${counted(callsOfUnswept, 'call')} open`
  return warning(
    `${serving}, and ${left}`,
    alive === 0
      ? 'Start a node: it closes them as interrupted, at no charge, and the request log shows what was lost.'
      : 'The nodes that serve should have closed them: see their log, and run the doctor again in a minute.',
  )
}

/** The shared books, as far as the keys in them are concerned. */
export function knownBooks(shared: PostgresFacts): KnownBooks {
  if (shared.kind !== 'open') return { kind: 'broken' }
  if (shared.schemaVersion === null) return { kind: 'missing' }
  const { books } = shared
  return {
    kind: 'open',
    serving: books === null ? null : books.nodes.alive > 0,
    contents: books?.contents ?? null,
  }
}
