import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

/** The error is thrown in a later turn, where only tracking can tell which test it is of. */
const THROWING = `import { test } from 'node:test'
test('it starts something', async () => {
  setImmediate(() => { throw new Error('nobody catches this') })
  for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setImmediate(resolve))
})`

test('node:test does not track what belongs to which test, and an error that nobody catches fails the file', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-untracked-'))
  t.after(() => rm(folder, { recursive: true }))
  const throwing = join(folder, 'throwing.test.mjs')
  await writeFile(throwing, THROWING)
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const loaded = fileURLToPath(new URL('untracked-tests.ts', import.meta.url))
  const args = ['--test-reporter=tap', '--import', loaded, throwing]
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] })
  const [told, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  assert.match(told, /^ok 1 - it starts something$/m, 'the error was traced to its test')
  assert.match(told, /nobody catches this/)
  assert.equal(code, 1)
})
