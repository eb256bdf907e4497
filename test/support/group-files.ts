import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/**
 * Files that share a process with others of their folder. To start a process and to load a gateway into it takes a second,
 * which is more than most of these files take to run. Hooks of a file are hooks of the whole process: a suite that loads its
 * file later does not own the hooks that the file declares, since node:test does not follow them (see untracked-tests.ts).
 */
const SHARING =
  /^test\/(?:billing|cli|config|hostile|http|gateway|kernel|keys|ledger|limits|management|metering|pricing|providers|sdk|simulator|sockets|store|style|telemetry|transparency|webhooks)\//

/** Files that need the machine for themselves, or that measure the process they run in. */
const ALONE =
  /sqlite-(?:ballast|disk|simulation)|\/(?:against-ws|browser|caps|compressed-bodies|cut-streams|export-memory|golden-streams|large-bodies|many-streams|postgres|postgres-simulation|revoke-hammered|slow-readers?|sqlite)\.test\.ts$/

/**
 * One process for a folder, as a rule: the code of the second file is loaded and compiled already. The tests of management
 * take a sixth less CPU time in one process than in four, those of providers a quarter. Tests of commands wait for other
 * processes, and tests of billing have many large bodies, so fewer of them share a process.
 */
const FILES_MAX = 32
const FEWER = new Set(['billing', 'cli'])
const FEWER_FILES_MAX = 8

/** The files to run in place of the given ones: files that run alone, and one file for each group, made in this folder. */
export function groupFiles(files: readonly string[], root: string, folder: string): string[] {
  const alone = files.filter((file) => !SHARING.test(file) || ALONE.test(file))
  const rooms = Map.groupBy(
    files.filter((file) => !alone.includes(file)),
    (file) => file.split('/')[1] ?? '',
  )
  const groups = [...rooms].flatMap(([room, among]) => {
    const count = Math.ceil(among.length / (FEWER.has(room) ? FEWER_FILES_MAX : FILES_MAX))
    return Array.from({ length: count }, (_, nth) => ({
      file: join(folder, `${room}-${nth + 1}.test.mjs`),
      members: among.filter((_, at) => at % count === nth),
    }))
  })
  mkdirSync(folder)
  for (const { file, members } of groups) {
    const suites = members.map((member) => [member, pathToFileURL(join(root, member)).href])
    writeFileSync(
      file,
      `import { describe } from 'node:test'
let former = Promise.resolve()
for (const [name, url] of ${JSON.stringify(suites)}) {
  describe(name, () => (former = former.then(() => import(url))))
}
`,
    )
  }
  return [...alone.map((file) => join(root, file)), ...groups.map(({ file }) => file)]
}
