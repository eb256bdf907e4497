import { type Check, counted, inBytes, inMs, inTime, verdicts } from './check.ts'
import type { NodesFacts, PostgresFacts, ServerFacts } from './examine-postgres.ts'

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

/** Nothing depends on it: it explains differences between the times of logs. */
export function checkDatabaseClock(aheadMs: number): Check {
  const { ok } = verdicts('database_clock')
  const offMs = Math.abs(aheadMs)
  if (offMs <= CLOCK_MS_MAX) return ok("agrees with this machine's; only the database's decides")
  return ok(
    `this machine is ${inTime(offMs)} ${aheadMs > 0 ? 'ahead of' : 'behind'} the database, whose clock alone decides`,
  )
}

export function checkPooler(takesSettings: boolean): Check {
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
