import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import pg from 'pg'
import { runInThread } from '../support/command-thread.ts'
import { createDatabase, createEmptyDatabase, runOn, stopPostgres } from '../support/postgres.ts'
import type { Finished } from '../support/tollgate-process.ts'

/** Commands on a PostgreSQL that they cannot use, whatever the store of this run is. */

const folder = mkdtempSync(join(tmpdir(), 'tollgate-postgres-books-'))
after(() => rmSync(folder, { recursive: true }))
after(stopPostgres)

const PASSWORD = 'canary-password-0123456789'

/** A command that reads the books itself, one that writes to them, one that asks the store, one that opens the store. */
const COMMANDS = [
  ['audit'],
  ['rerate', '--from', '2026-01-01'],
  ['keys', 'list'],
  ['admin-key', 'create'],
] as const

/** Runs each command in a folder of its own. */
function runAll(url: string): Promise<readonly Finished[]> {
  return Promise.all(
    COMMANDS.map((args) =>
      runInThread(args, {
        TOLLGATE_DATABASE_URL: url,
        TOLLGATE_DATA_DIR: join(folder, args[0]),
      }),
    ),
  )
}

async function rowsOf(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client(url)
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

function assertOneLine({ code, stdout, stderr }: Finished, said: RegExp): void {
  assert.equal(code, 1, stderr)
  assert.equal(stdout, '')
  assert.match(stderr, /^tollgate [\w -]+: .+\n$/, 'one line')
  assert.match(stderr, said)
  assert.match(stderr, /\. TOLLGATE_DATABASE_URL says where they are\.\n$/)
  assert.ok(!stderr.includes(PASSWORD), stderr)
}

test('a database that does not answer is named, without its password', async () => {
  for (const each of await runAll(`postgres://someone:${PASSWORD}@localhost:1/books?application_name=x`)) {
    assertOneLine(
      each,
      /The books in postgres:\/\/localhost:1\/books cannot be opened: no connection to the database: .*ECONNREFUSED/,
    )
  }
})

test('a wrong password is told, and not which', async () => {
  const database = await createDatabase()
  const url = new URL(database.url)
  url.password = PASSWORD
  for (const each of await runAll(url.href)) assertOneLine(each, /password authentication failed for user/)
  await database.drop()
})

test('books of a newer version are left alone', async () => {
  const database = await createDatabase()
  await runOn(database.url, 'UPDATE schema_version SET version = 99')
  for (const each of await runAll(database.url))
    assertOneLine(each, /schema version 99, this Tollgate knows up to \d+\. .* made before the upgrade\. /)
  assert.deepEqual(await rowsOf(database.url, 'SELECT version FROM schema_version'), [{ version: 99 }])
  await database.drop()
})

test('a database without books gets none from a command, nor does the folder beside it', async () => {
  const database = await createEmptyDatabase()
  for (const { code, stderr } of await runAll(database.url)) {
    assert.equal(code, 2)
    assert.match(
      stderr,
      /TOLLGATE_DATABASE_URL: there are no books in postgres:\/\/127\.0\.0\.1:\d+\/test_\w+/,
    )
  }
  assert.deepEqual(await rowsOf(database.url, "SELECT 1 FROM pg_class WHERE relname = 'account'"), [])
  for (const [name] of COMMANDS) assert.equal(existsSync(join(folder, name)), false)
  await database.drop()
})

test('a command is no node, and gives up none of those that serve', async () => {
  const database = await createDatabase()
  await runOn(
    database.url,
    `INSERT INTO node (id, name, started_at_ms, seen_at_ms) VALUES ('node_1', 'command line', 0, 0)`,
  )
  const environment = { TOLLGATE_DATABASE_URL: database.url, TOLLGATE_DATA_DIR: join(folder, 'own') }
  for (const args of [
    ['admin-key', 'create'],
    ['keys', 'create', '--name', 'x'],
    ['credits', 'add', '5', '--reason', 'x'],
    ['keys', 'list'],
    ['usage'],
    ['requests'],
    ['audit'],
  ]) {
    const { code, stderr } = await runInThread(args, environment)
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`)
  }
  assert.deepEqual(await rowsOf(database.url, 'SELECT id, fenced_at_ms FROM node'), [
    { id: 'node_1', fenced_at_ms: null },
  ])
  await database.drop()
})
