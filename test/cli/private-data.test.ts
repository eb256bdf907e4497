import assert from 'node:assert/strict'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { withDeadline } from '../support/deadline.ts'
import { test } from '../support/suite.ts'
import { serveTollgate } from '../support/tollgate-process.ts'

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

function modesBelow(dir: string): Record<string, string> {
  const found: Record<string, string> = {}
  for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    found[path.slice(dir.length + 1)] = modeOf(path)
  }
  return found
}

function assertPrivate(dir: string): void {
  const open = Object.entries(modesBelow(dir)).filter(
    ([name, mode]) => mode !== (statSync(join(dir, name)).isDirectory() ? '700' : '600'),
  )
  assert.deepEqual(open, [])
}

const withFolder = (run: (dir: string) => Promise<void>) => async () => {
  const dir = mkdtempSync(join(tmpdir(), 'tollgate-private-'))
  try {
    await run(join(dir, 'data'))
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

async function useLog(url: string, adminKey: string): Promise<void> {
  const send = (path: string, key: string, body: unknown) =>
    fetch(url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  const made = await send('/v1/keys', adminKey, { name: 'logged', log_requests: true })
  const { key } = (await made.json()) as { key: string }
  const messages = [{ role: 'user', content: 'Hello' }]
  const reply = await send('/v1/chat/completions', key, { model: 'gpt-6-luna', messages })
  assert.equal(reply.status, 200)
  await reply.text()
}

test(
  "the gateway's files are private even in an open data directory, and the log gives the chmod command",
  withFolder(async (dataDir) => {
    mkdirSync(dataDir)
    chmodSync(dataDir, 0o755)
    const adminKey = 'an-admin-key-of-the-operator-0123456789'
    await using tollgate = await serveTollgate({ TOLLGATE_DATA_DIR: dataDir, TOLLGATE_ADMIN_KEY: adminKey })
    const said = await withDeadline(tollgate.printedToStderr(/chmod 700/), () => 'no warning')
    assert.match(
      said,
      new RegExp(`"check":"data_directory","todo":"chmod 700 ${dataDir}".*is open to other users`),
    )
    assert.equal(modeOf(dataDir), '755', 'the file is unchanged')
    await useLog(tollgate.url, adminKey)
    if (tollgate.databaseUrl === null) assert.ok(existsSync(join(dataDir, 'tollgate.db-wal')))
    assertPrivate(dataDir)
  }),
)
