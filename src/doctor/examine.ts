import { readFileSync } from 'node:fs'
import type { Config, Environment, UpstreamConfig } from '../config.ts'
import type { Clock } from '../kernel/clock.ts'
import type { Surface } from '../providers/surface.ts'
import { shownDatabase } from '../store/postgres/shown-database.ts'
import { askExaminer, type Deadlines, type ProgressBar } from './ask-examiner.ts'
import { askUpstream, type UpstreamAnswer } from './ask-upstream.ts'
import { type Check, verdicts } from './check.ts'
import { checkConfiguration, checkPrices, checkSurfaces, readPrices } from './check-configuration.ts'
import {
  checkClock,
  checkOpenFiles,
  checkRuntime,
  checkSpace,
  checkSpeed,
  type HostClock,
} from './check-machine.ts'
import { checkPostgres } from './check-postgres.ts'
import {
  checkAdminKey,
  checkDatabase,
  checkDirectory,
  checkIntegrity,
  checkPepper,
  checkServing,
} from './check-store.ts'
import { checkUpstream, keyVariableOf, upstreamCheckName } from './check-upstream.ts'
import { examinePostgres, type PostgresFacts } from './examine-postgres.ts'
import type { KnownBooks } from './examiner.ts'
import { hideSecretsOf, readSettings, type Settings } from './settings.ts'

export interface DoctorContext {
  readonly environment: Environment
  readonly workingDir: string
  readonly clock: Clock
  readonly offline: boolean
  readonly deadlines: Deadlines
  /** For the one check that may take long. */
  readonly progress: ProgressBar
}

/** Looks at everything that a gateway with this environment would depend on, and changes nothing. */
export async function* examine(context: DoctorContext): AsyncGenerator<Check> {
  const hide = hideSecretsOf(context.environment)
  for await (const check of allChecks(context)) {
    const found = hide(check.found)
    yield check.todo === null ? { ...check, found } : { ...check, found, todo: hide(check.todo) }
  }
}

async function* allChecks(context: DoctorContext): AsyncGenerator<Check> {
  const { environment, workingDir } = context
  yield checkRuntime({ version: process.versions.node, execArgv: process.execArgv, environment })
  yield checkOpenFiles(textOf('/proc/self/limits'))
  const settings = readSettings(environment, workingDir)
  yield* checkConfiguration(settings)
  yield checkSurfaces(settings)
  const { config } = settings
  if (config === null) return
  const answers = askUpstreams(settings, config, context)
  yield* checkDataDir(settings, config, context)
  yield* checkUpstreams(config, await answers, context)
}

async function* checkDataDir(
  { booksAreDoubtful }: Settings,
  config: Config,
  { deadlines, progress, clock }: DoctorContext,
): AsyncGenerator<Check> {
  const { databaseUrl } = config
  const asked = databaseUrl === null ? null : examinePostgres(databaseUrl, deadlines.checkMs, clock)
  const place = asked === null && !booksAreDoubtful ? 'books-here' : 'books-elsewhere'
  const { facts, cutShort } = await askExaminer(config.dataDir, place, deadlines, progress)
  const shared = await asked
  const { directory, disk, database, integrity } = facts
  if (directory !== undefined) {
    const known = place === 'books-here' ? database : knownBooks(shared)
    yield checkDirectory(config.dataDir, directory)
    yield checkPepper(config, { directory, database: known })
    yield checkAdminKey(config, { directory, database: known })
  }
  if (disk !== undefined) {
    yield checkSpace(disk)
    yield checkSpeed(disk.fsync)
  }
  if (shared !== null && databaseUrl !== null) yield* checkPostgres(shownDatabase(databaseUrl), shared)
  if (booksAreDoubtful) yield verdicts('database').skipped('not looked at before its configuration is good')
  if (database !== undefined) {
    yield checkDatabase(database)
    yield checkServing(database)
    yield checkIntegrity(database, integrity, cutShort, deadlines.integrityMs)
  } else if (cutShort !== null && (place === 'books-here' || disk === undefined)) {
    const name = directory === undefined ? 'data_directory' : disk === undefined ? 'disk_speed' : 'database'
    yield verdicts(name).problem(
      cutShort === 'late' ? 'no answer from the disk before the deadline' : 'it could not be looked at',
      'See that the disk works and that a network file system is reachable, then run the doctor again.',
    )
  }
}

function knownBooks(shared: PostgresFacts | null): KnownBooks {
  if (shared?.kind !== 'open') return { kind: 'broken' }
  if (shared.schemaVersion === null) return { kind: 'missing' }
  const { books } = shared
  return {
    kind: 'open',
    serving: books === null ? null : books.nodes.alive > 0,
    contents: books?.contents ?? null,
  }
}

type Reached =
  | { readonly kind: 'asked'; readonly upstream: UpstreamConfig; readonly answer: UpstreamAnswer }
  | { readonly kind: 'not_asked'; readonly reason: string }

type Answers = Readonly<Record<Surface, Reached>>

async function askUpstreams(settings: Settings, config: Config, context: DoctorContext): Promise<Answers> {
  const ask = async (surface: Surface): Promise<Reached> => {
    const upstream = config[surface]
    if (settings.doubtful.has(surface))
      return { kind: 'not_asked', reason: 'not asked before its configuration is good' }
    if (upstream === null) return { kind: 'not_asked', reason: 'not configured' }
    if (context.offline) return { kind: 'not_asked', reason: 'not asked (--offline)' }
    const answer = await askUpstream(surface, upstream, context.deadlines.checkMs, context.clock)
    return { kind: 'asked', upstream, answer }
  }
  const [messages, chat] = await Promise.all([ask('messages'), ask('chat')])
  return { messages, chat }
}

async function* checkUpstreams(
  config: Config,
  answers: Answers,
  context: DoctorContext,
): AsyncGenerator<Check> {
  const clocks: HostClock[] = []
  const listed: string[] = []
  let compared = false
  for (const surface of ['messages', 'chat'] as const) {
    const reached = answers[surface]
    if (reached.kind === 'not_asked') {
      yield verdicts(upstreamCheckName(surface)).skipped(reached.reason)
      continue
    }
    const { upstream, answer } = reached
    yield checkUpstream(
      {
        surface,
        url: upstream.url,
        keyVariable: keyVariableOf(surface, context.environment),
        deadlineMs: context.deadlines.checkMs,
      },
      answer,
    )
    if (answer.kind !== 'answered') continue
    if (answer.clock !== null) clocks.push({ host: upstream.url.host, reading: answer.clock })
    if (answer.models === null) continue
    compared = true
    listed.push(...answer.models)
  }
  yield checkClock(clocks)
  const prices = await readPrices(config, context.clock.nowMs())
  if ('names' in prices) yield checkPrices(prices, compared ? [...new Set(listed)] : null, config)
  else yield* prices
}

function textOf(file: string): string | null {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return null
  }
}
