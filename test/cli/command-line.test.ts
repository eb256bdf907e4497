import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { COMMAND_NAMES } from '../../src/cli/program.ts'
import { VERSION } from '../../src/kernel/runtime.ts'
import { runInThread } from '../support/command-thread.ts'
import { test } from '../support/suite.ts'
import { runTollgate } from '../support/tollgate-process.ts'

test('tollgate alone, help and --help print the commands', async () => {
  const alone = await runTollgate([])
  assert.deepEqual([alone.code, alone.stderr], [0, ''])
  for (const name of COMMAND_NAMES) assert.match(alone.stdout, new RegExp(`^  ${name} `, 'm'))
  assert.match(alone.stdout, /Exit codes: 0 success, 1 failure, 2 /)
  for (const args of [['help'], ['--help'], ['-h']])
    assert.equal((await runInThread(args)).stdout, alone.stdout, args[0])
  assert.equal((await runInThread(['--version'])).stdout, `tollgate ${VERSION}\n`)
})

test('each command prints its help without running', async () => {
  for (const name of COMMAND_NAMES) {
    const help = await runInThread([name, '--help'])
    assert.deepEqual([help.code, help.stderr], [0, ''], name)
    assert.match(help.stdout, new RegExp(`^Usage: tollgate ${name} `), name)
  }
  const group = await runInThread(['keys'])
  assert.deepEqual(group, await runInThread(['keys', '--help']))
  assert.deepEqual((await runInThread(['help', 'keys'])).stdout, group.stdout)
})

/** `serve` runs until it is stopped, and a completion script is for the shell. */
const WITHOUT_RESULT = new Set(['serve', 'completion'])

test('every command that prints a result has --json', async () => {
  const subcommandsOf = (help: string) =>
    [...(help.split('\nCommands:\n')[1]?.split('\n\n')[0] ?? '').matchAll(/^ {2}(\S+)/gm)]
      .map(([, word = '']) => word.split('|')[0] ?? '')
      .filter((word) => word !== 'help')
  for (const name of COMMAND_NAMES) {
    if (WITHOUT_RESULT.has(name)) continue
    const { stdout: help } = await runInThread([name, '--help'])
    const commands = subcommandsOf(help)
    for (const args of commands.length === 0 ? [[name]] : commands.map((command) => [name, command])) {
      const { stdout } = await runInThread([...args, '--help'])
      assert.match(stdout, /^ {2}--json /m, args.join(' '))
    }
  }
})

const WRONG: readonly (readonly [args: readonly string[], message: RegExp])[] = [
  [['kyes'], /^tollgate: Unknown command 'kyes'\. Did you mean keys\? Add --help for usage\.\n$/],
  [['keys', 'lsit'], /^tollgate: Unknown command 'lsit'\. Did you mean list\?/],
  [['keys', 'list', '--serach', 'x'], /^tollgate: Unknown option '--serach'\. Did you mean --search\?/],
  [['requests', '--modle', 'x'], /Unknown option '--modle'\. Did you mean --model\?/],
  [['serve', '--prot', '80'], /Unknown option '--prot'/],
  [['frobnicate'], /^tollgate: Unknown command 'frobnicate'\. Add --help for usage\.\n$/],
  [['keys', 'show'], /^tollgate: Missing required argument 'key'\. Add --help for usage\.\n$/],
  [['keys', 'show', 'a', 'b'], /Too many arguments/],
  [['credits', 'add', '5'], /Required option '--reason <text>' not specified/],
  [['prices', 'import', 'x'], /Unknown command 'import'/],
  [['requests', '--format', 'xml'], /'xml' is invalid\. Allowed choices are csv, ndjson\./],
]

test('an invalid command line exits with 2, prints nothing to stdout, and suggests a correction', async () => {
  for (const [args, message] of WRONG) {
    const { code, stdout, stderr } = await runInThread(args)
    assert.deepEqual([code, stdout], [2, ''], args.join(' '))
    assert.match(stderr, message, args.join(' '))
  }
  assert.equal((await runTollgate(['kyes'])).code, 2)
})

const entryOf = (path: string) => fileURLToPath(new URL(`../../${path}`, import.meta.url))

test('on an older Node.js every entry point prints the required version', () => {
  for (const version of ['20.20.2', '22.18.0', '24.4.1']) {
    const versions = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`
    for (const entry of ['src/cli/tollgate.ts']) {
      const args = [
        '--import',
        `data:text/javascript,${encodeURIComponent(versions)}`,
        entryOf(entry),
        '--help',
      ]
      const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
      const message = `Tollgate needs Node.js 24.5 or later; this is ${version}.\n`
      assert.deepEqual([status, stdout, stderr], [1, '', message], entry)
    }
  }
})

// A package, or a name that an old version does not export, would fail before the check.
test('before the version check, the program imports only what an old Node.js has', () => {
  const source = readFileSync(entryOf('src/cli/tollgate.ts'), 'utf8')
  assert.deepEqual(source.match(/^import .*$/gm), [
    "import '../kernel/check-node.ts'",
    "import { lstatSync, mkdirSync } from 'node:fs'",
    "import nodeModule from 'node:module'",
    "import { homedir } from 'node:os'",
    "import { isAbsolute, join } from 'node:path'",
  ])
})
