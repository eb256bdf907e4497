import { join } from 'node:path'
import { type Config, ConfigError } from '../config.ts'
import { unopenedDatabase } from '../installation.ts'
import { shownDatabase } from '../store/postgres/shown-database.ts'

/** How a command opens the books in each of the stores. Null: there are none. */
export interface LedgerOpeners<T> {
  inFile(file: string): Promise<T | null>
  inDatabase(url: string): Promise<T | null>
}

/** For commands that work on the books themselves, not through the store: beside whoever serves, or without. */
export async function openLedger<T>(config: Config, openers: LedgerOpeners<T>): Promise<T> {
  const { dataDir, databaseUrl } = config
  if (databaseUrl === null)
    return (await openers.inFile(join(dataDir, 'tollgate.db'))) ?? refuseMissing(config)
  const opened = await openers.inDatabase(databaseUrl.reveal()).catch((error: Error) => {
    throw unopenedDatabase(databaseUrl, error)
  })
  return opened ?? refuseMissing(config)
}

/** Where the books are, for people. */
export function placeOfBooks({ dataDir, databaseUrl }: Config): string {
  return databaseUrl === null ? dataDir : shownDatabase(databaseUrl)
}

/** A wrong place must not pass for books in order, nor get books of its own from a command. */
export function refuseMissing(config: Config, more = ''): never {
  const variable = config.databaseUrl === null ? 'TOLLGATE_DATA_DIR' : 'TOLLGATE_DATABASE_URL'
  throw new ConfigError([`${variable}: there are no books in ${placeOfBooks(config)}${more}`])
}
