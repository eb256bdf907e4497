import { join } from 'node:path'
import type { Secret } from '../kernel/secret.ts'
import type { Snapshot } from './operations/operation.ts'

/** Where a database is. */
export interface StoreLocation {
  readonly dataDir: string
  /** Null: SQLite in the data directory. */
  readonly databaseUrl: Secret | null
}

/** Opens a database for reading, beside running gateways or without one. Null: there is none yet. */
export async function openSnapshot({ dataDir, databaseUrl }: StoreLocation): Promise<Snapshot | null> {
  // Each driver is loaded only where it is used.
  if (databaseUrl === null)
    return await (await import('./sqlite/ledger-file.ts')).openSnapshot(join(dataDir, 'tollgate.db'))
  return await (await import('./postgres/ledger-snapshot.ts')).openSnapshot(databaseUrl.reveal())
}
