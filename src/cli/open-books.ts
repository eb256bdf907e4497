import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../config.ts'
import { InstallationError, openStore, unopenedDatabase } from '../installation.ts'
import { systemClock } from '../kernel/clock.ts'
import { createLog } from '../kernel/log.ts'
import { hasLedger } from '../store/postgres/ledger-snapshot.ts'
import { refuseMissing } from './open-ledger.ts'
import { Failure } from './run-command.ts'

/** Opens the books for a command: beside running gateways or without one. */
export async function openBooks(config: Config): ReturnType<typeof openStore> {
  const { dataDir } = config
  // A command in the wrong place must not make books of its own there, and show them as if they were the right ones.
  if (!(await areThere(config)))
    refuseMissing(config, '; name the right place, or a running gateway with --url')
  try {
    // Whatever is asked of a store that failed is refused, and that is how the command learns of it.
    return await openStore(config, {
      log: createLog('silent'),
      clock: systemClock,
      diskFault: null,
      onFatal() {},
    })
  } catch (error) {
    if (error instanceof InstallationError || !(error instanceof Error)) throw error
    throw new Failure(`The books in ${dataDir} cannot be opened: ${error.message}`)
  }
}

async function areThere({ dataDir, databaseUrl }: Config): Promise<boolean> {
  if (databaseUrl === null) return existsSync(join(dataDir, 'tollgate.db'))
  return await hasLedger(databaseUrl.reveal()).catch((error: Error) => {
    throw unopenedDatabase(databaseUrl, error)
  })
}
