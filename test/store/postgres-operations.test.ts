import assert from 'node:assert/strict'
import { StoreRefused } from '../../src/kernel/errors.ts'
import { atomic, type Operation } from '../../src/store/operations/operation.ts'
import { sql } from '../../src/store/operations/sql.ts'
import { operationsOn } from '../../src/store/postgres/run-operation.ts'
import { present, text } from '../../src/store/rows.ts'
import { createDatabase, openPatientPool, stopPostgres } from '../support/postgres.ts'
import { after, test } from '../support/suite.ts'

after(stopPostgres)

const WRITTEN = sql`INSERT INTO setting (name, value) VALUES ('a', 'b')`

function* writeAndFail(): Operation<void> {
  yield WRITTEN
  throw new Error('after it was written')
}

function* idleLimit(): Operation<string> {
  const [row] = yield sql`SELECT current_setting('idle_in_transaction_session_timeout') AS value`
  return text(present(row), 'value')
}

const operations = {
  writeAndFail: atomic(function* () {
    yield* writeAndFail()
  }),
  writeAndFailInParts: writeAndFail,
  idleLimit: atomic(function* () {
    return yield* idleLimit()
  }),
  idleLimitAlone: idleLimit,
  readAll: function* (): Operation<number> {
    return (yield sql`SELECT 1 FROM setting WHERE name = 'a'`).length
  },
}

test('an atomic operation is done whole or not at all, and keeps no lock while its node is paused', async () => {
  const database = await createDatabase()
  const db = openPatientPool(database.url)
  const { writeAndFail, writeAndFailInParts, idleLimit, idleLimitAlone, readAll } = operationsOn(
    db,
    operations,
    'database',
  )
  try {
    await assert.rejects(writeAndFail(), StoreRefused)
    assert.equal(await readAll(), 0)
    await assert.rejects(writeAndFailInParts(), /after it was written/)
    assert.equal(await readAll(), 1)
    assert.equal(await idleLimit(), '2s')
    assert.equal(await idleLimitAlone(), '0')
  } finally {
    await db.close()
    await database.drop()
  }
})
