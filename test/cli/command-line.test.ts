import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { COMMAND_NAMES } from '../../src/cli/program.ts'
import { VERSION } from '../../src/kernel/version.ts'
import { runInThread } from '../support/command-thread.ts'
import { runTollgate, startCommand } from '../support/tollgate-process.ts'

test('tollgate alone, help and --help print the commands', async () => {
  const alone = await runTollgate([])
  assert.deepEqual([alone.code, alone.stderr], [0, ''])
  for (const name of COMMAND_NAMES) assert.match(alone.stdout, new RegExp(`^  ${name} `, 'm'))
  assert.match(alone.stdout, /Exit codes: 0 done, 1 failed, 2 /)
  for (const args of [['help'], ['--help'], ['-h']])
    assert.equal((await runInThread(args)).stdout, alone.stdout, args[0])
  assert.equal((await runInThread(['--version'])).stdout, `tollgate ${VERSION}\n`)
})

test('each command prints its help and does nothing else', async () => {
  for (const name of COMMAND_NAMES) {
    const help = await runInThread([name, '--help'])
    assert.deepEqual([help.code, help.stderr], [0, ''], name)
    assert.match(help.stdout, new RegExp(`^Usage: tollgate ${name} `), name)
  }
  const group = await runInThread(['keys'])
  assert.deepEqual(group, await runInThread(['keys', '--help']))
  assert.deepEqual((await runInThread(['help', 'keys'])).stdout, group.stdout)
})

const WRONG: readonly (readonly [args: readonly string[], message: RegExp])[] = [
  [['kyes'], /^tollgate: unknown command 'kyes'\n\(Did you mean keys\?\)\nAdd --help for usage\.\n$/],
  [['keys', 'lsit'], /^tollgate: unknown command 'lsit'\n\(Did you mean list\?\)/],
  [['keys', 'list', '--serach', 'x'], /^tollgate: unknown option '--serach'\n\(Did you mean --search\?\)/],
  [['requests', '--modle', 'x'], /unknown option '--modle'\n\(Did you mean --model\?\)/],
  [['serve', '--prot', '80'], /unknown option '--prot'/],
  [['frobnicate'], /^tollgate: unknown command 'frobnicate'\nAdd --help for usage\.\n$/],
  [['keys', 'show'], /missing required argument 'key'/],
  [['keys', 'show', 'a', 'b'], /too many arguments/],
  [['credits', 'add', '5'], /required option '--reason <text>' not specified/],
  [['webhooks', 'list'], /unknown command 'webhooks'/],
  [['prices', 'import', 'x'], /unknown command 'import'/],
  [['requests', '--format', 'xml'], /'xml' is invalid\. Allowed choices are csv, ndjson\./],
]

test('a wrong command line ends with 2, prints nothing, and suggests what was meant', async () => {
  for (const [args, message] of WRONG) {
    const { code, stdout, stderr } = await runInThread(args)
    assert.deepEqual([code, stdout], [2, ''], args.join(' '))
    assert.match(stderr, message, args.join(' '))
  }
  assert.equal((await runTollgate(['kyes'])).code, 2)
})

test('a reader that goes away ends a command without a complaint', async () => {
  const shown = startCommand(['prices', 'show', '--json'])
  shown.stopReading()
  const { code, stderr } = await shown.finished
  assert.deepEqual([code, stderr], [0, ''])
})

// The entry is run alone, without the packages and files that it would load: none may be needed before the check.
test('on an older Node.js the program says which version it needs', () => {
  const dir = mkdtempSync(join(tmpdir(), 'tollgate-node-'))
  try {
    const source = readFileSync(new URL('../../src/cli/tollgate.ts', import.meta.url), 'utf8')
    const program = join(dir, 'tollgate.mjs')
    writeFileSync(program, stripTypeScriptTypes(source))
    for (const version of ['20.20.2', '22.18.0', '24.4.1']) {
      const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`
      const args = ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`, program, 'serve']
      const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', cwd: dir })
      assert.deepEqual(
        [status, stdout, stderr],
        [1, '', `Tollgate needs Node.js 24.5 or later; this is ${version}.\n`],
      )
    }
    // A name that an old version does not export would fail before the first line runs.
    const named = Array.from(
      source.matchAll(/^import \{([^}]*)\} from 'node:(\w+)'$/gm),
      ([, names = '', from]) => [from, names.trim()],
    )
    assert.deepEqual(named, [
      ['fs', 'lstatSync, mkdirSync'],
      ['os', 'homedir'],
      ['path', 'isAbsolute, join'],
    ])
  } finally {
    rmSync(dir, { recursive: true })
  }
})
