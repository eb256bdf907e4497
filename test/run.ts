import { globSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { run } from 'node:test'
import { spec, type TestEvent } from 'node:test/reporters'
import { readSourceTree, root } from './style/source-tree.ts'
import { groupFiles } from './support/group-files.ts'
import { startPostgres } from './support/postgres.ts'

/**
 * `node test/run.ts [sqlite|postgres] [area|file …]`: the tests on one store or, where nothing is named, on both. With
 * SQLite all of them run, with PostgreSQL once more those that have a gateway. An area is a folder of test/; what is
 * named runs on SQLite unless PostgreSQL is asked for.
 */

const STORES = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const
type StoreName = keyof typeof STORES

/** One more than the smallest machine has cores that the tests are made for: some wait for the others' heartbeats. */
const CONCURRENCY = 3

/** A test that hangs fails with its name. The longest takes half a minute; a machine under load is ten times slower. */
const TEST_TIMEOUT_MS = 300_000

/** Here a test file speaks to a gateway from outside, as far as it has one. */
const BEHAVIOUR =
  /^test\/(?:billing|cli|cluster|crash|dashboard|hostile|limits|management|sdk|telemetry|transparency|webhooks)\//

/** What chooses the store: a test file that imports it, by whatever way, has a gateway. */
const CHOICE = 'test/support/test-store.ts'

/** What starts databases: a test file that imports it other than through the choice needs PostgreSQL on either store. */
const DATABASES = 'test/support/postgres.ts'

/** Bytes that are refused before the store is asked, and how pages look: half a minute that shows no more. */
const ONE_STORE = /\/(?:jam|looks|smuggling)\.test\.ts$/

/** They are about one of the stores, or name theirs themselves: a failing disk, commands for this store or that. */
const OWN_STORE = /\/sqlite-|^test\/cluster\/|^test\/cli\/(?:doctor|migrate-store|postgres-books|wrong-books)/

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

/** The tests of both rounds are the same, so each says where it ran. */
async function* named(events: AsyncIterable<TestEvent>, store: StoreName): AsyncGenerator<TestEvent> {
  for await (const event of events) {
    if (event.data !== undefined && 'name' in event.data) {
      event.data.name += ` [${STORES[store]}]`
    }
    yield event
  }
}

/** Whether all tests passed. */
async function runOn(store: StoreName, files: readonly string[], postgresUrl?: string): Promise<boolean> {
  process.stdout.write(`\n${files.length} files with the books in ${STORES[store]}\n\n`)
  // Sources are stripped of their types and compiled once, not in each of some hundred processes and their threads.
  const { directory: NODE_COMPILE_CACHE } = enableCompileCache()
  const groups = mkdtempSync(join(tmpdir(), 'tollgate-groups-'))
  // Units first: what is broken at the root is seen before what stands on it.
  const units = groupFiles(
    files.filter((file) => !BEHAVIOUR.test(file)),
    root,
    groups,
  )
  const behaviour = groupFiles(
    files.filter((file) => BEHAVIOUR.test(file)),
    root,
    groups,
  )
  const events = run({
    files: [...units, ...behaviour],
    concurrency: CONCURRENCY,
    execArgv: [
      `--test-timeout=${TEST_TIMEOUT_MS}`,
      '--import',
      join(root, 'test/support/untracked-tests.ts'),
    ],
    env: {
      ...process.env,
      TEST_STORE: store,
      ...(postgresUrl === undefined ? {} : { TEST_POSTGRES_URL: postgresUrl }),
      NODE_COMPILE_CACHE,
    },
  })
  let passed = true
  events.on('test:fail', () => {
    passed = false
  })
  await pipeline(events, (source) => named(source, store), new spec(), process.stdout, { end: false })
  rmSync(groups, { recursive: true })
  return passed
}

useMemoryForFiles()
const [first = '', ...others] = process.argv.slice(2)
const chosen = (['sqlite', 'postgres'] as const).filter((store) => store === first)
const asked = (chosen.length === 0 && first !== '' ? [first, ...others] : others).flatMap(filesOf)
const all = globSync('test/**/*.test.ts', { cwd: root }).sort()
const stores =
  chosen.length > 0 ? chosen : asked.length > 0 ? (['sqlite'] as const) : (['sqlite', 'postgres'] as const)
const rounds = {
  sqlite: asked.length > 0 ? asked : all,
  postgres: asked.length > 0 ? asked.filter(runsOnPostgres) : all.filter(runsOnPostgres),
}
const needsPostgres =
  stores.some((store) => store === 'postgres') ||
  rounds.sqlite.some((file) => reaches(file, DATABASES, CHOICE))
const given = process.env['TEST_POSTGRES_URL']
const server = given === undefined && needsPostgres ? await startPostgres() : null
const failed: StoreName[] = []
try {
  for (const store of stores) {
    if (!(await runOn(store, rounds[store], server?.url ?? given))) failed.push(store)
  }
} finally {
  await server?.stop()
}
if (failed.length > 0) {
  process.stdout.write(
    `\nTests failed with the books in ${failed.map((store) => STORES[store]).join(' and in ')}.\n`,
  )
  process.exitCode = 1
}
