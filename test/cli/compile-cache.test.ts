import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { VERSION } from '../../src/kernel/version.ts'
import { root } from '../style/source-tree.ts'

const dir = mkdtempSync(join(tmpdir(), 'tollgate-compiled-'))
after(() => rmSync(dir, { recursive: true }))

/** As it is started where nobody has chosen a place for compiled code. */
function version(environment: Readonly<Record<string, string>>): string {
  const args = [join(root, 'src/cli/tollgate.ts'), '--version']
  return execFileSync(process.execPath, args, { env: environment, encoding: 'utf8', timeout: 30_000 })
}

const SHOWN = `tollgate ${VERSION}\n`

test("compiled code is kept in the user's own cache", () => {
  assert.equal(version({ HOME: join(dir, 'home') }), SHOWN)
  assert.ok(existsSync(join(dir, 'home/.cache/tollgate')))
})

test('compiled code is kept where the operator says', () => {
  const chosen = join(dir, 'chosen')
  assert.equal(version({ HOME: join(dir, 'other'), NODE_COMPILE_CACHE: chosen }), SHOWN)
  assert.ok(existsSync(chosen))
  assert.ok(!existsSync(join(dir, 'other')))
})

for (const home of ['/dev/null/home', 'relative', '']) {
  test(`a home at ${JSON.stringify(home)}, where nothing can be kept, changes nothing`, () => {
    assert.equal(version({ HOME: home }), SHOWN)
    assert.ok(!existsSync(join(process.cwd(), home, '.cache')))
  })
}
