import { globSync, mkdtempSync, rmSync } from 'node:fs'
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
 * `node test/run.ts [sqlite|postgres] [file …]`: the tests on one store or, by default, on both. With SQLite all of
 * them run, with PostgreSQL once more those that have a gateway.
 */

const STORES = { sqlite: 'SQLite', postgres: 'PostgreSQL' } as const
type StoreName = keyof typeof STORES

/** One more than the smallest machine has cores that the tests are made for: some wait for the others' heartbeats. */
const CONCURRENCY = 3

/** Here a test file speaks to a gateway from outside, as far as it has one. */
const BEHAVIOUR = /^test\/(?:billing|cli|crash|hostile|limits|management|sdk|transparency)\//

/** What chooses the store. Whoever imports it, by whatever way, has a gateway. */
const CHOICE = 'test/support/test-store.ts'

/** Bytes that are refused before the store is asked, or flow after it has answered: half a minute that shows no more. */
const ONE_STORE = /\/(?:jam|large-bodies|many-streams|slow-reader|smuggling)\.test\.ts$/

/** They are about one of the stores, or name theirs themselves: a failing disk, commands for this store or that. */
const OWN_STORE = /\/sqlite-|^test\/cli\/(?:doctor|migrate-store|postgres-books|wrong-books)/

function behaviourFiles(files: readonly string[]): string[] {
  const imports = new Map(readSourceTree('test').map((source) => [source.path, source.imports]))
  const reaches = (path: string, seen: Set<string>): boolean => {
    if (path === CHOICE) return true
    if (seen.has(path)) return false
    seen.add(path)
    return (imports.get(path) ?? []).some((next) => reaches(next, seen))
  }
  return files.filter(
    (file) =>
      BEHAVIOUR.test(file) && !OWN_STORE.test(file) && !ONE_STORE.test(file) && reaches(file, new Set()),
  )
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
async function runOn(store: StoreName, files: readonly string[], postgresUrl: string): Promise<boolean> {
  process.stdout.write(`\n${files.length} files with the books in ${STORES[store]}\n\n`)
  // Sources are stripped of their types and compiled once, not in each of some hundred processes and their threads.
  const { directory: NODE_COMPILE_CACHE } = enableCompileCache()
  const groups = mkdtempSync(join(tmpdir(), 'tollgate-groups-'))
  const events = run({
    files: groupFiles(files, root, groups),
    concurrency: CONCURRENCY,
    env: { ...process.env, TEST_STORE: store, TEST_POSTGRES_URL: postgresUrl, NODE_COMPILE_CACHE },
  })
  let passed = true
  events.on('test:fail', () => {
    passed = false
  })
  await pipeline(events, (source) => named(source, store), new spec(), process.stdout, { end: false })
  rmSync(groups, { recursive: true })
  return passed
}

const [first = '', ...others] = process.argv.slice(2)
const chosen = (['sqlite', 'postgres'] as const).filter((store) => store === first)
const asked = (chosen.length === 0 && first !== '' ? [first, ...others] : others).map((file) =>
  relative(root, resolve(file)),
)
const all = globSync('test/**/*.test.ts', { cwd: root }).sort()
const rounds = {
  sqlite: asked.length > 0 ? asked : all,
  postgres: asked.length > 0 ? asked : behaviourFiles(all),
}
const given = process.env['TEST_POSTGRES_URL']
const server = given === undefined ? await startPostgres() : { url: given, stop: async () => {} }
const failed: StoreName[] = []
try {
  for (const store of chosen.length > 0 ? chosen : (['sqlite', 'postgres'] as const)) {
    if (!(await runOn(store, rounds[store], server.url))) failed.push(store)
  }
} finally {
  await server.stop()
}
if (failed.length > 0) {
  process.stdout.write(
    `\nTests failed with the books in ${failed.map((store) => STORES[store]).join(' and in ')}.\n`,
  )
  process.exitCode = 1
}
