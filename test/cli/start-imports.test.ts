import assert from 'node:assert/strict'
import { dirname, join } from 'node:path'
import { readSourceTree } from '../style/source-tree.ts'
import { test } from '../support/suite.ts'

const texts = new Map(readSourceTree('src').map(({ path, text }) => [path, text]))

/** Every file and package that is loaded with a file, before a line of that file runs. */
function loadedWith(path: string, found = new Set<string>()): Set<string> {
  if (found.has(path)) return found
  found.add(path)
  for (const [, names = '', specifier = ''] of (texts.get(path) ?? '').matchAll(
    /^(?:import|export)\b([^'"]*?)from\s+['"]([^'"]+)['"]/gm,
  )) {
    if (names.trimStart().startsWith('type ')) continue
    if (specifier.startsWith('.')) loadedWith(join(dirname(path), specifier), found)
    else found.add(specifier)
  }
  return found
}

test('the walk over what a file loads follows imports, but not those of types alone', () => {
  const loaded = loadedWith('src/cli/serve.ts')
  assert.ok(loaded.has('src/gateway/handle-request.ts'))
  assert.ok(loaded.has('pino'))
  assert.ok(!loaded.has('src/ledger/ledger-store.ts'))
})

// Each of these takes 40 to 100 ms to load, of the half second in which the gateway is to serve.
for (const heavy of [
  'pg',
  'music-metadata',
  'node:https',
  'prom-client',
  'standardwebhooks',
  '@opentelemetry/',
]) {
  test(`the start does not wait for ${heavy}`, () => {
    for (const path of ['src/cli/serve.ts', 'src/store/sqlite/worker.ts'])
      assert.ok(![...loadedWith(path)].some((loaded) => loaded.startsWith(heavy)), path)
  })
}

// Over HTTP a command needs none of these modules, and with them it takes three times as long to start.
for (const heavy of ['zod', 'pg', 'pino', 'node:sqlite', 'src/installation.ts', 'src/management/']) {
  test(`commands on the management API do not wait for ${heavy}`, () => {
    for (const name of ['program', 'keys', 'usage', 'requests', 'credits', 'accounts'])
      assert.ok(![...loadedWith(`src/cli/${name}.ts`)].some((loaded) => loaded.startsWith(heavy)), name)
  })
}

test('nothing loads the data of all languages, which takes 20 to 40 ms, to write a number', () => {
  for (const [path, text] of texts) assert.doesNotMatch(text, /\.toLocale\w*\(|\bIntl\./, path)
})
