import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from '../style/source-tree.ts'

/**
 * Runs the examples on the Node.js versions of readers; gateway and command run on the pinned version. On a newer version that
 * `engines` names, the gateway's own tests run.
 */

const NEWER = '26'
const AREAS = ['sqlite', 'http', 'http-calls', 'sockets', 'store', 'sign-in', 'cli']

const [, , ...named] = process.argv
const versions = named.length > 0 ? named : ['20', '22', '24', NEWER]

for (const version of versions) {
  const folder = mkdtempSync(join(tmpdir(), `tollgate-node-${version}-`))
  try {
    execFileSync('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', `node@${version}`])
    const bin = join(folder, 'node_modules', '.bin')
    const found = execFileSync(join(bin, 'node'), ['--version']).toString().trim()
    process.stdout.write(`Node.js ${found}\n`)
    const [program, env, files] =
      version === NEWER
        ? [join(bin, 'node'), {}, AREAS]
        : [process.execPath, { TEST_EXAMPLE_NODE: bin }, ['test/docs/run-pages.test.ts']]
    const { status } = spawnSync(program, ['test/run.ts', ...files], {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: 'inherit',
    })
    if (status !== 0) process.exitCode = 1
  } finally {
    rmSync(folder, { recursive: true })
  }
}
