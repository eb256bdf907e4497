import { type Config, type Environment, readConfig } from '../config/read-config.ts'
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
import { checkAllKeys, checkUnpricedModels } from './upstream-checks.ts'

type NamedCheck = readonly [name: string, check: Check]

/** Run before the gateway listens. A problem aborts the start. */
const BEFORE_LISTENING: readonly NamedCheck[] = [
  ['configuration', checkConfiguration],
  ['data_directory', checkDataDirectory],
  ['pepper', checkPepper],
  ['store', checkStore],
  ['disk_space', checkDiskSpace],
  ['certificate', checkCertificate],
]

const PRICES: NamedCheck = ['prices', checkUnpricedModels]

const LISTS = {
  all: [...BEFORE_LISTENING, ['upstream_keys', checkAllKeys], PRICES],
  offline: [...BEFORE_LISTENING, PRICES],
  before_listening: BEFORE_LISTENING,
  /** Run once the gateway listens, besides the probe of the upstreams. Findings are logged as warnings. */
  after_listening: [PRICES],
} as const satisfies Readonly<Record<string, readonly NamedCheck[]>>

/** Runs checks in order. They only read. */
export async function* runChecks(
  config: Config,
  list: keyof typeof LISTS,
  nowMs: number,
): AsyncGenerator<Finding> {
  const snapshot = openSnapshot(config)
  // The checks that need the database report the failure.
  snapshot.catch(() => {})
  try {
    for (const [name, check] of LISTS[list])
      for (const result of [await check({ config, nowMs, snapshot })].flat()) yield { name, ...result }
  } finally {
    await snapshot.then(
      (opened) => opened?.close(),
      () => {},
    )
  }
}

/** All checks of `tollgate doctor`. If the configuration cannot be read, no other check can run. */
export async function* runDoctor(
  environment: Environment,
  list: 'all' | 'offline',
  nowMs: number,
): AsyncGenerator<Finding> {
  let config: Config
  try {
    config = readConfig(environment)
  } catch (error) {
    for (const result of configurationProblems(error)) yield { name: 'configuration', ...result }
    return
  }
  yield* runChecks(config, list, nowMs)
}
