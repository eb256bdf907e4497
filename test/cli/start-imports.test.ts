import assert from 'node:assert/strict'
import { dirname, join } from 'node:path'
import { readSourceTree } from '../style/source-tree.ts'
import { test } from '../support/suite.ts'

const texts = new Map(readSourceTree('src').map(({ path, text }) => [path, text]))

/** Every file and package loaded with a file, before any line of it runs. */
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

test('loadedWith follows imports, except type-only imports', () => {
  const loaded = loadedWith('src/cli/serve.ts')
  assert.ok(loaded.has('src/http-calls/handle-request.ts'))
  assert.ok(loaded.has('pino'))
  assert.ok(!loaded.has('src/ledger/ledger-store.ts'))
})

// Each of these takes 40 to 100 ms to load, and the gateway should serve within half a second.
for (const heavy of [
  'pg',
  'music-metadata',
  'node:https',
  'prom-client',
  'standardwebhooks',
  '@opentelemetry/',
]) {
  test(`serve does not load ${heavy} at its start`, () => {
    for (const path of ['src/cli/serve.ts', 'src/store/sqlite/worker.ts'])
      assert.ok(![...loadedWith(path)].some((loaded) => loaded.startsWith(heavy)), path)
  })
}

// A command that uses HTTP needs none of these modules, and takes three times as long to start with them.
for (const heavy of ['zod', 'pg', 'pino', 'node:sqlite', 'src/app/installation.ts', 'src/management/']) {
  test(`commands of the management API do not load ${heavy}`, () => {
    for (const name of ['program', 'keys', 'usage', 'requests', 'credits', 'accounts'])
      assert.ok(![...loadedWith(`src/cli/${name}.ts`)].some((loaded) => loaded.startsWith(heavy)), name)
  })
}

test('no file formats numbers with Intl, whose data takes 20 to 40 ms to load', () => {
  for (const [path, text] of texts) assert.doesNotMatch(text, /\.toLocale\w*\(|\bIntl\./, path)
})
