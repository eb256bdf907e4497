import { readFileSync } from 'node:fs'
import type { Config } from '../config.ts'
import { type Secret, shownDatabase } from '../kernel/secret.ts'
import { askExaminer } from './ask-examiner.ts'
import { type Check, type DoctorContext, verdicts } from './check.ts'
import { checkClock, checkOpenFiles, checkRuntime, checkSpace, checkSpeed } from './check-machine.ts'
import {
  checkAdminKey,
  checkDatabase,
  checkDirectory,
  checkIntegrity,
  checkPepper,
  checkRefused,
  checkServing,
} from './check-store.ts'
import {
  checkCertificate,
  checkConfiguration,
  checkPrices,
  checkSurfaces,
  hideSecretsOf,
  readSettings,
  type Settings,
} from './configuration.ts'
import { checkUpstream } from './upstream.ts'

/** Checks everything that a gateway with this environment would depend on, and changes nothing. */
export async function* examine(context: DoctorContext): AsyncGenerator<Check> {
  const hide = hideSecretsOf(context.environment)
  for await (const check of allChecks(context)) {
    const found = hide(check.found)
    yield check.todo === null ? { ...check, found } : { ...check, found, todo: hide(check.todo) }
  }
}

async function* allChecks(context: DoctorContext): AsyncGenerator<Check> {
  const { environment, workingDir, clock } = context
  yield checkRuntime({ version: process.versions.node, execArgv: process.execArgv, environment })
  yield checkOpenFiles(textOf('/proc/self/limits'))
  const settings = readSettings(environment, workingDir)
  yield* checkConfiguration(settings)
  const { config } = settings
  if (config !== null) yield* checkCertificate(config, clock.nowMs())
  yield checkSurfaces(settings)
  if (config === null) return
  const surfaces = ['messages', 'chat'] as const
  const asked = Promise.all(surfaces.map((surface) => checkUpstream(surface, config, settings, context)))
  yield* checkDataDir(settings, config, context)
  const upstreams = await asked
  for (const { check } of upstreams) yield check
  yield checkClock(upstreams.flatMap(({ clock: read }) => read ?? []))
  const lists = upstreams.flatMap(({ models }) => (models === null ? [] : [models]))
  yield* checkPrices(config, lists.length === 0 ? null : [...new Set(lists.flat())], clock.nowMs())
}

async function* checkDataDir(
  { booksAreDoubtful }: Settings,
  config: Config,
  context: DoctorContext,
): AsyncGenerator<Check> {
  const { databaseUrl } = config
  const asked = databaseUrl === null ? null : askPostgres(databaseUrl, context)
  const place = asked === null && !booksAreDoubtful ? 'books-here' : 'books-elsewhere'
  const { facts, cutShort } = await askExaminer(config.dataDir, place, context)
  const shared = await asked
  const { directory, disk, database, integrity } = facts
  if (directory !== undefined) {
    const known = place === 'books-here' ? database : (shared?.books ?? { kind: 'broken' as const })
    yield checkDirectory(config.dataDir, directory)
    yield checkPepper(config, { directory, database: known })
    yield checkAdminKey(config, { directory, database: known })
    yield* checkRefused(config.dataDir, directory)
  }
  if (disk !== undefined) {
    yield checkSpace(disk)
    yield checkSpeed(disk.fsync)
  }
  if (shared !== null) yield* shared.checks
  if (booksAreDoubtful) yield verdicts('database').skipped('not looked at before its configuration is good')
  if (database !== undefined) {
    yield checkDatabase(database)
    yield checkServing(database)
    yield checkIntegrity(database, integrity, cutShort, context.deadlines.integrityMs)
  } else if (cutShort !== null && (place === 'books-here' || disk === undefined)) {
    const name = directory === undefined ? 'data_directory' : disk === undefined ? 'disk_speed' : 'database'
    yield verdicts(name).problem(
      cutShort === 'late' ? 'no answer from the disk before the deadline' : 'it could not be looked at',
      'See that the disk works and that a network file system is reachable, then run the doctor again.',
    )
  }
}

async function askPostgres(databaseUrl: Secret, { deadlines, clock }: DoctorContext) {
  // The driver of PostgreSQL is 35 modules: it is loaded only here.
  const { checkPostgres, examinePostgres, knownBooks } = await import('./postgres.ts')
  const facts = await examinePostgres(databaseUrl, deadlines.checkMs, clock)
  return { books: knownBooks(facts), checks: checkPostgres(shownDatabase(databaseUrl), facts) }
}

function textOf(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}
