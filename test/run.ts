import { globSync, statfsSync, statSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { join, relative, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { spec, type TestEvent } from 'node:test/reporters'
import type { Environment } from '../src/config.ts'
import { BROWSER_VARIABLE, searchBrowser } from './dashboard/find-browser.ts'
import { FILES_MAX, LONGEST, ONE_AT_A_TIME, OWN_PROCESS, POSTGRES_FILES } from './plan.ts'
import { readSourceTree, root } from './style/source-tree.ts'
import { startPostgres } from './support/postgres.ts'
import { scaled } from './support/scale.ts'
import { runPool, type TestProcess } from './support/test-pool.ts'
import { serveTollgate } from './support/tollgate-process.ts'

/** `node test/run.ts [sqlite|postgres] [area|file …]`: named files run on SQLite by default. */

const STORES = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const
type StoreName = keyof typeof STORES

/** More than the two cores of a small machine, because browsers, clusters and PostgreSQL mostly wait. */
const CONCURRENCY = 4

/** The longest test takes 30 seconds; a busy machine is ten times slower. */
const TEST_TIMEOUT_MS = scaled(300_000, 3_600_000)
/** A process that does not exit after its tests fails too. */
const SILENCE_MS = TEST_TIMEOUT_MS + 60_000

const imports = new Map(readSourceTree('test').map((source) => [source.path, source.imports]))

function reaches(path: string, wanted: string, past = '', seen = new Set<string>()): boolean {
  if (path === wanted) return true
  if (path === past || seen.has(path)) return false
  seen.add(path)
  return (imports.get(path) ?? []).some((next) => reaches(next, wanted, past, seen))
}

function filesOf(name: string): string[] {
  const area = globSync(`test/${name}/**/*.test.ts`, { cwd: root })
  const files = area.length > 0 ? area : [relative(root, resolve(name))]
  if (area.length === 0 && !imports.has(files[0] ?? '')) {
    const areas = globSync('test/*/', { cwd: root }).map((folder) => folder.slice('test/'.length))
    throw new Error(`"${name}" is neither a test file nor one of the areas ${areas.sort().join(', ')}`)
  }
  return files
}

/** Memory instead of a disk, if available: the tests write gigabytes that need not survive a power cut. */
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

/** One process per area: starting one and loading a gateway takes longer than most files. */
function processesOf(store: StoreName, files: readonly string[], env: NodeJS.ProcessEnv): TestProcess[] {
  const isAlone = (file: string) => OWN_PROCESS.some((pattern) => pattern.test(file))
  const groups = files.filter(isAlone).map((file): [string, string[]] => [file, [file]])
  const areas = Map.groupBy(
    files.filter((file) => !isAlone(file)),
    (file) => file.split('/')[1] ?? '',
  )
  for (const [area, members] of areas) {
    const count = ONE_AT_A_TIME.includes(area) ? 1 : Math.ceil(members.length / FILES_MAX)
    for (let nth = 0; nth < count; nth += 1) {
      const name = count === 1 ? area : `${area} ${nth + 1}/${count}`
      groups.push([name, members.filter((_, at) => at % count === nth)])
    }
  }
  return groups.map(([name, members]) => ({
    name: `${name} [${STORES[store]}]`,
    suffix: ` [${STORES[store]}]`,
    file: join(root, 'test/support/run-files.ts'),
    env: { ...env, TEST_STORE: store, TEST_FILES: JSON.stringify(members.map((file) => join(root, file))) },
    weight: weigh(`${name} [${STORES[store]}]`, members),
  }))
}

/** Processes named in plan.ts come first, in its order; the others by the size of their files. */
function weigh(name: string, files: readonly string[]): number {
  const rank = LONGEST.findIndex((part) => name.includes(part))
  if (rank !== -1) return Number.MAX_SAFE_INTEGER - rank
  return files.reduce((sum, file) => sum + statSync(join(root, file)).size, 0)
}

async function runAll(processes: readonly TestProcess[]): Promise<boolean> {
  const ordered = processes.toSorted((one, other) => other.weight - one.weight)
  let passed = true
  async function* watched(): AsyncGenerator<TestEvent> {
    const execArgv = [`--test-timeout=${TEST_TIMEOUT_MS}`]
    for await (const event of runPool(ordered, CONCURRENCY, SILENCE_MS, execArgv)) {
      if (event.type === 'test:fail') passed = false
      yield event
    }
  }
  await pipeline(watched, new spec(), process.stdout, { end: false })
  return passed
}

/** Fills the compile cache. Killed gateways write none, and each of them would compile all of src. */
async function compileGateway(environment: Environment): Promise<void> {
  const gateway = await serveTollgate(environment)
  // This request is refused. It loads the modules of the management API.
  await fetch(`${gateway.url}/v1/keys`)
  gateway.signal('SIGTERM')
  await gateway.finished
  await gateway.dispose()
}

function giveUp(error: unknown): never {
  process.stderr.write(`${(error as Error).message}\n`)
  return process.exit(1)
}

useMemoryForFiles()
const [first = '', ...others] = process.argv.slice(2)
const chosen = (['sqlite', 'postgres'] as const).filter((store) => store === first)
const named = (chosen.length === 0 && first !== '' ? [first, ...others] : others).flatMap(filesOf)
const all = globSync('test/**/*.test.ts', { cwd: root }).sort()
const missing = POSTGRES_FILES.filter((file) => !all.includes(file))
if (missing.length > 0) throw new Error(`test/plan.ts names files that do not exist: ${missing.join(', ')}`)

const isWhole = named.length === 0
const rounds = new Map<StoreName, readonly string[]>()
if (chosen[0] !== 'postgres') rounds.set('sqlite', isWhole ? all : named)
if (chosen[0] === 'postgres' || (chosen.length === 0 && isWhole))
  rounds.set('postgres', isWhole ? POSTGRES_FILES : named)

const files = [...rounds.values()].flat()
const databases = 'test/support/postgres.ts'
const needsPostgres =
  rounds.has('postgres') || files.some((file) => reaches(file, databases, 'test/support/test-store.ts'))
const needsBrowser = files.some((file) => reaches(file, 'test/dashboard/find-browser.ts'))
const given = process.env['TEST_POSTGRES_URL']
// Sources are compiled once, not in each process and thread.
const { directory: NODE_COMPILE_CACHE } = enableCompileCache()
// The search for a browser comes first: without one the run ends here with one message.
const browser = needsBrowser ? await searchBrowser().catch(giveUp) : null
const [server] = await Promise.all([
  given === undefined && needsPostgres ? startPostgres().catch(giveUp) : null,
  isWhole ? compileGateway({ NODE_COMPILE_CACHE }) : null,
])
const postgresUrl = server?.url ?? given
const env = {
  ...process.env,
  ...(postgresUrl === undefined ? {} : { TEST_POSTGRES_URL: postgresUrl }),
  ...(browser === null ? {} : { [BROWSER_VARIABLE]: JSON.stringify(browser) }),
  NODE_COMPILE_CACHE,
}
try {
  const processes = [...rounds].flatMap(([store, members]) => processesOf(store, members, env))
  if (!(await runAll(processes))) process.exitCode = 1
} finally {
  await server?.stop()
}
