import { type Config, type Environment, readConfig } from '../config.ts'
import { openSnapshot } from '../store/data-dir.ts'
import type { Check, Finding } from './check.ts'
import {
  checkCertificate,
  checkConfiguration,
  checkDataDirectory,
  checkDiskSpace,
  checkPepper,
  checkStore,
  configurationProblems,
} from './local-checks.ts'
import { checkAccountKeys, checkUnpricedModels, checkUpstreamKeys } from './upstream-checks.ts'

/** Run before the gateway listens. A problem aborts the start. */
const BEFORE_LISTENING: readonly Check[] = [
  checkConfiguration,
  checkDataDirectory,
  checkPepper,
  checkStore,
  checkDiskSpace,
  checkCertificate,
]

/** Run once the gateway listens. Findings are logged as warnings. */
const AFTER_LISTENING: readonly Check[] = [checkUpstreamKeys, checkUnpricedModels]

const LISTS = {
  all: [...BEFORE_LISTENING, checkUpstreamKeys, checkAccountKeys, checkUnpricedModels],
  offline: [...BEFORE_LISTENING, checkUnpricedModels],
  before_listening: BEFORE_LISTENING,
  after_listening: AFTER_LISTENING,
} as const

/** Runs checks in order. They change nothing. */
export async function* runChecks(
  config: Config,
  list: keyof typeof LISTS,
  nowMs: number,
): AsyncGenerator<Finding> {
  const snapshot = openSnapshot(config)
  // The checks that need the database report the failure.
  snapshot.catch(() => {})
  try {
    for (const check of LISTS[list]) yield* await check({ config, nowMs, snapshot })
  } finally {
    await snapshot.then(
      (opened) => opened?.close(),
      () => {},
    )
  }
}

/** All checks of `tollgate doctor`. Without a readable configuration there is nothing else to check. */
export async function* examine(
  environment: Environment,
  list: 'all' | 'offline',
  nowMs: number,
): AsyncGenerator<Finding> {
  let config: Config
  try {
    config = readConfig(environment)
  } catch (error) {
    yield* configurationProblems('configuration', error)
    return
  }
  yield* runChecks(config, list, nowMs)
}
