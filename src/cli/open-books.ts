import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, ConfigError } from '../config.ts'
import { InstallationError, openStore } from '../installation.ts'
import { systemClock } from '../kernel/clock.ts'
import { createLog } from '../kernel/log.ts'
import { Failure } from './run-command.ts'

/** Opens the books of the data directory for a command: beside a running gateway or without one. */
export async function openBooks(config: Config): ReturnType<typeof openStore> {
  const { dataDir } = config
  // A command in the wrong folder must not make books of its own there, and show them as if they were the right ones.
  if (!existsSync(join(dataDir, 'tollgate.db'))) {
    throw new ConfigError([
      `TOLLGATE_DATA_DIR: there are no books in ${dataDir}; name the right folder, or a running gateway with --url`,
    ])
  }
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
