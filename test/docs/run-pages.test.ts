import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { root } from '../style/source-tree.ts'
import { curlStandIn } from '../support/curl-stand-in.ts'
import { type Block, PAGES, readBlocks } from '../support/document-blocks.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { after, before, test } from '../support/suite.ts'

/** Runs every example of README and docs unchanged. The blocks of a page share one shell and one folder. */

const SHELL = new Set(['sh', 'bash'])
const SCRIPTS: Readonly<Record<string, string>> = {
  js: 'mjs',
  javascript: 'mjs',
  ts: 'mts',
  typescript: 'mts',
}

/** The folder of the reader's Node.js: `long-node-versions.ts` sets older ones. */
const EXAMPLE_NODE = process.env['TEST_EXAMPLE_NODE'] ?? dirname(process.execPath)

/** The numbered steps are the runbook for a leaked key: test/cli/leaked-key-runbook.test.ts runs them. */
const isRunElsewhere = ({ section }: Block) => /^\d\. /.test(section)

/** An example that does not end fails with its page. The longest page takes about ten seconds. */
const PAGE_TIMEOUT_MS = 120_000

const isRunnable = ({ language }: Block) => SHELL.has(language) || Object.hasOwn(SCRIPTS, language)

let simulator: Simulator
let gateway: TestGateway
const curl = curlStandIn()
const folder = mkdtempSync(join(tmpdir(), 'tollgate-docs-'))
const commands = join(folder, 'bin')

before(async () => {
  simulator = await startSimulator({ messagesKey: 'm', chatKey: 'c' })
  const { messagesUrl, chatUrl } = simulator
  gateway = await startGateway({ messagesUrl, messagesKey: 'm', chatUrl, chatKey: 'c' })
  mkdirSync(commands)
  const tollgate = join(commands, 'tollgate')
  writeFileSync(
    tollgate,
    `#!/bin/sh\nexec '${process.execPath}' '${join(root, 'src/cli/tollgate.ts')}' "$@"\n`,
  )
  // In a checkout, npm runs the command; the folders of the pages are none.
  const npm = join(commands, 'npm')
  writeFileSync(npm, '#!/bin/sh\n[ "$1 $2 $3 $4" = "run -s tollgate --" ] && shift 4 && exec tollgate "$@"\n')
  for (const command of [tollgate, npm]) chmodSync(command, 0o755)
})
after(async () => {
  await gateway.close()
  await simulator.close()
  curl.dispose()
  rmSync(folder, { recursive: true })
})

function makeWorkplace(page: string): string {
  const place = join(folder, page.replaceAll(/\W/g, '-'))
  mkdirSync(place)
  symlinkSync(gateway.dataDir, join(place, 'data'))
  symlinkSync(join(root, 'node_modules'), join(place, 'node_modules'))
  return place
}

/** The shell text of a block. Its position in the page is written to stderr first. */
function commandOf(block: Block, place: string, spelled: (text: string) => string): string {
  const at = `${block.page}:${block.line}`
  const lines = [`echo '@ ${at}' >&2`, `export CURL_EXPECTS=${block.refused ?? ''}`]
  const ending = SCRIPTS[block.language]
  if (ending === undefined) lines.push(spelled(block.text))
  else {
    const file = `line-${block.line}.${ending}`
    writeFileSync(join(place, file), spelled(block.text))
    lines.push(`node ${file}`)
  }
  return lines.join('\n')
}

async function runPage(page: string, blocks: readonly Block[]): Promise<void> {
  const { key } = await gateway.createKey(page)
  const place = makeWorkplace(page)
  const spelled = (text: string) =>
    text
      .replaceAll('http://127.0.0.1:8787', gateway.url)
      .replaceAll('svc_live_…', key)
      .replaceAll('svc_admin_…', gateway.adminKey)
  const script = blocks.map((block) => commandOf(block, place, spelled)).join('\n')
  const env = {
    PATH: [curl.folder, commands, EXAMPLE_NODE, '/usr/bin', '/bin'].join(':'),
    HOME: place,
    TOLLGATE_URL: gateway.url,
    TMPDIR: tmpdir(),
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '',
  }
  // The shell has its own process group, so that an example that does not end is killed with it.
  const shell = spawn('bash', ['--norc', '-euo', 'pipefail', '-c', script], {
    cwd: place,
    env,
    detached: true,
  })
  const group = shell.pid ?? assert.fail('bash cannot be started')
  shell.stdin.end()
  const timer = setTimeout(() => process.kill(-group, 'SIGKILL'), PAGE_TIMEOUT_MS)
  const [stdout, stderr, [code]] = await Promise.all([
    text(shell.stdout),
    text(shell.stderr),
    once(shell, 'close'),
  ])
  clearTimeout(timer)
  const said = `${stderr.slice(-4_000)}\nwith the output\n${stdout.slice(-2_000)}`
  assert.equal(code, 0, `${page} does not run:\n${said}`)
}

for (const page of PAGES) {
  const blocks = readBlocks(page).filter(
    (block) => isRunnable(block) && block.noRun === null && !isRunElsewhere(block),
  )
  if (blocks.length === 0) continue
  test(`${page}: its ${blocks.length} examples run verbatim`, () => runPage(page, blocks))
}
