import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { promisify } from 'node:util'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { root } from '../style/source-tree.ts'
import { readBlocks } from '../support/document-blocks.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { cleanEnvironment, serveTollgate } from '../support/tollgate-process.ts'

const execute = promisify(execFile)
const blocks = readBlocks('docs/OPERATIONS.md').filter(
  ({ language, noRun }) => language === 'sh' && noRun === null,
)
const blockUnder = (section: string) =>
  blocks.find((block) => block.section === section)?.text ?? assert.fail(`no block under ${section}`)

let simulator: Simulator
let gateway: TestGateway
const folder = mkdtempSync(join(tmpdir(), 'tollgate-backup-'))
before(async () => {
  simulator = await startSimulator()
  gateway = await startGateway({ messagesUrl: simulator.messagesUrl })
})
after(async () => {
  await gateway.close()
  await simulator.close()
  rmSync(folder, { recursive: true })
})

const call = (url: string) =>
  fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': gateway.apiKey, 'anthropic-version': '2023-06-01' },
    body: '{"model":"claude-haiku-5-5","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}',
  }).then(async (response) => {
    await response.text()
    return response.status
  })

test('the backup of docs/OPERATIONS.md, made while calls are under way, balances and can be served from', async () => {
  symlinkSync(gateway.dataDir, join(folder, 'data'))
  const programs = join(folder, 'programs')
  mkdirSync(programs)
  const program = join(root, 'src/cli/tollgate.ts')
  writeFileSync(join(programs, 'tollgate'), `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`, {
    mode: 0o755,
  })
  symlinkSync(process.execPath, join(programs, 'node'))
  const env = cleanEnvironment({ PATH: `${programs}:${process.env['PATH']}` })
  const shell = async (script: string) => (await execute('sh', ['-euc', script], { cwd: folder, env })).stdout

  let isDone = false
  let calls = 0
  const callers = Array.from({ length: 8 }, async () => {
    while (!isDone) {
      assert.equal(await call(gateway.url), 200)
      calls += 1
    }
  })
  while (calls < 50) await call(gateway.url)
  const audited = await shell(blockUnder('Operations'))
  isDone = true
  await Promise.all(callers)
  const copied = Number(/No difference in (\d+) calls/.exec(audited)?.[1])
  assert.ok(copied >= 50 && copied < calls + 50, `${copied} of ${calls} calls are in the copy`)

  const restored = await shell(blockUnder('Backup and restore'))
  assert.match(restored, new RegExp(`No difference in ${copied} calls`))
  const again = await serveTollgate({
    TOLLGATE_DATA_DIR: join(folder, 'restored'),
    TOLLGATE_MESSAGES_URL: simulator.messagesUrl,
  })
  try {
    assert.equal(await call(again.url), 200)
  } finally {
    await again.dispose()
  }
})
