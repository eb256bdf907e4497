import assert from 'node:assert/strict'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import { readConfig } from '../../src/config.ts'
import { openStore } from '../../src/installation.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { createLog } from '../../src/kernel/log.ts'
import { lockDataDir } from '../../src/store/data-dir.ts'
import { startGateway } from '../support/gateway.ts'
import { runTollgate } from '../support/tollgate-process.ts'

const ALONE = { log: createLog('silent'), clock: systemClock, diskFault: null, onFatal() {} }

const empty = mkdtempSync(join(tmpdir(), 'tollgate-empty-'))
after(() => rmSync(empty, { recursive: true }))

test('a command of a newer version does not change the books under a gateway that serves from them', async () => {
  const gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9' })
  const config = readConfig({ TOLLGATE_DATA_DIR: gateway.dataDir }, gateway.dataDir)
  const db = new DatabaseSync(join(gateway.dataDir, 'tollgate.db'))
  try {
    const { user_version: version } = db.prepare('PRAGMA user_version').get() ?? {}
    db.exec('PRAGMA user_version = 3')
    await assert.rejects(openStore(config, ALONE), /older version than this command/)
    const rerate = ['rerate', '--from', '2026-01-01']
    const rerated = await runTollgate(rerate, { TOLLGATE_DATA_DIR: gateway.dataDir })
    assert.equal(rerated.code, 1)
    assert.match(rerated.stderr, /older version than this command/)
    assert.equal(db.prepare('PRAGMA user_version').get()?.['user_version'], 3)
    db.exec(`PRAGMA user_version = ${version}`)
    const { store } = await openStore(config, ALONE)
    await store.close()
  } finally {
    db.close()
    await gateway.close()
  }
})

test('looking whether a gateway serves leaves the folder free for one', () => {
  const lock = lockDataDir(empty)
  assert.notEqual(lock, null)
  assert.equal(lockDataDir(empty), null)
  lock?.release()
  const again = lockDataDir(empty)
  assert.notEqual(again, null)
  again?.release()
})

for (const command of ['list', 'create']) {
  test(`tollgate admin-key ${command} in a folder without books makes none there, and says so`, async () => {
    const folder = mkdtempSync(join(empty, 'typo-'))
    const run = await runTollgate(['admin-key', command], { TOLLGATE_DATA_DIR: folder })
    assert.equal(run.code, 2)
    assert.match(run.stderr, /there are no books in/)
    assert.deepEqual(readdirSync(folder), [])
  })
}
