import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, ConfigError } from '../config.ts'
import { openStore, unopenedDatabase } from '../installation.ts'
import { systemClock } from '../kernel/clock.ts'
import { InstallationError } from '../kernel/errors.ts'
import type { Log } from '../kernel/log.ts'
import { shownDatabase } from '../kernel/secret.ts'
import { type DataDirLock, lockDataDir, openSnapshot } from '../store/data-dir.ts'
import type { Snapshot } from '../store/operations/operation.ts'
import { Failure } from './command.ts'

/** Opens the store for a command, with or without running gateways. */
export async function openDatabase(config: Config): ReturnType<typeof openStore> {
  // A command with a wrong data directory must not create an empty database and report on it.
  if (!(await exists(config))) refuseMissing(config)
  try {
    // `onFatal` does nothing: a failed store refuses every operation, which the command reports.
    return await openStore(config, { log: SILENT, clock: systemClock, diskFault: null, onFatal() {} })
  } catch (error) {
    if (error instanceof InstallationError || !(error instanceof Error)) throw error
    throw new Failure(`The database in ${config.dataDir} cannot be opened: ${error.message}`)
  }
}

/** Not a silent pino, because loading pino takes 40 ms. */
const SILENT: Log = { fatal() {}, error() {}, warn() {}, info() {}, debug() {}, trace() {} }

async function exists({ dataDir, databaseUrl }: Config): Promise<boolean> {
  if (databaseUrl === null) return existsSync(join(dataDir, 'tollgate.db'))
  // Load PostgreSQL's driver, 35 modules, only here.
  const { hasLedger } = await import('../store/postgres/ledger.ts')
  return await hasLedger(databaseUrl.reveal()).catch((error: Error) => {
    throw unopenedDatabase(databaseUrl, error)
  })
}

/** A snapshot of the database, for commands that only read. */
export async function openDatabaseSnapshot(config: Config): Promise<Snapshot> {
  const snapshot = await openSnapshot(config).catch((error: Error) => {
    if (config.databaseUrl !== null) throw unopenedDatabase(config.databaseUrl, error)
    throw new Failure(`The database in ${config.dataDir} cannot be opened: ${error.message}`)
  })
  return snapshot ?? refuseMissing(config)
}

/** Locks a SQLite database against gateways while a command needs exclusive access. Null: PostgreSQL. */
export function holdDataDir({ dataDir, databaseUrl }: Config): DataDirLock | null {
  if (databaseUrl !== null) return null
  const lock = lockDataDir(dataDir)
  if (lock === null) throw new Failure(`A gateway serves from ${dataDir}. Stop it first.`)
  return lock
}

/** Where the database is, for output. */
export function databaseLocation({ dataDir, databaseUrl }: Config): string {
  return databaseUrl === null ? dataDir : shownDatabase(databaseUrl)
}

function refuseMissing(config: Config): never {
  const variable = config.databaseUrl === null ? 'TOLLGATE_DATA_DIR' : 'TOLLGATE_DATABASE_URL'
  throw new ConfigError([`${variable}: there is no Tollgate database in ${databaseLocation(config)}`])
}
