import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, statfsSync, statSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { join, relative, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { spec, type TestEvent } from 'node:test/reporters'
import type { Environment } from '../src/config/read-config.ts'
import { BROWSER_VARIABLE, searchBrowser } from './dashboard/find-browser.ts'
import { FILES_MAX, LONGEST, ONE_AT_A_TIME, OWN_PROCESS, POSTGRES_FILES } from './plan.ts'
import { readSourceTree, root } from './style/source-tree.ts'
import { startPostgres } from './support/postgres.ts'
import { scaled } from './support/scale.ts'
import { runPool, type TestProcess } from './support/test-pool.ts'
import { serveTollgate } from './support/tollgate-process.ts'

/**
 * `node test/run.ts [sqlite|postgres] [area|file …]`: named files run on SQLite by default.
 * `node test/run.ts --check` runs `npm run check`, then all files.
 */

const STORES = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const
type StoreName = keyof typeof STORES

/** More than the two cores of a small machine: four processes left them idle for a fifth of the time. */
const CONCURRENCY = 6

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
function processesOf(
  store: StoreName,
  files: readonly string[],
  browser: Promise<unknown> | undefined,
): TestProcess[] {
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
    env: { TEST_STORE: store, TEST_FILES: JSON.stringify(members.map((file) => join(root, file))) },
    weight: weigh(`${name} [${STORES[store]}]`, members),
    waitsFor: members.some(usesBrowser) ? browser : undefined,
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
    for await (const event of runPool(ordered, CONCURRENCY, SILENCE_MS, execArgv, ending.signal)) {
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

/** Biome and tsc run while the browser is downloaded. */
async function check(): Promise<void> {
  const [code] = await once(spawn('npm', ['run', 'check'], { stdio: 'inherit' }), 'exit')
  if (code !== 0) throw new Error('npm run check failed: no test was run')
}

const ending = new AbortController()

/** Ends the processes that run tests, too. */
function giveUp(error: unknown): never {
  ending.abort()
  process.stderr.write(`${(error as Error).message}\n`)
  return process.exit(1)
}

useMemoryForFiles()
const given = process.argv.slice(2)
const isChecked = given[0] === '--check'
const [first = '', ...others] = isChecked ? [] : given
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
const usesBrowser = (file: string) => reaches(file, 'test/dashboard/find-browser.ts')
// Sources are compiled once, not in each process and thread.
process.env['NODE_COMPILE_CACHE'] = enableCompileCache().directory
// The tests that need no browser start meanwhile. Without a browser the run ends with one message.
const browser = files.some(usesBrowser)
  ? searchBrowser().then((found) => {
      process.env[BROWSER_VARIABLE] = JSON.stringify(found)
    }, giveUp)
  : undefined
if (isChecked) await check().catch(giveUp)
const [server] = await Promise.all([
  process.env['TEST_POSTGRES_URL'] === undefined && needsPostgres ? startPostgres().catch(giveUp) : null,
  isWhole ? compileGateway({ NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] }) : null,
])
if (server !== null) process.env['TEST_POSTGRES_URL'] = server.url
try {
  const processes = [...rounds].flatMap(([store, members]) => processesOf(store, members, browser))
  if (!(await runAll(processes))) process.exitCode = 1
} finally {
  await server?.stop()
}
