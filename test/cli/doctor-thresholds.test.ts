import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { showCheck, showSummary } from '../../src/cli/doctor.ts'
import { terminalStyle } from '../../src/cli/terminal.ts'
import { askExaminer } from '../../src/doctor/ask-examiner.ts'
import { type DoctorContext, verdicts } from '../../src/doctor/check.ts'
import { checkOpenFiles, checkRuntime, checkSpace, checkSpeed } from '../../src/doctor/check-machine.ts'
import { checkDatabase, checkIntegrity } from '../../src/doctor/check-store.ts'
import { checkSurfaces, readSettings } from '../../src/doctor/configuration.ts'
import type { DatabaseFacts } from '../../src/doctor/examiner.ts'

const MB = 1_000_000
const GB = 1_000 * MB

test('little space warns, next to none is a problem, and a share of a large disk is enough', () => {
  for (const [freeBytes, totalBytes, state] of [
    [99 * MB, 10 * GB, 'problem'],
    [101 * MB, 1 * GB, 'warning'],
    [1.1 * GB, 10 * GB, 'ok'],
    [1.1 * GB, 200 * GB, 'problem'],
    [4 * GB, 100 * GB, 'warning'],
    [6 * GB, 100 * GB, 'ok'],
    [25 * GB, 10_000 * GB, 'ok'],
    [0, 0, 'problem'],
  ] as const)
    assert.equal(checkSpace({ freeBytes, totalBytes }).state, state, `${freeBytes} of ${totalBytes}`)
})

test('what a doctor that was killed has left in the data directory is no problem of the disk', async (t) => {
  const dataDir = await mkdtemp(join(tmpdir(), 'tollgate-doctor-'))
  t.after(() => rm(dataDir, { recursive: true }))
  await writeFile(join(dataDir, `.doctor-${process.pid}.tmp`), '')
  const deadlines = { checkMs: 60_000, integrityMs: 60_000 }
  const { facts } = await askExaminer(dataDir, 'books-elsewhere', { deadlines } as DoctorContext)
  assert.ok('medianMs' in (facts.disk?.fsync ?? {}), JSON.stringify(facts.disk))
})

test('a disk that takes more than 20 ms for a write warns, one that takes none is a problem', () => {
  assert.equal(checkSpeed({ medianMs: 20, count: 20 }).state, 'ok')
  assert.equal(checkSpeed({ medianMs: 20.1, count: 20 }).state, 'warning')
  assert.equal(checkSpeed({ reason: 'ENOSPC' }).state, 'problem')
  assert.equal(checkSpeed(null).state, 'skipped')
})

test('few open files warn', () => {
  const limits = (soft: string) =>
    `Limit  Soft  Hard  Units\nMax open files            ${soft}   8192  files\n`
  assert.equal(checkOpenFiles(limits('4095')).state, 'warning')
  assert.match(checkOpenFiles(limits('1024')).found, /only 1024 .* some 512 calls at a time/)
  assert.equal(checkOpenFiles(limits('4096')).state, 'ok')
  assert.equal(checkOpenFiles(limits('unlimited')).state, 'ok')
  assert.equal(checkOpenFiles(null).state, 'skipped')
})

test('an old Node.js is a problem, and so is the insecure parser on the command line', () => {
  const of = (version: string, ...execArgv: string[]) => checkRuntime({ version, execArgv, environment: {} })
  assert.equal(of('22.18.0').state, 'problem')
  assert.equal(of('24.0.0').state, 'ok')
  assert.equal(of('26.1.0', '--no-warnings').state, 'ok')
  assert.equal(of('26.1.0', '--insecure-http-parser').state, 'problem')
})

test('a key that would cross a network in clear is told', () => {
  const surfaces = (url: string) =>
    checkSurfaces(readSettings({ TOLLGATE_CHAT_URL: url, TOLLGATE_CHAT_KEY: 'k' }, '/nonexistent')).state
  assert.equal(surfaces('http://models.example/v1'), 'warning')
  for (const url of [
    'https://models.example/v1',
    'http://127.0.0.1:1/v1',
    'http://[::1]:1',
    'http://localhost',
  ])
    assert.equal(surfaces(url), 'ok', url)
})

const database: Extract<DatabaseFacts, { kind: 'open' }> = {
  kind: 'open',
  bytes: 3 * GB,
  walBytes: 4 * MB,
  bodiesBytes: 0,
  schemaVersion: 4,
  schemaVersionKnown: 4,
  serving: false,
  contents: null,
}

test('a write-ahead log that has grown large warns', () => {
  assert.equal(checkDatabase(database).state, 'ok')
  const check = checkDatabase({ ...database, walBytes: 257 * MB })
  assert.equal(check.state, 'warning')
  assert.match(check.found, /write-ahead log 257 MB/)
})

test('a database too large for the deadline warns and says how to give it more time', () => {
  const late = checkIntegrity(database, undefined, 'late', 60_000)
  assert.equal(late.state, 'warning')
  assert.equal(late.found, '3.0 GB could not be checked within 60 s')
  assert.match(late.todo ?? '', /--timeout 600/)
  assert.equal(checkIntegrity(database, undefined, 'failed', 60_000).state, 'problem')
})

test('a terminal gets marks and colours, and no colours where they are not wanted', () => {
  const terminal = { isTTY: true, columns: 80 }
  const check = verdicts('disk_space').problem('full', 'Make room.')
  assert.equal(
    showCheck(check, terminalStyle(terminal, {}, false)),
    `\x1b[31m✗ \x1b[39mdisk space         full\n${' '.repeat(21)}→ Make room.\n`,
  )
  const plain = `✗ disk space         full\n${' '.repeat(21)}→ Make room.\n`
  assert.equal(showCheck(check, terminalStyle(terminal, {}, true)), plain)
  assert.equal(showCheck(check, terminalStyle(terminal, { NO_COLOR: '1' }, false)), plain)
  assert.equal(
    showCheck(check, terminalStyle({}, {}, false)),
    `problem  disk space         full\n${' '.repeat(28)}to do: Make room.\n`,
  )
})

test('the summary counts problems before warnings', () => {
  const look = terminalStyle({}, {}, false)
  const { ok, warning, problem } = verdicts('clock')
  const [bad, odd, good] = [problem('a', 'b'), warning('a', 'b'), ok('a')]
  assert.equal(showSummary([good], look), '\nNothing to mend.\n')
  assert.equal(showSummary([odd, bad, good, odd], look), '\n1 problem, 2 warnings.\n')
})
