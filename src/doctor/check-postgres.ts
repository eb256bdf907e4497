import { counted, inBytes, inMs, inTime } from './amounts.ts'
import { type Check, ok, problem, warning } from './check.ts'
import type { DurabilityFacts, NodesFacts, PostgresFacts, ServerFacts } from './postgres-facts.ts'

const MAJOR_VERSION_MIN = 15
const MAJOR_VERSION_TESTED_MAX = 18
/** Every call waits for two round trips in all: one when it is admitted, one when it is settled. */
const ROUND_TRIP_MS_MAX = 10
/** Nodes close what another has left within 30 s. */
const SWEPT_WITHIN_MS = 60_000
const CLOCK_MS_MAX = 1_000

type Open = Extract<PostgresFacts, { kind: 'open' }>

export function* checkPostgres(place: string, facts: PostgresFacts): Generator<Check> {
  if (facts.kind === 'unreachable') {
    yield problem(
      'database',
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
  yield ok(
    'call_months',
    `${counted(count, 'month')} of calls, ${inBytes(bytes)}; the database has ${inBytes(server.bytes)} in all`,
  )
}

export function checkSharedDatabase(
  place: string,
  { server, schemaVersion, schemaVersionKnown }: Open,
): Check {
  const name = 'database'
  const found = `PostgreSQL ${server.version} at ${place}`
  if (server.majorVersion < MAJOR_VERSION_MIN) {
    return problem(
      name,
      `${found}, which is older than Tollgate works with`,
      `Upgrade the server to PostgreSQL ${MAJOR_VERSION_MIN} or later.`,
    )
  }
  if (schemaVersion !== null && schemaVersion > schemaVersionKnown) {
    return problem(
      name,
      `${found}, schema version ${schemaVersion}, but this Tollgate knows up to ${schemaVersionKnown}: a newer one wrote it`,
      'Start that newer version, or restore a backup made before the upgrade.',
    )
  }
  if (schemaVersion !== null && schemaVersion < schemaVersionKnown) {
    return warning(
      name,
      `${found}, schema version ${schemaVersion}, of an older Tollgate; the next start upgrades it to ${schemaVersionKnown}`,
      'Make a backup first. Nodes of the version before may go on serving meanwhile.',
    )
  }
  const schema = schemaVersion === null ? 'no books in it yet: the first start makes them' : ''
  const state = `${found}, ${schema || `schema version ${schemaVersion}`}`
  if (server.majorVersion > MAJOR_VERSION_TESTED_MAX) {
    return warning(
      name,
      `${state}; Tollgate was tested up to PostgreSQL ${MAJOR_VERSION_TESTED_MAX}`,
      'Try it beside your production first, or use a version that was tested.',
    )
  }
  return ok(name, state)
}

export function checkWrites(server: ServerFacts): Check {
  const name = 'database_writes'
  if (server.isReplica) {
    return problem(
      name,
      'the server is a replica, which takes no writes: no call would be admitted',
      'Name the primary in TOLLGATE_DATABASE_URL, or an address that follows it in a failover.',
    )
  }
  if (server.isReadOnly) {
    return problem(
      name,
      'transactions are read-only here (default_transaction_read_only): no call would be admitted',
      'Switch it off for the server, the database or the role; a full disk may have switched it on.',
    )
  }
  if (!server.mayCreateTables) {
    return problem(
      name,
      'the role may not create tables: neither the first ones nor, each month, one for its calls',
      'Make the role the owner of the database, or grant it CREATE on the schema.',
    )
  }
  return ok(name, 'the role may write and create tables')
}

export function checkDurability({ fsync, synchronousCommit, fullPageWrites }: DurabilityFacts): Check {
  const name = 'durability'
  const settings = {
    fsync,
    synchronous_commit: synchronousCommit,
    full_page_writes: fullPageWrites,
  }
  const off = Object.entries(settings).filter(([, value]) => value === 'off')
  if (off.length === 0)
    return ok(name, `fsync on, synchronous_commit ${synchronousCommit}, full_page_writes on`)
  const losesOnly = off.every(([setting]) => setting === 'synchronous_commit')
  return warning(
    name,
    `${off.map(([setting]) => setting).join(', ')} off: a power cut ${losesOnly ? 'loses settled calls' : 'loses settled calls or breaks the database'}`,
    `Switch ${off.length === 1 ? 'it' : 'them'} on in the settings of the server, the database or the role.`,
  )
}

export function checkRoundTrip({ medianMs, count }: ServerFacts['roundTrip']): Check {
  const name = 'round_trip'
  const found = `${inMs(medianMs)} to the database and back (median of ${count})`
  return medianMs <= ROUND_TRIP_MS_MAX
    ? ok(name, found)
    : warning(
        name,
        `${found}, which every call waits for before it goes upstream`,
        'Run the nodes in the same region and network as the database.',
      )
}

/** Nothing depends on it: it is told because whoever compares logs wonders. */
export function checkDatabaseClock(aheadMs: number): Check {
  const name = 'database_clock'
  const offMs = Math.abs(aheadMs)
  if (offMs <= CLOCK_MS_MAX) return ok(name, "agrees with this machine's; only the database's decides")
  return ok(
    name,
    `this machine is ${inTime(offMs)} ${aheadMs > 0 ? 'ahead of' : 'behind'} the database, whose clock alone decides`,
  )
}

export function checkPooler(takesSettings: boolean): Check {
  return ok(
    'pooler',
    takesSettings
      ? 'connections have settings of their own: none, or one in session mode'
      : 'a pooler in transaction mode stands between; the nodes keep the deadlines of statements themselves',
  )
}

export function checkNodes(nodes: NodesFacts, openCalls: number): Check {
  const name = 'nodes'
  const { alive, unswept, callsOfUnswept, longestSilenceMs } = nodes
  const serving =
    alive === 0
      ? 'no node serves now'
      : `${counted(alive, 'node')} ${alive === 1 ? 'serves' : 'serve'} now, with ${counted(openCalls - callsOfUnswept, 'call')} in flight`
  if (unswept === 0 || longestSilenceMs <= SWEPT_WITHIN_MS) return ok(name, serving)
  const left = `${counted(unswept, 'node')} not heard of for up to ${inTime(longestSilenceMs)} left ${counted(callsOfUnswept, 'call')} open`
  return warning(
    name,
    `${serving}, and ${left}`,
    alive === 0
      ? 'Start a node: it closes them as interrupted, at no charge, and the request log shows what was lost.'
      : 'The nodes that serve should have closed them: see their log, and run the doctor again in a minute.',
  )
}
