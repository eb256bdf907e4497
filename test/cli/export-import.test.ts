import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import {
  copyFileSync,
  createWriteStream,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Environment } from '../../src/config/read-config.ts'
import { runCommand } from '../support/command-thread.ts'
import { createEmptyDatabase, openPatientPool, stopPostgres, type TestDatabase } from '../support/postgres.ts'
import { after, before, test } from '../support/suite.ts'
import { serveTollgate, startCommand } from '../support/tollgate-process.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-export-'))
const file = join(folder, 'export.ndjson')
const source = join(folder, 'source')
let database: TestDatabase

/** A SQLite installation with keys, calls, a refused call, logged bodies, credit and a webhook, exported once. */
before(async () => {
  database = await createEmptyDatabase()
  await using serving = await serveTollgate({ TOLLGATE_DATA_DIR: source, TOLLGATE_DATABASE_URL: '' })
  const adminKey = readFileSync(join(source, 'admin-key'), 'utf8').trim()
  const send = async (path: string, key: string, body: unknown) => {
    const response = await fetch(serving.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return (await response.json()) as Record<string, string>
  }
  const logged = await send('/v1/keys', adminKey, {
    name: 'ü',
    log_requests: true,
    metadata: { team: 'a', b: '1', ä: 'x' },
  })
  const poor = await send('/v1/keys', adminKey, { name: 'poor', monthly_budget_usd: 0 })
  await send('/gateway/v1/credits', adminKey, { amount_usd: 9_000_000.5, reason: 'start' })
  await send('/gateway/v1/webhooks', adminKey, { url: 'https://example.com/hook', events: ['balance.low'] })
  const hello = { model: 'gpt-6-luna', messages: [{ role: 'user', content: 'Hello' }] }
  for (let i = 0; i < 5; i++) await send('/v1/chat/completions', String(logged['key']), hello)
  await send('/v1/chat/completions', String(poor['key']), hello)
  await send('/v1/chat/completions', String(logged['key']), { ...hello, model: 'a\u0000b\u0001c' })
  const while_serving = await runCommand(['export', file], { TOLLGATE_DATA_DIR: source })
  assert.equal(while_serving.code, 1)
  assert.match(while_serving.stderr, /A running gateway uses .* Stop it first/)
  serving.signal('SIGTERM')
  await serving.finished
  await done(['export', file], { TOLLGATE_DATA_DIR: source })
  const again = await runCommand(['export', file], { TOLLGATE_DATA_DIR: source })
  assert.deepEqual(
    [again.code, again.stderr],
    [1, `tollgate: ${file} cannot be created: it already exists. Name a new file.\n`],
  )
})
after(async () => {
  await database.drop()
  await stopPostgres()
  rmSync(folder, { recursive: true })
})

async function done(args: readonly string[], environment: Environment): Promise<string> {
  const { code, stdout, stderr } = await runCommand(args, environment)
  assert.equal(code, 0, stderr)
  return stdout
}

function newDir(name: string): string {
  const dir = join(folder, name)
  mkdirSync(dir, { mode: 0o700 })
  copyFileSync(join(source, 'pepper'), join(dir, 'pepper'))
  return dir
}

const linesOf = (path: string) => readFileSync(path, 'utf8').split('\n')

async function rowsIn(url: string, table: string): Promise<unknown> {
  const pool = openPatientPool(url)
  try {
    return await pool.query(`SELECT 1 FROM ${table}`)
  } finally {
    await pool.close()
  }
}

const COMPLETE = /^Imported \d+ rows into .*\. Now run `tollgate audit`/

test('an export from SQLite to PostgreSQL preserves every row of every table', async () => {
  const inPostgres = { TOLLGATE_DATA_DIR: newDir('postgres'), TOLLGATE_DATABASE_URL: database.url }
  assert.match(await done(['import', file], inPostgres), COMPLETE)
  assert.match(await done(['audit'], inPostgres), /^No difference in 6 calls and 1 credit/)
  const second = join(folder, 'second.ndjson')
  const exported = JSON.parse(await done(['export', second, '--json'], inPostgres))
  assert.deepEqual(exported, { object: 'export', file: second, rows: exported.rows })
  assert.ok(exported.rows > 10)
  assert.deepEqual(linesOf(second), linesOf(file))

  // The gateway runs on the imported data: the admin key of the source is accepted.
  copyFileSync(join(source, 'admin-key'), join(inPostgres.TOLLGATE_DATA_DIR, 'admin-key'))
  const serving = await serveTollgate(inPostgres)
  const adminKey = readFileSync(join(source, 'admin-key'), 'utf8').trim()
  const keys = await fetch(`${serving.url}/v1/keys`, { headers: { authorization: `Bearer ${adminKey}` } })
  assert.equal(((await keys.json()) as { data: unknown[] }).data.length, 2)
  serving.signal('SIGTERM')
  await serving.finished
  await serving.dispose()

  const again = await runCommand(['import', file], inPostgres)
  assert.equal(again.code, 1)
  assert.match(again.stderr, /The database is not empty/)
  assert.doesNotMatch(again.stderr, /cannot be opened/)
})

test('an import that is killed leaves an empty database', async () => {
  const target = await createEmptyDatabase()
  const environment: Environment = {
    TOLLGATE_DATA_DIR: newDir('killed'),
    TOLLGATE_DATABASE_URL: target.url,
  }
  try {
    // The import reads a pipe: it is half done once it has read all but the end of the file.
    const pipe = join(folder, 'pipe')
    execFileSync('mkfifo', [pipe])
    const lines = readFileSync(file, 'utf8').trimEnd().split('\n')
    const isCall = lines.findIndex((line) => line.startsWith('{"table":"call"'))
    const row = lines[isCall + 1] ?? ''
    const command = startCommand(['import', pipe], environment)
    const writer = createWriteStream(pipe)
    writer.write(`${lines.slice(0, isCall + 1).join('\n')}\n`)
    for (let i = 0; i < 3_000; i++) writer.write(`${row.replace(/"req_[^"]*"/, `"req_${i}"`)}\n`)
    if (writer.writableNeedDrain) await once(writer, 'drain')
    command.signal('SIGKILL')
    writer.on('error', () => {}).destroy()
    await command.finished
    for (const table of ['call', 'api_key', 'setting']) assert.deepEqual(await rowsIn(target.url, table), [])
    await done(['import', file], environment)
    assert.match(await done(['audit'], environment), /^No difference/)
  } finally {
    await target.drop()
  }
})

test('a truncated, damaged or missing file, one of another pepper, or an import into SQLite is refused, and nothing is imported', async () => {
  const target = await createEmptyDatabase()
  const dir = newDir('refused')
  const refused = async (path: string, reason: RegExp, url = target.url) => {
    const { code, stderr } = await runCommand(['import', path], {
      TOLLGATE_DATA_DIR: dir,
      TOLLGATE_DATABASE_URL: url,
    })
    assert.equal(code, 1)
    assert.match(stderr, reason)
  }
  const bad = join(folder, 'bad.ndjson')
  try {
    await refused(file, /An import fills an empty PostgreSQL database\. Name it/, '')
    copyFileSync(file, bad)
    truncateSync(bad, readFileSync(bad).length - 20)
    await refused(bad, /The export is incomplete/)
    writeFileSync(bad, '{"hello":1}\n')
    await refused(bad, /first line is not the head of an export/)
    for (const table of ['call', 'api_key']) assert.deepEqual(await rowsIn(target.url, table), [])
    writeFileSync(join(dir, 'pepper'), 'another pepper than that of the source\n')
    await refused(file, /another pepper/)
    rmSync(join(dir, 'pepper'))
    await refused(file, /There is no pepper in .* Copy the file "pepper"/)
  } finally {
    await target.drop()
  }
})
