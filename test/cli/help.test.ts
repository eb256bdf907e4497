import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { COMMANDS, HELP } from '../../src/cli/commands.ts'
import { runInThread } from '../support/command-thread.ts'
import { serveTollgate, startCommand } from '../support/tollgate-process.ts'

const execute = promisify(execFile)
const commands = [...COMMANDS.map(([name]) => name), 'help', 'version']

test('the help lists every command, and every command that it lists is there', () => {
  const usage = HELP.slice(HELP.indexOf('Usage'), HELP.indexOf('Environment'))
  const listed = new Set(Array.from(usage.matchAll(/^ {2}tollgate \[?([a-z-]+)/gm), ([, name = '']) => name))
  listed.delete('--help')
  assert.deepEqual([...listed].sort(), commands.filter((name) => !['help', 'version'].includes(name)).sort())
})

test('each command explains itself when it is asked to, and does nothing else', async () => {
  await Promise.all(
    commands.map(async (name) => {
      const help = await runInThread([name, '--help'])
      assert.deepEqual([help.code, help.stderr], [0, ''], name)
      assert.ok(help.stdout.length > 10, name)
    }),
  )
})

test('the help of serve is its own: how it is configured, and which signals stop it and make it read files again', async () => {
  const { stdout } = await runInThread(['serve', '--help'])
  assert.match(stdout, /^Usage\n {2}tollgate \[serve\]\n/)
  for (const told of ['TOLLGATE_DATA_DIR', 'SIGTERM', 'SIGHUP', 'Exit codes', 'ANTHROPIC_API_KEY=']) {
    assert.ok(stdout.includes(told), told)
  }
  assert.doesNotMatch(stdout, /tollgate rerate/)
  const wrong = await runInThread(['serve', '--prot', '80'])
  assert.equal(wrong.code, 2)
  assert.match(wrong.stderr, /^tollgate serve: Unknown option '--prot'[\s\S]*More: tollgate serve --help/)
})

/** The id of a call that does not exist, which is no fault of a command line. */
const FRAUD_IDS = 'req_01JCN1ZV5M3T9Q8W7E6R5T4Y3X\n'

const WITH_EXAMPLES = [
  ...['create', 'list', 'show', 'update', 'revoke', 'rotate'].map((action) => ['keys', action]),
  ...['add', 'back'].map((action) => ['credits', action]),
  ...['create', 'list', 'revoke'].map((action) => ['admin-key', action]),
  ...['create', 'list', 'show', 'update', 'delete', 'rotate-secret', 'test', 'deliveries', 'redeliver'].map(
    (action) => ['webhooks', action],
  ),
  ['usage'],
  ['requests'],
]

test('every example of a help is a command line that is understood', async () => {
  const tollgate = await serveTollgate()
  const folder = dirname(tollgate.dataDir)
  try {
    writeFileSync(join(folder, 'fraud.ids'), FRAUD_IDS)
    mkdirSync(join(folder, 'bin'))
    const command = join(folder, 'bin', 'tollgate')
    // This command writes down the arguments that the shell makes of the example.
    writeFileSync(command, '#!/bin/sh\nprintf "%s\\0" "$@" > "$ARGS_FILE"\n')
    chmodSync(command, 0o755)
    const helps = await Promise.all(WITH_EXAMPLES.map((name) => runInThread([...name, '--help'])))
    const examples = helps.flatMap(({ stdout }) => {
      const [, lines = ''] = /\nExamples?\n((?: {2}.*\n)+)/.exec(stdout) ?? []
      assert.notEqual(lines, '', stdout)
      return lines.trim().split('\n')
    })
    // A command with --follow does not end by itself.
    const ending = examples.map((example) => example.trim().replace(' --follow', ''))
    for (const example of ending) await understood(example)
  } finally {
    await tollgate.dispose()
  }

  async function understood(example: string): Promise<void> {
    const argsFile = join(folder, 'args')
    const env = { PATH: `${join(folder, 'bin')}:${process.env['PATH']}`, ARGS_FILE: argsFile }
    await execute('sh', ['-c', example], { cwd: folder, env })
    const typed = readFileSync(argsFile, 'utf8').split('\0').slice(0, -1)
    const args = typed.map((arg) => arg.replace(/^data\//, `${folder}/data/`))
    rmSync(argsFile)
    const environment = { ...tollgate.environment, NO_COLOR: '' }
    const { code, stderr } = args.includes('-')
      ? await startCommand(args, environment, { input: FRAUD_IDS }).finished
      : await runInThread(args, environment)
    assert.ok(code === 0 || code === 1, `${example}\n${stderr}`)
    if (code === 1) assert.match(stderr, /There is no |there is no |cannot be reached/, example)
  }
})
