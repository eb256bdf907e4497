import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import { COMMAND_NAMES } from '../../src/cli/program.ts'
import { root } from '../style/source-tree.ts'
import { type Block, PAGES, readBlocks } from '../support/document-blocks.ts'
import { test } from '../support/suite.ts'
import { readToml } from './read-toml.ts'

const blocks = PAGES.flatMap(readBlocks)
const placeOf = ({ page, line }: Block) => `${page}:${line}`

/** Languages whose blocks `run-pages.test.ts` runs. */
const RUN = ['sh', 'bash', 'js', 'javascript', 'ts', 'typescript']
/** Blocks without a parser: diagrams, output, and languages that only their server reads. */
const UNREAD = ['', 'text', 'sql']

/** How many blocks may need something that a test machine lacks. Each is an untested example. */
const NO_RUN_MAX = 16

const readers: Readonly<Record<string, (text: string) => void>> = {
  json: (text) => JSON.parse(text),
  toml: readToml,
  yaml(text) {
    for (const document of parseAllDocuments(text)) {
      if ('errors' in document && document.errors.length > 0) throw document.errors[0]
    }
  },
}

for (const [language, read] of Object.entries(readers)) {
  test(`every ${language} block of the documentation parses`, () => {
    for (const block of blocks.filter((each) => each.language === language)) {
      assert.doesNotThrow(() => read(block.text), placeOf(block))
    }
  })
}

/** A command that reads the block from standard input and fails on invalid syntax. */
const compilers: Readonly<Record<string, readonly [command: string, ...args: string[]]>> = {
  python: ['python3', '-c', 'import ast, sys; ast.parse(sys.stdin.read())'],
  go: ['gofmt', '-e'],
}

for (const [language, [command, ...args]] of Object.entries(compilers)) {
  test(`every ${language} block has valid syntax, if ${command} is installed`, (context) => {
    for (const block of blocks.filter((each) => each.language === language)) {
      const { error, status, stderr } = spawnSync(command, args, { input: block.text, encoding: 'utf8' })
      if (error !== undefined) return context.diagnostic(`${command} cannot be started: ${error.message}`)
      assert.equal(status, 0, `${placeOf(block)}: ${stderr}`)
    }
  })
}

test('every block is run, parsed or in a language without a parser', () => {
  const known = [...RUN, ...UNREAD, ...Object.keys(readers), ...Object.keys(compilers)]
  for (const block of blocks)
    assert.ok(known.includes(block.language), `${placeOf(block)}: ${block.language}`)
})

test('shell blocks that are not run have valid bash syntax and name commands of tollgate', () => {
  for (const block of blocks.filter(({ noRun, language }) => noRun !== null && language === 'sh')) {
    const { status, stderr } = spawnSync('bash', ['-n'], { input: block.text, encoding: 'utf8' })
    assert.equal(status, 0, `${placeOf(block)}: ${stderr}`)
    for (const [, name = ''] of block.text.matchAll(/^(?:[A-Z_]+=\S* )*(?:local_)?tollgate ([a-z-]+)/gm))
      assert.ok(COMMAND_NAMES.includes(name), `${placeOf(block)}: tollgate ${name}`)
  }
})

test('docs/OPERATIONS.md: the checklist is complete, and its systemd, Docker and Kubernetes commands parse', () => {
  const page = readFileSync(new URL('../../docs/OPERATIONS.md', import.meta.url), 'utf8')
  const sectionOf = (title: string) =>
    page.split(`\n## ${title}\n`)[1]?.split('\n## ')[0] ?? assert.fail(`no section ${title}`)
  const checklist = sectionOf('Production checklist')
  for (const item of ['TLS', 'Pepper', 'Backup', 'Trusted proxies', 'Alerts', 'Upgrades'])
    assert.match(checklist, new RegExp(`^- \\[ \\] \\*\\*${item}\\.\\*\\*`, 'm'))
  const rows = [...sectionOf('The command line').matchAll(/^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$/gm)].slice(1)
  assert.deepEqual(
    rows.map(([, where]) => where),
    ['systemd', 'Docker, single node', 'Docker, two nodes', 'Kubernetes', 'elsewhere'],
  )
  for (const [row, , key = '', command = ''] of rows) {
    for (const [, code = ''] of `${key} ${command}`.matchAll(/`([^`]+)`/g))
      assert.equal(spawnSync('bash', ['-n', '-c', code]).status, 0, code)
    const [, name = ''] = /(?:^`|[ =])tollgate ([a-z-]+) list/.exec(command) ?? []
    assert.ok(COMMAND_NAMES.includes(name), row)
  }
})

test('few blocks are not run, and each gives a reason', (context) => {
  const notRun = blocks.filter(({ noRun }) => noRun !== null)
  for (const block of notRun) {
    context.diagnostic(`${placeOf(block)} is not run: ${block.noRun}`)
    assert.ok(RUN.includes(block.language), `${placeOf(block)} would not be run anyway`)
  }
  assert.ok(notRun.length <= NO_RUN_MAX, `${notRun.length} blocks are not run`)
})

test('docs/TROUBLESHOOTING.md quotes messages as the source has them', () => {
  const page = readFileSync(new URL('../../docs/TROUBLESHOOTING.md', import.meta.url), 'utf8')
  const source = globSync('src/**/*.ts', { cwd: root }).map((file) => readFileSync(join(root, file), 'utf8'))
  const quoted = [...page.matchAll(/^\| (`[^|]+) \|/gm)].flatMap(
    ([, cell = '']) => cell.match(/(?<=`)[^`,]+(?=`)/g) ?? [],
  )
  assert.ok(quoted.length > 30)
  for (const words of quoted)
    assert.ok(
      source.some((text) => text.includes(words)),
      words,
    )
})
