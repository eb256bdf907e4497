import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { VERSION } from '../../src/kernel/runtime.ts'
import { root } from '../style/source-tree.ts'
import { after, test } from '../support/suite.ts'

const dir = mkdtempSync(join(tmpdir(), 'tollgate-compiled-'))
after(() => rmSync(dir, { recursive: true }))

/** Runs the program without NODE_COMPILE_CACHE, unless the environment has it. */
function version(environment: Readonly<Record<string, string>>): string {
  const args = [join(root, 'src/cli/tollgate.ts'), '--version']
  return execFileSync(process.execPath, args, { env: environment, encoding: 'utf8', timeout: 120_000 })
}

const SHOWN = `tollgate ${VERSION}\n`

test("compiled code is cached in the user's own cache folder", () => {
  const home = join(dir, 'home')
  mkdirSync(home)
  assert.equal(version({ HOME: home }), SHOWN)
  assert.notDeepEqual(readdirSync(join(home, '.cache/tollgate')), [])
  assert.equal(statSync(join(home, '.cache/tollgate')).mode & 0o777, 0o700)
})

for (const [where, mode] of [
  ['.cache', 0o777],
  ['.cache/tollgate', 0o770],
] as const) {
  test(`if others can write to ${where}, nothing is cached and no cached code runs`, () => {
    const home = join(dir, `open-${mode}`)
    mkdirSync(join(home, '.cache/tollgate'), { recursive: true, mode: 0o700 })
    chmodSync(join(home, where), mode)
    assert.equal(version({ HOME: home }), SHOWN)
    assert.deepEqual(readdirSync(join(home, '.cache/tollgate')), [])
  })
}

for (const home of ['/dev/null/home', 'relative', '']) {
  test(`with a home of ${JSON.stringify(home)}, nothing is cached and the command works`, () => {
    assert.equal(version({ HOME: home }), SHOWN)
    assert.ok(!existsSync(join(process.cwd(), home, '.cache')))
  })
}
