import assert from 'node:assert/strict'
import { test } from '../support/suite.ts'
import { readSourceTree, type SourceFile } from './source-tree.ts'

/**
 * The folders of src/ and which folders each may import from. Dependencies point one way:
 * kernel ← http, keys, ledger, metering, pricing ← providers ← telemetry ← calls, http-calls, sockets, objects, management ← app ← cli;
 * the store is above ledger and webhooks; its type `Store` is for all, from a file of types.
 */
const FOLDERS: Readonly<Record<string, string>> = {
  kernel: '',
  api: 'kernel keys ledger webhooks',
  http: 'kernel',
  keys: 'kernel',
  metering: 'kernel',
  ledger: 'kernel keys',
  webhooks: 'kernel http keys ledger',
  pricing: 'kernel',
  providers: 'kernel http metering pricing',
  config: 'kernel http pricing',
  telemetry: 'kernel http ledger pricing providers config',
  // A call is the same thing whatever carries it: nothing here knows HTTP or sockets.
  calls: 'kernel keys ledger metering pricing providers',
  objects: 'kernel http ledger metering pricing providers calls',
  'http-calls': 'kernel http keys ledger metering pricing providers telemetry config calls objects sockets',
  sockets: 'kernel http ledger metering pricing providers calls http-calls',
  management: 'kernel api http keys ledger metering pricing providers webhooks',
  'sign-in': 'kernel http keys ledger providers api config management',
  store: 'kernel api keys ledger webhooks',
  app: 'kernel http keys ledger pricing providers telemetry webhooks store config calls objects sockets http-calls management sign-in doctor',
  reconcile: 'kernel http pricing store',
  doctor: 'kernel http keys ledger pricing providers store config',
  cli: 'kernel http api keys ledger pricing telemetry store config doctor reconcile app',
}

/** The type of the store follows from its operations; folders below the store take a store as an argument. */
const STORE_TYPE = 'src/store/store.ts'

const folderOf = (path: string): string => path.split('/')[1] ?? ''

test('every folder of src imports only from the folders below it', () => {
  const wrong: string[] = []
  for (const file of readSourceTree('src')) {
    const folder = folderOf(file.path)
    const allowed = FOLDERS[folder]?.split(' ')
    if (allowed === undefined) {
      wrong.push(`${file.path}: "${folder}" is not in FOLDERS: add it there, or move the file`)
      continue
    }
    for (const imported of file.imports) {
      if (!imported.startsWith('src/') || imported === STORE_TYPE) continue
      const target = folderOf(imported)
      if (target === folder || allowed.includes(target)) continue
      wrong.push(
        `${file.path} imports ${imported}; from ${folder} only ${allowed.join(', ')} may be imported`,
      )
    }
  }
  assert.deepEqual(wrong, [])
})

test('the store knows of the API only how objects are written, because events contain them', () => {
  const known = readSourceTree('src/store').flatMap((file) =>
    file.imports.filter((path) => folderOf(path) === 'api'),
  )
  assert.deepEqual(new Set(known), new Set(['src/api/objects.ts', 'src/api/field-names.ts']))
})

test('no file of src or simulator imports itself through others', () => {
  const files = new Map(readSourceTree('src', 'simulator').map((file) => [file.path, file]))
  const circles: string[] = []
  const done = new Set<string>()
  function walk(file: SourceFile, trail: readonly string[]): void {
    if (trail.includes(file.path)) {
      circles.push([...trail.slice(trail.indexOf(file.path)), file.path].join(' → '))
      return
    }
    if (done.has(file.path)) return
    for (const imported of file.imports) {
      const next = files.get(imported)
      if (next !== undefined) walk(next, [...trail, file.path])
    }
    done.add(file.path)
  }
  for (const file of files.values()) walk(file, [])
  assert.deepEqual(circles, [])
})

test('the simulator imports only itself, Node and ws, none of it shared with the gateway, so they cannot share a bug', () => {
  const wrong = readSourceTree('simulator').flatMap((file) => [
    ...file.imports.filter((imported) => !imported.startsWith('simulator/')),
    ...file.packages.filter((name) => !name.startsWith('node:') && name !== 'ws'),
  ])
  assert.deepEqual(wrong, [])
  assert.ok(readSourceTree('src').every((file) => !file.packages.includes('ws')))
})

test('only the serve command imports the simulator', () => {
  const knowing = readSourceTree('src')
    .filter((file) => file.imports.some((imported) => imported.startsWith('simulator/')))
    .map((file) => file.path)
  assert.deepEqual(knowing, ['src/cli/serve.ts'])
})

test('only the configuration reads the environment', () => {
  // The banner only prints what to type.
  const files = readSourceTree('src').filter((file) => file.path !== 'src/cli/serve-output.ts')
  const readers = files.filter((file) => /\bprocess\.env\b/.test(file.text)).map((file) => file.path)
  // The commands pass the environment on as a whole, and read no variable from it.
  assert.ok(readers.every((path) => path.startsWith('src/cli/')))
  assert.deepEqual(
    files.filter((file) => /process\.env[.[]/.test(file.text)).map((file) => file.path),
    [],
  )
})
