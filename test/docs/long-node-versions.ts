import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { root } from '../style/source-tree.ts'

/** Runs the examples on the Node.js versions of readers; gateway and command run on the pinned version. */

const [, , ...named] = process.argv
const versions = named.length > 0 ? named : ['20', '22', '24']

for (const version of versions) {
  const folder = mkdtempSync(join(tmpdir(), `tollgate-node-${version}-`))
  try {
    execFileSync('npm', ['install', '--prefix', folder, '--no-audit', '--no-fund', `node@${version}`])
    const bin = join(folder, 'node_modules', '.bin')
    const found = execFileSync(join(bin, 'node'), ['--version']).toString().trim()
    process.stdout.write(`Node.js ${found}\n`)
    const { status } = spawnSync(process.execPath, ['test/run.ts', 'test/docs/run-pages.test.ts'], {
      cwd: root,
      env: { ...process.env, TEST_EXAMPLE_NODE: bin },
      stdio: 'inherit',
    })
    if (status !== 0) process.exitCode = 1
  } finally {
    rmSync(folder, { recursive: true })
  }
}
