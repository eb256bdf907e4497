import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { root } from '../style/source-tree.ts'
import { withDeadline } from '../support/deadline.ts'

/**
 * `npm run test:long -- node-versions [version …]`: the documented commands on a host whose Node.js is 20 or 22. Scripts of
 * npm run on the pinned version whatever the host has; the built program says which version it needs.
 */

/** A PATH without the pinned Node.js, in which this version comes first. */
function pathWith(version: string): string {
  const find = ['--yes', `--package=node@${version}`, '--', 'node', '-p', 'process.execPath']
  // In another folder, because npx prefers the node of this package.
  const node = execFileSync('npx', find, { cwd: tmpdir(), encoding: 'utf8' }).trim()
  const others = (process.env['PATH'] ?? '')
    .split(delimiter)
    .filter((folder) => !folder.includes('node_modules'))
  return [dirname(node), ...others].join(delimiter)
}

const folder = mkdtempSync(join(tmpdir(), 'tollgate-node-versions-'))

function run(PATH: string, command: string, cwd = root) {
  const env = { ...process.env, PATH, TOLLGATE_DATA_DIR: join(folder, 'data'), NODE_COMPILE_CACHE: '' }
  const { status, stdout, stderr } = spawnSync('sh', ['-c', command], { cwd, env, encoding: 'utf8' })
  return { status, stdout, stderr }
}

async function serveAndStop(PATH: string): Promise<void> {
  const env = { ...process.env, PATH, TOLLGATE_PORT: '0', TOLLGATE_DATA_DIR: join(folder, 'data') }
  const child = spawn('npm', ['start'], { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] })
  let output = ''
  const served = Promise.withResolvers<void>()
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
    if (/serves http/.test(output)) served.resolve()
  })
  const ended = once(child, 'close')
  await withDeadline(Promise.race([served.promise, ended]), () => `it does not serve:\n${output}`)
  assert.match(output, /serves http/)
  child.kill('SIGTERM')
  assert.equal((await ended)[0], 0, output)
}

const given = process.argv.slice(2)
try {
  execFileSync('npm', ['run', '--silent', 'build', '--', '--outDir', join(folder, 'dist')], { cwd: root })
  for (const version of given.length > 0 ? given : ['20', '22']) {
    const PATH = pathWith(version)
    const { stdout: real } = run(PATH, 'node --version', tmpdir())
    assert.ok(real.startsWith(`v${version}`), `node --version says ${real}`)
    for (const command of [
      'npm run --silent tollgate -- --version',
      'npm run --silent tollgate -- prices show claude-haiku-5-5',
      'npm run --silent t -- test/kernel/money.test.ts',
      'npm run --silent check',
    ]) {
      const { status, stdout, stderr } = run(PATH, command)
      assert.equal(status, 0, `${command} on Node.js ${version}:\n${stdout}${stderr}`)
    }
    await serveAndStop(PATH)
    const built = run(PATH, `node ${join(folder, 'dist/src/cli/tollgate.js')} --help`, tmpdir())
    const message = `Tollgate needs Node.js 24.5 or later; this is ${real.trim().slice(1)}.\n`
    assert.deepEqual(built, { status: 1, stdout: '', stderr: message })
    process.stdout.write(`Node.js ${real.trim()}: every command works or says what it needs\n`)
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
