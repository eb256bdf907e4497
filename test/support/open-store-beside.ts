import { openStore } from '../../src/app/installation.ts'
import { readConfig } from '../../src/config/read-config.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { createLog } from '../../src/kernel/log.ts'
import type { Store } from '../../src/store/store.ts'
import type { DatabaseOwner } from './read-database.ts'
import { databaseVariable } from './test-store.ts'

/** Opens the database of a running gateway as a command does. */
export async function openStoreBeside(gateway: DatabaseOwner): Promise<Store> {
  const config = readConfig(
    { TOLLGATE_DATA_DIR: gateway.dataDir, ...databaseVariable(gateway) },
    gateway.dataDir,
  )
  const { store } = await openStore(config, {
    log: createLog('silent'),
    clock: systemClock,
    onFatal(error) {
      throw error
    },
  })
  return store
}
