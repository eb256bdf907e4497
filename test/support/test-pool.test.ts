import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

const LEAKING = `import { createServer } from 'node:net'
import { test } from 'node:test'
test('it leaves a server open', () => {
  createServer().listen(0)
  throw new Error('red')
})`

/** The pool runs in a separate process, since tests cannot run tests. */
const RUN = `import { runPool } from ${JSON.stringify(new URL('test-pool.ts', import.meta.url).href)}
const processes = [{ file: process.argv[2], env: process.env, suffix: '', name: 'leaking', weight: 0 }]
for await (const { type, data } of runPool(processes, 1, 5_000, []))
  if (type === 'test:fail') console.log(data.details.error.message)`

test('a process that a failed test keeps open is killed, and both fail', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tollgate-pool-'))
  t.after(() => rm(folder, { recursive: true }))
  const [run, leaking] = [join(folder, 'run.mjs'), join(folder, 'leaking.test.mjs')]
  await Promise.all([writeFile(run, RUN), writeFile(leaking, LEAKING)])
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const { stdout } = await promisify(execFile)(process.execPath, [run, leaking], { env })
  assert.equal(stdout, 'red\nno report for 5 s: the process was ended\n')
})
