import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, test } from 'node:test'
import { withDeadline } from '../support/deadline.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { serveTollgate } from '../support/tollgate-process.ts'
import { noise } from '../support/wire-bytes.ts'
import {
  CANARIES,
  contentsOf,
  type Environment,
  examineWith,
  IN_DATA_DIR,
  type Report,
  Ward,
} from './doctor-ward.ts'

const ward = new Ward()
before(() => ward.admitHealthy())
after(() => ward.discharge())

const examineOffline = (dataDir: string, environment: Environment = {}): Promise<Report> =>
  examineWith(dataDir, environment, ['--offline'])

function overwrite(file: string, at: number, bytes: Buffer): void {
  const descriptor = openSync(file, 'r+')
  writeSync(descriptor, bytes, 0, bytes.length, at)
  closeSync(descriptor)
}

function changeDatabase(dataDir: string, sql: string): void {
  const db = new DatabaseSync(join(dataDir, 'tollgate.db'))
  db.exec(sql)
  db.close()
}

test('secrets that others can read are problems, an open data directory is a warning', async () => {
  const dataDir = ward.healthyCopy()
  chmodSync(dataDir, 0o755)
  chmodSync(join(dataDir, 'pepper'), 0o644)
  chmodSync(join(dataDir, 'admin-key'), 0o640)
  const report = await examineOffline(dataDir)
  assert.equal(report.code, 1)
  assert.equal(report.check('data_directory').state, 'warning')
  assert.equal(report.check('data_directory').todo, `chmod 700 ${dataDir}`)
  assert.equal(report.check('pepper').state, 'problem')
  assert.match(report.check('pepper').found, /pepper can be read by other users \(mode 644\)$/)
  assert.equal(report.check('pepper').todo, `chmod 600 ${dataDir}/pepper`)
  assert.equal(report.check('admin_key').todo, `chmod 600 ${dataDir}/admin-key`)
})

test('a pepper that is lost, or not the one that the keys were made with, is a problem', async () => {
  const dataDir = ward.healthyCopy()
  const other = await examineOffline(dataDir, { TOLLGATE_PEPPER: CANARIES.pepper })
  assert.match(other.check('pepper').found, /made with another pepper than TOLLGATE_PEPPER/)

  const pepper = readFileSync(join(dataDir, 'pepper'), 'utf8').trim()
  rmSync(join(dataDir, 'pepper'))
  assert.match((await examineOffline(dataDir)).check('pepper').found, /is lost, and without it none/)
  const given = await examineOffline(dataDir, { TOLLGATE_PEPPER: pepper })
  assert.equal(given.check('pepper').found, 'from TOLLGATE_PEPPER')

  writeFileSync(join(dataDir, 'pepper'), '\n', { mode: 0o600 })
  assert.match((await examineOffline(dataDir)).check('pepper').found, /is lost, and without it none/)

  writeFileSync(join(dataDir, 'pepper'), CANARIES.pepper, { mode: 0o600 })
  assert.match((await examineOffline(dataDir)).check('pepper').found, /made with another pepper than \//)
})

test('bills that were refused for good are a warning, until their file is moved away', async () => {
  const dataDir = ward.healthyCopy()
  const file = join(dataDir, 'spool', 'refused.jsonl')
  mkdirSync(join(dataDir, 'spool'), { recursive: true })
  writeFileSync(file, '{"refused":"there is no call","kept":{}}\n'.repeat(2))
  const report = await examineOffline(dataDir)
  const { state, found, todo } = report.check('refused_settlements')
  assert.deepEqual([state, report.code], ['warning', 0])
  assert.equal(found, `the bills of 2 calls could not be booked, and are in ${file}`)
  assert.match(String(todo), /Move the file away/)
  rmSync(file)
  const names = (await examineOffline(dataDir)).checks.map(({ name }) => name)
  assert.ok(!names.includes('refused_settlements'), names.join())
})

test('without an admin key in force the doctor says how to make one', async () => {
  const dataDir = ward.healthyCopy()
  changeDatabase(dataDir, 'UPDATE admin_key SET revoked_at_ms = 1')
  const report = await examineOffline(dataDir)
  assert.equal(report.check('admin_key').state, 'warning')
  assert.match(report.check('admin_key').todo ?? '', /tollgate admin-key create/)
  const configured = await examineOffline(dataDir, { TOLLGATE_ADMIN_KEY: CANARIES.adminKey })
  assert.equal(configured.check('admin_key').found, 'from TOLLGATE_ADMIN_KEY')
})

test('a file that is no database is a problem, and what needs it is skipped', async () => {
  const dataDir = ward.healthyCopy()
  overwrite(join(dataDir, 'tollgate.db'), 0, noise(4_096))
  const report = await examineOffline(dataDir)
  assert.equal(report.code, 1)
  assert.equal(report.check('database').state, 'problem')
  assert.match(report.check('database').found, /^it cannot be read: file is not a database/)
  assert.match(report.check('database').todo ?? '', /restore the newest good backup/)
  for (const name of ['admin_key', 'serving', 'integrity']) assert.equal(report.check(name).state, 'skipped')
})

test('damage inside the database is a problem', async () => {
  const dataDir = ward.healthyCopy()
  const file = join(dataDir, 'tollgate.db')
  const pageBytes = 4_096
  const lastPageAt = statSync(file).size - pageBytes
  overwrite(file, lastPageAt, noise(pageBytes))
  const report = await examineOffline(dataDir)
  assert.equal(report.check('integrity').state, 'problem')
  assert.match(report.check('integrity').found, /^tollgate\.db is damaged: /)
  assert.match(report.check('integrity').todo ?? '', /^Stop the gateway, keep a copy/)
})

test('a schema from a newer version is a problem, one from an older a warning, and neither is touched', async () => {
  for (const [version, state, said] of [
    [99, 'problem', /schema version 99, but this Tollgate knows up to \d+: a newer one wrote it$/],
    [1, 'warning', /schema version 1, of an older Tollgate; the next start upgrades it to \d+$/],
  ] as const) {
    const dataDir = ward.healthyCopy()
    changeDatabase(dataDir, `PRAGMA user_version = ${version}`)
    const files = contentsOf(dataDir)
    const report = await examineOffline(dataDir)
    assert.equal(report.check('database').state, state)
    assert.match(report.check('database').found, said)
    assert.deepEqual(contentsOf(dataDir), files)
  }
})

test('calls that a killed gateway left open are told, and stay as they are', async () => {
  const upstream = await ScriptedUpstream.start()
  upstream.answer(() => [{ pause: new Promise(() => {}) }])
  const tollgate = await serveTollgate({
    ...IN_DATA_DIR,
    TOLLGATE_MESSAGES_URL: upstream.url,
    TOLLGATE_ADMIN_KEY: CANARIES.adminKey,
  })
  try {
    const created = await fetch(`${tollgate.url}/v1/keys`, {
      method: 'POST',
      headers: { authorization: `Bearer ${CANARIES.adminKey}` },
      body: '{"name":"x"}',
    })
    const { key } = (await created.json()) as { key: string }
    const arrived = upstream.nextRequest()
    const call = fetch(`${tollgate.url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'anthropic-version': '2023-06-01' },
      body: '{"model":"claude-haiku-5-5","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}',
    }).catch(() => null)
    await arrived
    const alive = await examineOffline(tollgate.dataDir)
    assert.match(alive.check('serving').found, /serves from here now, with 1 call in flight$/)
    assert.equal(alive.check('admin_key').found, "the running gateway's TOLLGATE_ADMIN_KEY")

    tollgate.signal('SIGKILL')
    await tollgate.finished
    await call
    const books = () => contentsOf(tollgate.dataDir)[join(tollgate.dataDir, 'tollgate.db')]
    const before = books()
    for (let time = 0; time < 2; time++) {
      const report = await examineOffline(tollgate.dataDir)
      assert.equal(report.check('serving').state, 'warning')
      assert.match(report.check('serving').found, /and 1 call never ended/)
      assert.match(report.check('serving').todo ?? '', /closes them as interrupted, at no charge/)
      assert.match(report.check('admin_key').found, /came from TOLLGATE_ADMIN_KEY, which is not set here$/)
    }
    assert.equal(books(), before)
  } finally {
    await tollgate.dispose()
    await upstream.close()
  }
})

test('a data directory that does not answer ends the check at its deadline, not the report', async () => {
  const dataDir = ward.healthyCopy()
  const pepper = join(dataDir, 'pepper')
  rmSync(pepper)
  // A process that opens a FIFO to read waits for a writer.
  execFileSync('mkfifo', [pepper])
  try {
    const report = await withDeadline(
      examineWith(dataDir, {}, ['--offline', '--timeout', '1']),
      () => 'the doctor hangs',
      60_000,
    )
    assert.equal(report.check('data_directory').state, 'problem')
    assert.match(report.check('data_directory').found, /no answer from the disk/)
    assert.equal(report.check('prices').state, 'ok')
  } finally {
    // A writer sets free any process that still waits.
    closeSync(openSync(pepper, constants.O_RDWR | constants.O_NONBLOCK))
  }
})

test('a data directory that is a file cannot be used', async () => {
  const dataDir = join(ward.newFolder(), 'data')
  writeFileSync(dataDir, '')
  const report = await examineOffline(dataDir)
  assert.match(report.check('data_directory').found, /data cannot be used: it is not a folder$/)
})
