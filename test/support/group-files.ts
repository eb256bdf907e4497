import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

/**
 * Files that share a process with others of their folder. To start one and to load a gateway into it takes a second,
 * which is more than most of these files do with it. Their hooks are those of the process: a suite that loads its file
 * later does not own what the file declares, since nothing follows it there (see untracked-tests.ts).
 */
const SHARING =
  /^test\/(?:billing|cli|config|hostile|http|gateway|kernel|keys|ledger|limits|management|metering|pricing|providers|sdk|simulator|sockets|store|style|telemetry|transparency|webhooks)\//

/** They need the machine, or what they measure is of the process. */
const ALONE =
  /sqlite-(?:ballast|disk|simulation)|\/(?:against-ws|browser|caps|compressed-bodies|cut-streams|export-memory|golden-streams|large-bodies|many-streams|postgres|postgres-simulation|revoke-hammered|slow-readers?|sqlite)\.test\.ts$/

/**
 * One process for a folder, as a rule: what the second file runs is loaded and compiled already. Of management, in one process
 * in the place of four, the tests take a sixth less CPU time, of providers a quarter. Commands wait for other processes, and billing has many large bodies.
 */
const FILES_MAX = 32
const FEWER = new Set(['billing', 'cli'])
const FEWER_FILES_MAX = 8

/** What to run instead: files that stay as they are, and one for each group, made in this folder. */
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
