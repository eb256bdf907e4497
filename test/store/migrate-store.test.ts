import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, test } from 'node:test'
import type { RefusedCall } from '../../src/ledger/request-log.ts'
import {
  type Begun,
  beginMove,
  compareBooks,
  finishMove,
  moveRows,
  openTarget,
  type Target,
} from '../../src/store/migrate-store/move-books.ts'
import { MOVED_TABLES } from '../../src/store/migrate-store/moved-tables.ts'
import { openSource, readSeal, type Source } from '../../src/store/migrate-store/source.ts'
import { billed, DataDir, fillBooks, rated, withStore } from '../ledger/books.ts'
import { createDatabase, stopPostgres } from '../support/postgres.ts'
import { digestOf, NOON } from './conformance/fixtures.ts'
import { type OpenDatabase, openByCallersClock, openTestDatabase } from './postgres-under-test.ts'

after(stopPostgres)

const nothing = () => {}

interface Move {
  readonly source: Source
  readonly target: Target
  readonly begun: Begun
  close(): Promise<void>
}

/** A run of the command up to the point at which it copies rows. */
async function begin(dir: DataDir, url: string): Promise<Move> {
  const target = await openTarget(url)
  const source = openSource(dir.path)
  const close = async () => {
    source.close()
    await target.close()
  }
  try {
    return { source, target, begun: await beginMove(source, target, 1_000, null), close }
  } catch (error) {
    await close()
    throw error
  }
}

const BODY = { compressed: Buffer.alloc(100, 1), contentType: null, lengthBytes: 100, truncated: false }

const refused = (requestId: string): RefusedCall => ({
  ...{ requestId, digest: digestOf('a'), startedAtMs: 5, endedAtMs: 6, method: 'POST', path: '/v1/messages' },
  ...{ surface: 'messages', modelAsked: null, status: 402, code: 'budget_exceeded', clientIp: '::1' },
  ...{ userAgent: '\0\t', socketId: 'req_socket' },
})

/** Books without an open call, and an empty database. */
async function withBooks(work: (dir: DataDir, database: OpenDatabase) => Promise<void>): Promise<void> {
  const dir = new DataDir()
  const database = await openTestDatabase()
  try {
    await fillBooks(dir)
    await withStore(dir, async (store) => {
      await store.admit(rated('req_11', 'a', { socketId: 'req_11', hold: { kind: 'none' } }))
      await store.admit(rated('req_12', 'a', { socketId: 'req_11' }))
      await store.interruptOpenCalls(Date.UTC(2026, 10, 15, 13))
      await store.keepRefused([refused('req_refused_1'), refused('req_refused_2')])
      await store.keepBodies({ requestId: 'req_1', atMs: 5, request: BODY, response: null })
    })
    await work(dir, database)
  } finally {
    await database.close()
    await dir.remove()
  }
}

/** Every row of every table is the same in both stores. */
async function assertSame(dir: DataDir, { rows }: OpenDatabase): Promise<void> {
  for (const { name, where, source } of MOVED_TABLES) {
    if (source !== name) continue
    const kept = await dir.rows(`SELECT * FROM ${name} WHERE ${where}`)
    const from = name === 'api_key' ? await withLastUse(dir, kept) : kept
    const to = (await rows(name)).map(({ node_id, name_upper, ...row }) => row)
    const sorted = (all: readonly Record<string, unknown>[]) =>
      all.map((row) => JSON.stringify(Object.entries(row).map(plain).sort())).sort()
    const moved = name === 'setting' ? to.filter((row) => row['name'] !== 'store_move') : to
    assert.deepEqual(sorted(moved), sorted(from), name)
  }
}

/** SQLite does not write the last use of a key into its row, since the calls tell it; PostgreSQL does. */
async function withLastUse(dir: DataDir, keys: readonly Record<string, unknown>[]) {
  const calls = await dir.rows('SELECT key_id, max(started_at_ms) AS at FROM call GROUP BY key_id')
  return keys.map((key) => {
    const used = [key['last_used_at_ms'], calls.find((call) => call['key_id'] === key['id'])?.['at']]
    const known = used.filter((at) => at !== null && at !== undefined).map(Number)
    return { ...key, last_used_at_ms: known.length === 0 ? null : BigInt(Math.max(...known)) }
  })
}

function plain([column, value]: [string, unknown]): [string, unknown] {
  if (typeof value === 'bigint') return [column, String(value)]
  return [column, value instanceof Uint8Array ? [...value] : value]
}

test('a move that ends anywhere before its end leaves nothing, and one that is started again brings every row once', async () => {
  await withBooks(async (dir, database) => {
    class Killed extends Error {}
    for (const last of MOVED_TABLES) {
      const { source, target, begun, close } = await begin(dir, database.url)
      assert.equal(begun.beginning, 'new')
      const onRows = (table: unknown, done: number, total: number) => {
        if (table === last && done === total) throw new Killed()
      }
      const isKilled = (error: Error) => error.cause instanceof Killed
      await assert.rejects(moveRows(source, target, onRows), isKilled)
      await close()
      for (const { name } of MOVED_TABLES) {
        const own = name === 'account' || name === 'setting' ? 1 : 0
        assert.equal((await database.rows(name)).length, own, `${name} after ${last.name}`)
      }
    }
    const { source, target, close } = await begin(dir, database.url)
    await moveRows(source, target, nothing)
    assert.equal(await compareBooks(source, target, nothing), null)
    await close()
    await assertSame(dir, database)
  })
})

test('what is kept beside the rows is right after a move, and after one that began again', async () => {
  await withBooks(async (dir, database) => {
    const totals = async () => [
      ...(await database.rows('refused_total')).map(({ calls }) => calls),
      ...(await database.rows('body_total')).map(({ bytes }) => bytes),
    ]
    const first = await begin(dir, database.url)
    await moveRows(first.source, first.target, nothing)
    await first.close()
    assert.deepEqual(await totals(), [2n, 100n + 256n])

    await withStore(dir, (store) => store.keepRefused([refused('req_refused_3')]))
    const again = await begin(dir, database.url)
    assert.equal(again.begun.beginning, 'new')
    await moveRows(again.source, again.target, nothing)
    assert.equal(await compareBooks(again.source, again.target, () => {}), null)
    await again.close()
    assert.deepEqual(await totals(), [3n, 100n + 256n])
    await assertSame(dir, database)
  })
})

test('a database that dies in the middle keeps nothing of it, and the next run brings all of it', async () => {
  await withBooks(async (dir, database) => {
    await database.query(`CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END $$`)
    await database.query(`CREATE TRIGGER die BEFORE INSERT ON rollup FOR EACH ROW EXECUTE FUNCTION die()`)
    const first = await begin(dir, database.url)
    await assert.rejects(moveRows(first.source, first.target, nothing), /terminat/)
    await first.close()
    assert.deepEqual(await database.rows('price_version'), [])

    await database.query('DROP TRIGGER die ON rollup')
    const { source, target, close } = await begin(dir, database.url)
    await moveRows(source, target, nothing)
    assert.equal(await compareBooks(source, target, () => {}), null)
    await close()
    await assertSame(dir, database)
  })
})

test('a row that cannot be read, or that PostgreSQL does not take, fails the move and leaves nothing', async () => {
  await withBooks(async (dir, database) => {
    await dir.tamper(`UPDATE api_key SET allowed_models = '{"' WHERE id = 'key_b'`)
    const unreadable = await begin(dir, database.url)
    await assert.rejects(moveRows(unreadable.source, unreadable.target, nothing), /JSON/)
    await unreadable.close()
    assert.deepEqual(await database.rows('api_key'), [])

    await dir.tamper(
      `UPDATE api_key SET allowed_models = NULL; UPDATE call SET status = 3000000000 WHERE id = 'req_09'`,
    )
    const refused = await begin(dir, database.url)
    await assert.rejects(moveRows(refused.source, refused.target, nothing), /out of range/)
    await refused.close()
    assert.deepEqual(await database.rows('call'), [])
    assert.deepEqual(await database.rows('api_key'), [])
  })
})

test('of two moves into one database at once, one waits for the other, and every row is there once', async () => {
  await withBooks(async (dir, database) => {
    const { source, target, close } = await begin(dir, database.url)
    const other = await openTarget(database.url)
    await Promise.all([target, other].map((each) => moveRows(source, each, nothing)))
    assert.equal(await compareBooks(source, target, nothing), null)
    await Promise.all([close(), other.close()])
    await assertSame(dir, database)
  })
})

test('a sum that differs on one side is named, and so is a hold that no call has', async () => {
  await withBooks(async (dir, database) => {
    const { source, target, close } = await begin(dir, database.url)
    await moveRows(source, target, nothing)
    const compare = () => compareBooks(source, target, () => {})
    await database.query("UPDATE call SET cost_nanos = cost_nanos + 1 WHERE id = 'req_01'")
    assert.match(
      (await compare()) ?? '',
      /^the sum of cost_nanos of calls is \d+ in SQLite and \d+ in PostgreSQL$/,
    )
    await database.query("DELETE FROM credit WHERE id = 'crd_1'")
    assert.match((await compare()) ?? '', /^the number of credits is 1 in SQLite and 0 in PostgreSQL$/)
    await close()

    await database.query('UPDATE account SET held_nanos = 7')
    await dir.tamper('UPDATE account SET held_nanos = 7')
    const held = openSource(dir.path)
    const after = await openTarget(database.url)
    assert.match((await compareBooks(held, after, () => {})) ?? '', /^accounts have 7 nanodollars held/)
    held.close()
    await after.close()
  })
})

test('a deferred call is moved with its hold, and settled from the database', async () => {
  await withBooks(async (dir, database) => {
    await withStore(dir, async (store) => {
      await store.admit(rated('req_13', 'a', { surface: 'chat' }))
      await store.deferCall({
        ...{ requestId: 'req_13', surface: 'chat', objectId: 'resp_1', kind: 'response' },
        ...{ path: '/v1/responses/resp_1', dueInMs: 2_000, atMs: NOON, status: 200, streamed: false },
        ...{ upstreamMs: 90, overheadMs: 2, upstreamRequestId: null, bytesIn: 10, bytesOut: 20 },
      })
    })
    const { source, target, close } = await begin(dir, database.url)
    await moveRows(source, target, nothing)
    assert.equal(await compareBooks(source, target, nothing), null)
    await close()
    await assertSame(dir, database)
    assert.deepEqual(
      (await database.query("SELECT node_id FROM call WHERE state = 'in_flight'")).map(
        (row) => row['node_id'],
      ),
      [''],
    )
    const moved = await openByCallersClock(database.url)
    try {
      assert.equal(await moved.interruptOpenCalls(NOON + 1_000), 0)
      assert.equal((await moved.settle(billed('req_13', 2))).booked, true)
      assert.equal(await moved.sumHeld(), 0n)
    } finally {
      await moved.close()
    }
  })
})

test('no command can change the books while they are moved', async () => {
  await withBooks(async (dir) => {
    const source = openSource(dir.path)
    const command = new DatabaseSync(join(dir.path, 'tollgate.db'), { timeout: 0 })
    const write = () => command.exec("INSERT INTO price_version VALUES ('v9', '{}')")
    assert.throws(write, /locked/)
    source.seal({ database: 'postgres://x', atMs: 1 })
    write()
    command.close()
    source.close()
    assert.deepEqual(readSeal(dir.path), { database: 'postgres://x', atMs: 1 })
  })
})

test('what is left to do of a move depends on the word in both stores', async () => {
  await withBooks(async (dir, database) => {
    const source = openSource(dir.path)
    const target = await openTarget(database.url)
    const seal = { database: 'postgres://x', atMs: 1 }
    await assert.rejects(beginMove(source, target, 1, seal), /were moved to postgres:/)
    const { beginning, state } = await beginMove(source, target, 1, null)
    assert.equal(beginning, 'new')
    assert.equal((await beginMove(source, target, 2, null)).beginning, 'new')
    assert.equal((await beginMove(source, target, 2, seal)).beginning, 'copied')
    await finishMove(target, state, 3)
    assert.equal((await beginMove(source, target, 4, seal)).beginning, 'finished_before')
    await assert.rejects(beginMove(source, target, 4, null), /taken into use again since/)
    source.close()
    await target.close()
  })
})

test('a database with books, of another installation or of a newer version is left alone', async () => {
  await withBooks(async (dir, database) => {
    const refused = (url: string, why: RegExp) => assert.rejects(begin(dir, url), why)
    for (const [statement, what] of [
      ["INSERT INTO price_version VALUES ('v1', '{}')", 'price versions'],
      ["INSERT INTO setting VALUES ('pepper', 'another')", 'price versions, settings'],
      ['UPDATE account SET credit_enforced = true', 'accounts, price versions, settings'],
    ] as const) {
      await database.query(statement)
      await refused(database.url, new RegExp(`has books of its own already \\(${what}\\)`))
    }

    const others = await createDatabase()
    const foreign = openSource(dir.path)
    const target = await openTarget(others.url)
    await beginMove({ ...foreign, installation: 'another' }, target, 1, null)
    foreign.close()
    await target.close()
    await refused(others.url, /books of another installation/)
    await others.drop()

    await database.query('UPDATE schema_version SET version = 99')
    await refused(database.url, /schema version 99/)
  })
})
