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

/** A start runs these before it listens. A problem ends the start. */
const BEFORE_LISTENING: readonly Check[] = [
  checkConfiguration,
  checkDataDirectory,
  checkPepper,
  checkStore,
  checkDiskSpace,
  checkCertificate,
]

/** A start runs these once it listens, and logs what they find as warnings. */
const AFTER_LISTENING: readonly Check[] = [checkUpstreamKeys, checkUnpricedModels]

const LISTS = {
  all: [...BEFORE_LISTENING, checkUpstreamKeys, checkAccountKeys, checkUnpricedModels],
  offline: [...BEFORE_LISTENING, checkUnpricedModels],
  before_listening: BEFORE_LISTENING,
  after_listening: AFTER_LISTENING,
} as const

/** Runs the checks of a list, one after the other. They change nothing. */
export async function* runChecks(
  config: Config,
  list: keyof typeof LISTS,
  nowMs: number,
): AsyncGenerator<Finding> {
  const snapshot = openSnapshot(config)
  // A check that needs the database reports why it cannot be opened.
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

/** All checks for `tollgate doctor`. A configuration that cannot be read leaves nothing else to check. */
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
