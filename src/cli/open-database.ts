import { databaseNotOpened, openStore } from '../app/installation.ts'
import { type Config, ConfigError, namesGateway } from '../config/read-config.ts'
import { systemClock } from '../kernel/clock.ts'
import { InstallationError } from '../kernel/errors.ts'
import type { Log } from '../kernel/log.ts'
import { shownDatabase } from '../kernel/secret.ts'
import { lockDataDir, openSnapshot } from '../store/data-dir.ts'
import type { Snapshot } from '../store/operations/operation.ts'
import { Failure } from './command.ts'

/** Awaits a database. Throws an error that names the fix if it cannot be opened, or if there is none (null). */
export async function openOrExplain<T>(config: Config, opening: Promise<T | null>): Promise<T> {
  const { dataDir, databaseUrl } = config
  const found = await opening.catch((error: Error) => {
    if (error instanceof InstallationError) throw error
    if (databaseUrl !== null) throw databaseNotOpened(databaseUrl, error)
    throw new Failure(
      `The database in ${dataDir} cannot be opened: ${error.message}. Check TOLLGATE_DATA_DIR.`,
    )
  })
  if (found !== null) return found
  const variable = databaseUrl === null ? 'TOLLGATE_DATA_DIR' : 'TOLLGATE_DATABASE_URL'
  throw new ConfigError([
    `${variable}: there is no Tollgate database in ${databaseLocation(config)}${namesGateway(process.env) ? LOCAL_ONLY : ''}`,
  ])
}

const LOCAL_ONLY =
  '. This command opens the database itself and does not use TOLLGATE_URL: run it on the host of the gateway, with its ' +
  'TOLLGATE_DATA_DIR or TOLLGATE_DATABASE_URL'

export function openDatabaseSnapshot(config: Config): Promise<Snapshot> {
  return openOrExplain(config, openSnapshot(config))
}

/** A log that writes nothing. Loading pino for it would take 40 ms. */
const SILENT: Log = { fatal() {}, error() {}, warn() {}, info() {}, debug() {}, trace() {} }

/** Opens the store for a command. Gateways may be running. */
export async function openDatabase(config: Config): ReturnType<typeof openStore> {
  // With a wrong data directory, openStore would create an empty database.
  await (await openDatabaseSnapshot(config)).close()
  // `onFatal` does nothing: a failed store refuses every operation, which the command reports.
  const surroundings = { log: SILENT, clock: systemClock, onFatal() {} }
  return await openOrExplain(config, openStore(config, surroundings))
}

/** Locks a SQLite database against gateways while a command needs exclusive access. Null: PostgreSQL. */
export function lockOrFail({ dataDir, databaseUrl }: Config): ReturnType<typeof lockDataDir> {
  if (databaseUrl !== null) return null
  const lock = lockDataDir(dataDir)
  if (lock === null) throw new Failure(`A running gateway uses ${dataDir}. Stop it first.`)
  return lock
}

export function databaseLocation({ dataDir, databaseUrl }: Config): string {
  return databaseUrl === null ? dataDir : shownDatabase(databaseUrl)
}
