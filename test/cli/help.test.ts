import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { HELP } from '../../src/cli/help.ts'
import { root } from '../style/source-tree.ts'
import { runTollgate, serveTollgate } from '../support/tollgate-process.ts'

const program = readFileSync(join(root, 'src/cli/tollgate.ts'), 'utf8')
const commands = Array.from(program.matchAll(/^ {2}case '([a-z][a-z-]*)'/gm), ([, name = '']) => name)

test('the help lists every command, and every command that it lists is there', () => {
  const usage = HELP.slice(HELP.indexOf('Usage'), HELP.indexOf('Environment'))
  const listed = new Set(Array.from(usage.matchAll(/^ {2}tollgate \[?([a-z-]+)/gm), ([, name = '']) => name))
  listed.delete('--help')
  assert.deepEqual([...listed].sort(), commands.filter((name) => !['help', 'version'].includes(name)).sort())
})

test('each command explains itself when it is asked to, and does nothing else', async () => {
  await Promise.all(
    commands.map(async (name) => {
      const help = await runTollgate([name, '--help'])
      assert.deepEqual([help.code, help.stderr], [0, ''], name)
      assert.ok(help.stdout.length > 10, name)
    }),
  )
})

const WITH_EXAMPLES = [
  ...['create', 'list', 'show', 'update', 'revoke', 'rotate'].map((action) => ['keys', action]),
  ...['add', 'back'].map((action) => ['credits', action]),
  ...['create', 'list', 'revoke'].map((action) => ['admin-key', action]),
  ['usage'],
  ['requests'],
]

test('every example of a help is a command line that is understood', async () => {
  const tollgate = await serveTollgate()
  const folder = dirname(tollgate.dataDir)
  try {
    // Their ids are not there, which is no fault of the command line.
    writeFileSync(join(folder, 'fraud.ids'), 'req_01JCN1ZV5M3T9Q8W7E6R5T4Y3X\n')
    mkdirSync(join(folder, 'bin'))
    const command = join(folder, 'bin', 'tollgate')
    writeFileSync(
      command,
      `#!/bin/sh\nexec "${process.execPath}" "${join(root, 'src/cli/tollgate.ts')}" "$@"\n`,
    )
    chmodSync(command, 0o755)
    const helps = await Promise.all(WITH_EXAMPLES.map((name) => runTollgate([...name, '--help'])))
    const examples = helps.flatMap(({ stdout }) => {
      const [, lines = ''] = /\nExamples?\n((?: {2}.*\n)+)/.exec(stdout) ?? []
      assert.notEqual(lines, '', stdout)
      return lines.trim().split('\n')
    })
    // What follows does not end by itself.
    const ending = examples.map((example) => example.trim().replace(' --follow', ''))
    for (let at = 0; at < ending.length; at += 4) {
      await Promise.all(ending.slice(at, at + 4).map(understood))
    }
  } finally {
    await tollgate.dispose()
  }

  async function understood(example: string): Promise<void> {
    const env = {
      PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
      TOLLGATE_DATA_DIR: tollgate.dataDir,
      NO_COLOR: '',
    }
    const { code, stderr } = await new Promise<{ code: unknown; stderr: string }>((resolve) => {
      execFile('sh', ['-c', example], { cwd: folder, env }, (error, _, stderr) =>
        resolve({ code: error === null ? 0 : error.code, stderr }),
      )
    })
    assert.ok(code === 0 || code === 1, `${example}\n${stderr}`)
    if (code === 1) assert.match(stderr, /There is no |there is no |cannot be reached/, example)
  }
})
