import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { root } from '../style/source-tree.ts'
import { runCommand } from '../support/command-thread.ts'
import { readBlocks } from '../support/document-blocks.ts'
import { startGateway } from '../support/gateway.ts'
import { createDatabase, stopPostgres } from '../support/postgres.ts'
import { after, test } from '../support/suite.ts'
import { cleanEnvironment, serveTollgate, startCommand } from '../support/tollgate-process.ts'

const execute = promisify(execFile)
const blocks = readBlocks('docs/OPERATIONS.md').filter(
  ({ language, noRun }) => language === 'sh' && noRun === null,
)
const blockUnder = (section: string) =>
  blocks.find((block) => block.section === section)?.text ?? assert.fail(`no block under ${section}`)

const simulator = await startSimulator()
const folder = mkdtempSync(join(tmpdir(), 'tollgate-backup-'))
const gateway = await startGateway({ messagesUrl: simulator.messagesUrl })
after(async () => {
  await gateway.close()
  await simulator.close()
  await stopPostgres()
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

test('the backup of docs/OPERATIONS.md, taken under load, balances and can be served', async () => {
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
  const copy = join(folder, 'restored')
  assert.deepEqual(
    readdirSync(copy)
      .filter((name) => !/-(?:wal|shm)$/.test(name))
      .sort(),
    ['pepper', 'tollgate.db'],
  )
  assert.equal(statSync(copy).mode & 0o777, 0o700)
  await maintain(copy)
  await using again = await serveTollgate({
    TOLLGATE_DATA_DIR: copy,
    TOLLGATE_MESSAGES_URL: simulator.messagesUrl,
    TOLLGATE_DATABASE_URL: '',
  })
  assert.equal(await call(again.url), 401)
  assert.match(await shell('TOLLGATE_DATA_DIR=restored tollgate audit'), /^No difference/)
})

/** Revokes the key in maintenance mode, where no calls are served. */
async function maintain(dataDir: string): Promise<void> {
  const environment = { TOLLGATE_DATA_DIR: dataDir, TOLLGATE_HOST: '0.0.0.0', TOLLGATE_PORT: '0' }
  const { code, stdout: adminKey } = await runCommand(['admin-key', 'create'], environment)
  assert.equal(code, 0)
  const serving = startCommand(['serve', '--maintenance'], {
    ...environment,
    TOLLGATE_MESSAGES_URL: simulator.messagesUrl,
  })
  const said = await serving.printed(/in maintenance on (\S+):/)
  const url = /on (http:\/\/127\.0\.0\.1:\d+):/.exec(said)?.[1] ?? assert.fail(said)
  const called = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': gateway.apiKey },
  })
  assert.equal(called.status, 503)
  assert.match(await called.text(), /in maintenance.*surface_not_configured/)
  const headers = { authorization: `Bearer ${adminKey.trim()}` }
  const keys = (await (await fetch(`${url}/v1/keys`, { headers })).json()) as { data: { id: string }[] }
  const revoked = await fetch(`${url}/v1/keys/${keys.data[0]?.id}/revoke`, { method: 'POST', headers })
  assert.equal(revoked.status, 200)
  serving.signal('SIGTERM')
  assert.equal((await serving.finished).code, 0)
}

test('backup copies the configuration and the pepper of the environment, and names pg_dump on PostgreSQL', async () => {
  const pepper = 'a-pepper-from-the-environment'
  const working = join(folder, 'working')
  mkdirSync(working)
  writeFileSync(join(working, 'tollgate.json'), '{"stateful":"refuse"}')
  const database = await createDatabase()
  const to = join(folder, 'of-postgres')
  try {
    const { code, stdout, stderr } = await runCommand(
      ['backup', to],
      { TOLLGATE_DATABASE_URL: database.url, TOLLGATE_PEPPER: pepper },
      working,
    )
    assert.equal(code, 0, stderr)
    assert.match(stdout, /pg_dump --format=custom --file=\S+tollgate\.dump "\$TOLLGATE_DATABASE_URL"/)
    assert.ok(!stdout.includes(pepper))
    assert.equal(readFileSync(join(to, 'pepper'), 'utf8'), `${pepper}\n`)
    assert.equal(readFileSync(join(to, 'tollgate.json'), 'utf8'), '{"stateful":"refuse"}')
    for (const name of readdirSync(to)) assert.equal(statSync(join(to, name)).mode & 0o777, 0o600)
    const file = join(working, 'tollgate.json')
    const onFile = await runCommand(['backup', file], { TOLLGATE_DATABASE_URL: database.url })
    assert.match(onFile.stderr, /tollgate\.json cannot be used: part of the path is not a folder\.\n$/)
  } finally {
    await database.drop()
  }
})
