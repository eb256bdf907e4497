import { globSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { spec, type TestEvent } from 'node:test/reporters'
import type { Environment } from '../src/config.ts'
import { readSourceTree, root } from './style/source-tree.ts'
import { groupFiles } from './support/group-files.ts'
import { startPostgres } from './support/postgres.ts'
import { runPool, type TestProcess } from './support/test-pool.ts'
import { serveTollgate } from './support/tollgate-process.ts'

/**
 * `node test/run.ts [sqlite|postgres] [area|file …]`: the tests on one store or, where nothing is named, on both. With
 * SQLite all tests run, with PostgreSQL once more the tests that have a gateway. An area is a folder of test/; areas and
 * files that are named run on SQLite unless PostgreSQL is asked for.
 */

const STORES = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const
type StoreName = keyof typeof STORES

/**
 * Two processes more than the smallest machine for the tests has cores: one process is always a browser and one a cluster,
 * each of which uses a third of a core and waits for the rest of its time, and others wait for processes, timers or PostgreSQL.
 */
const CONCURRENCY = 4

/** A test that hangs fails with its name. The longest takes half a minute; a machine under load is ten times slower. */
const TEST_TIMEOUT_MS = 300_000
/** A file whose process does not end when its tests have ended fails too. */
const SILENCE_MS = TEST_TIMEOUT_MS + 60_000

/** Areas whose test files, as far as they have a gateway, speak to it from outside. */
const BEHAVIOUR =
  /^test\/(?:billing|cli|cluster|crash|dashboard|hostile|limits|management|sdk|sockets|telemetry|transparency|webhooks)\//

/** The module that chooses the store: a test file that imports it, directly or through others, has a gateway. */
const CHOICE = 'test/support/test-store.ts'

/** The module that starts databases: a file that imports it other than through CHOICE needs PostgreSQL on either store. */
const DATABASES = 'test/support/postgres.ts'

/**
 * Tests of bytes that are refused before the store is asked, or that flow after it has answered: on PostgreSQL they take half
 * a minute and show no more. Nor do certificates, lines on a terminal, help texts and the looks of pages depend on the store.
 * An SDK is compared by its results with and without the gateway; the figures are tested by billing, on both stores. Calls
 * that are settled later are kept by the store, so the SDK tests of such calls run on both.
 */
const ONE_STORE =
  /\/(?:browser|compressed-replies|jam|looks|smuggling)\.test\.ts$|^test\/cli\/(?:call-lines|did-you-mean|help|tls)\.test\.ts$|^test\/sdk\/(?:ai-7|anthropic-[01]|openai-(?:[47]|sockets))\.test\.ts$/

/** Tests about one of the stores, or that name their store themselves: a failing disk, commands for this store or that. */
const OWN_STORE = /\/sqlite-|^test\/cluster\/|^test\/cli\/(?:doctor|postgres-books|wrong-books)/

const imports = new Map(readSourceTree('test').map((source) => [source.path, source.imports]))

/** Whether a test file imports this one, itself or through others. */
function reaches(path: string, wanted: string, past = '', seen = new Set<string>()): boolean {
  if (path === wanted) return true
  if (path === past || seen.has(path)) return false
  seen.add(path)
  return (imports.get(path) ?? []).some((next) => reaches(next, wanted, past, seen))
}

function runsOnPostgres(file: string): boolean {
  return BEHAVIOUR.test(file) && !OWN_STORE.test(file) && !ONE_STORE.test(file) && reaches(file, CHOICE)
}

/** The files of an area, or the file of that name. */
function filesOf(name: string): string[] {
  const area = globSync(`test/${name}/**/*.test.ts`, { cwd: root })
  const files = area.length > 0 ? area : [relative(root, resolve(name))]
  if (area.length === 0 && !imports.has(files[0] ?? '')) {
    const areas = globSync('test/*/', { cwd: root }).map((folder) => folder.slice('test/'.length))
    throw new Error(`"${name}" is neither a test file nor one of the areas ${areas.sort().join(', ')}`)
  }
  return files
}

/** Memory instead of a disk where there is some: the tests write gigabytes, and none of it is to survive a power cut. */
function useMemoryForFiles(): void {
  const folder = '/dev/shm'
  const roomBytes = 4 * 2 ** 30
  try {
    const { bavail, bsize } = statfsSync(folder)
    if (process.env['TMPDIR'] === undefined && bavail * bsize > roomBytes) process.env['TMPDIR'] = folder
  } catch {
    // There is no such folder here.
  }
}

/** The processes that run these files on a store. */
function processesOf(
  store: StoreName,
  files: readonly string[],
  groups: string,
  env: NodeJS.ProcessEnv,
): TestProcess[] {
  const made = groupFiles(files, root, join(groups, store))
  const common = { env: { ...env, TEST_STORE: store }, suffix: ` [${STORES[store]}]` }
  return made.map((file) => ({ ...common, file, line: LINES.findIndex((line) => line.test(file)) }))
}

/** Tests of nodes and images, and of browsers: two of one line at once leave too little CPU for the time limits they test. */
const LINES = [
  /\/(?:cluster|crash)\/|\/deploy\/dockerfile\.|\/docs\/run-pages\./,
  /\/dashboard\/(?:looks|pages|states)\.|\/sockets\/browser\./,
]

/**
 * The longest processes come first, so that at the end there is a short one for every core. The lines, of which one process
 * runs at a time, begin at once and never wait: they are nearly as long as the whole run. The rest is ordered by the time that
 * the processes took, in tens of seconds; with the books in PostgreSQL they take longer than with SQLite.
 */
const FIRST = [
  ...LINES,
  /\/(?:postgres\/(?:transparency|limits|cli|management|hostile)|sqlite\/(?:cli|limits))-/,
  /\/(?:sqlite\/(?:hostile|ledger|metering|store|transparency)|postgres\/(?:billing|sdk|sockets|webhooks))-|\/(?:against-ws|cut-streams|postgres|postgres-simulation|sign-in|sqlite)\.test/,
  /\/(?:billing|management|sdk|sockets|telemetry|webhooks)-|\/(?:caps|compressed-bodies|export-memory|large-bodies|many-streams|sqlite-simulation)\.test/,
]

function rankOf({ file }: TestProcess): number {
  const rank = FIRST.findIndex((pattern) => pattern.test(file))
  return rank === -1 ? FIRST.length : rank
}

/** Whether all tests passed. */
async function runAll(
  rounds: ReadonlyMap<StoreName, readonly string[]>,
  env: NodeJS.ProcessEnv,
): Promise<boolean> {
  const groups = mkdtempSync(join(tmpdir(), 'tollgate-groups-'))
  for (const [store, files] of rounds) {
    process.stdout.write(`${files.length} files with the books in ${STORES[store]}\n`)
  }
  const processes = [...rounds].flatMap(([store, files]) => processesOf(store, files, groups, env))
  const execArgv = [
    `--test-timeout=${TEST_TIMEOUT_MS}`,
    ...['--import', join(root, 'test/support/untracked-tests.ts')],
  ]
  const ordered = processes.toSorted((one, other) => rankOf(one) - rankOf(other))
  let passed = true
  async function* watched(): AsyncGenerator<TestEvent> {
    for await (const event of runPool(ordered, CONCURRENCY, SILENCE_MS, execArgv)) {
      if (event.type === 'test:fail') passed = false
      yield event
    }
  }
  await pipeline(watched, new spec(), process.stdout, { end: false })
  rmSync(groups, { recursive: true })
  return passed
}

/**
 * The compile cache is written when a process ends by itself. Gateways of tests are killed, so on a machine that has run no
 * gateway before, each of them would take two seconds of CPU time to start in the place of one.
 */
async function compileGateway(environment: Environment): Promise<void> {
  const gateway = await serveTollgate(environment)
  // This request is refused; it loads the modules that would else be loaded a second later.
  await fetch(`${gateway.url}/v1/keys`)
  gateway.signal('SIGTERM')
  await gateway.finished
  await gateway.dispose()
}

useMemoryForFiles()
const [first = '', ...others] = process.argv.slice(2)
const chosen = (['sqlite', 'postgres'] as const).filter((store) => store === first)
const asked = (chosen.length === 0 && first !== '' ? [first, ...others] : others).flatMap(filesOf)
const all = globSync('test/**/*.test.ts', { cwd: root }).sort()
const stores =
  chosen.length > 0 ? chosen : asked.length > 0 ? (['sqlite'] as const) : (['sqlite', 'postgres'] as const)
const wanted = asked.length > 0 ? asked : all
const rounds = new Map<StoreName, readonly string[]>(
  stores.map((store) => [store, store === 'postgres' ? wanted.filter(runsOnPostgres) : wanted]),
)
const needsPostgres =
  rounds.has('postgres') || rounds.get('sqlite')?.some((file) => reaches(file, DATABASES, CHOICE)) === true
const given = process.env['TEST_POSTGRES_URL']
// Sources are stripped of their types and compiled once, not in each of some hundred processes and their threads.
const { directory: NODE_COMPILE_CACHE } = enableCompileCache()
const [server] = await Promise.all([
  given === undefined && needsPostgres ? startPostgres() : null,
  asked.length === 0 ? compileGateway({ NODE_COMPILE_CACHE }) : null,
])
const postgresUrl = server?.url ?? given
try {
  const passed = await runAll(rounds, {
    ...process.env,
    ...(postgresUrl === undefined ? {} : { TEST_POSTGRES_URL: postgresUrl }),
    NODE_COMPILE_CACHE,
  })
  if (!passed) process.exitCode = 1
} finally {
  await server?.stop()
}
