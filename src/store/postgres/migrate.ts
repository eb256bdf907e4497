import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../../kernel/clock.ts'
import { InstallationError } from '../../kernel/errors.ts'
import type { Log } from '../../kernel/log.ts'
import { bool, present, text } from '../rows.ts'
import { SCHEMA } from '../schema.ts'
import {
  createRecord,
  type IndexStep,
  type RecordedVersion,
  type ReleaseSchema,
  type StatementsStep,
  stepsFrom,
  updateRecord,
} from '../upgrades.ts'
import { type Pool, type Queries, sqlState } from './database.ts'
import { liftDeadlines, openConnections, readVersion } from './ledger.ts'

export interface MigrateOptions {
  readonly release: ReleaseSchema
  readonly log: Pick<Log, 'info'> | null
  /** How long a step waits for a lock at once: calls that need the table wait behind it. */
  readonly lockMs: number
  /** How long a step tries again to get its locks. */
  readonly tryMs: number
  /** A node without a heartbeat for this long has ended. */
  readonly unseenMs: number
  readonly pauseMs: number
}

const OPTIONS: MigrateOptions = {
  release: SCHEMA,
  log: null,
  lockMs: 2_000,
  tryMs: 60_000,
  unseenMs: 60_000,
  pauseMs: 500,
}

/** The key of an advisory lock. Nothing else in the database may use it. */
const MIGRATION_LOCK = 746_001

/** Creates the tables, or upgrades them step by step. One node does it, and the others wait. */
export async function migratePostgres(url: string, options: Partial<MigrateOptions> = {}): Promise<void> {
  const all = { ...OPTIONS, ...options }
  const db = openConnections(url, 2)
  try {
    // This transaction only holds the lock. A session's lock would not work behind a pooler.
    await db.transaction(async (lock) => {
      await liftDeadlines(lock)
      // While a statement waits for a lock, it has a snapshot, and a concurrent index build would wait for it in turn.
      while (!(await tryLock(lock))) await sleep(all.pauseMs)
      await upgrade(db, all)
    })
  } finally {
    await db.close()
  }
}

async function tryLock(lock: Queries): Promise<boolean> {
  const [row] = await lock.query(`SELECT pg_try_advisory_xact_lock(${MIGRATION_LOCK}) AS locked`)
  return bool(present(row), 'locked')
}

async function upgrade(db: Pool, options: MigrateOptions): Promise<void> {
  const { release, log } = options
  const [found] = await db.query("SELECT to_regclass('schema_version') IS NOT NULL AS created")
  if (!bool(present(found), 'created')) {
    await db.transaction(async (tx) => {
      await liftDeadlines(tx)
      await tx.query(`${createRecord(release)}; ${release.create('postgres')}`)
    })
    return
  }
  for (const step of stepsFrom(await readVersion(db), release)) {
    if ('index' in step) await buildIndex(db, step)
    else await runStep(db, step, options)
    log?.info({ version: step.version }, 'the database was upgraded to this schema version')
  }
}

/** If the build is interrupted, the index remains, but is invalid. */
async function buildIndex(db: Queries, step: IndexStep & RecordedVersion): Promise<void> {
  const { name, on } = step.index
  const [found] = await db.query(
    'SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass($1)',
    [name],
  )
  const isValid = found !== undefined && bool(found, 'valid')
  if (found !== undefined && !isValid) await db.query(`DROP INDEX CONCURRENTLY ${name}`)
  if (!isValid) await db.query(`CREATE INDEX CONCURRENTLY ${name} ON ${on}`)
  await db.query(updateRecord(step))
}

const LOCK_TIMED_OUT = '55P03'

async function runStep(
  db: Pool,
  step: StatementsStep & RecordedVersion,
  { lockMs, tryMs, unseenMs, pauseMs, log }: MigrateOptions,
): Promise<void> {
  let triedSinceMs = systemClock.monotonicMs()
  let named = ''
  for (;;) {
    try {
      const nodes = await db.transaction((tx) => runInTransaction(tx, step, lockMs, unseenMs))
      if (nodes === '') return
      if (nodes !== named) log?.info({ nodes }, 'the upgrade waits until these nodes of an older release end')
      named = nodes
      triedSinceMs = systemClock.monotonicMs()
    } catch (error) {
      if (sqlState(error) !== LOCK_TIMED_OUT) throw error
      if (systemClock.monotonicMs() - triedSinceMs >= tryMs)
        throw new InstallationError(
          `The upgrade to schema version ${step.version} could not lock its tables for ${tryMs / 1_000} seconds, because ` +
            'other sessions use them. The step changed nothing, and earlier steps stay. Find the sessions in ' +
            'pg_stat_activity and end them, for example a dump; then start the gateway again.',
        )
    }
    await sleep(pauseMs)
  }
}

/** Returns the names of running nodes that could not use the new tables. If there are any, nothing is changed. */
async function runInTransaction(
  tx: Queries,
  step: StatementsStep & RecordedVersion,
  lockMs: number,
  unseenMs: number,
): Promise<string> {
  await liftDeadlines(tx)
  await tx.query(`SET LOCAL lock_timeout = ${lockMs}`)
  // Nodes that register wait for this row, and then see the new version.
  await tx.query('SELECT 1 FROM schema_version FOR UPDATE')
  const isOlder = 'schema_version < $1 AND fenced_at_ms IS NULL'
  const running = await tx.query(
    `SELECT name FROM node WHERE ${isOlder} AND seen_at_ms > now_ms() - $2 ORDER BY name`,
    [step.oldestVersion, unseenMs],
  )
  if (running.length > 0) return running.map((row) => text(row, 'name')).join(', ')
  await tx.query(`UPDATE node SET fenced_at_ms = now_ms() WHERE ${isOlder}`, [step.oldestVersion])
  if (step.statements.postgres !== undefined) await tx.query(step.statements.postgres)
  await tx.query(updateRecord(step))
  return ''
}
