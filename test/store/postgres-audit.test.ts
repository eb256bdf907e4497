import assert from 'node:assert/strict'
import { systemClock } from '../../src/kernel/clock.ts'
import { audit } from '../../src/store/operations/audit.ts'
import { sql } from '../../src/store/operations/sql.ts'
import { askAtLength, openRerateWriter, openSnapshot } from '../../src/store/postgres/ledger.ts'
import { PostgresLedger } from '../ledger/postgres-ledger.ts'
import { fillLedger, rateAgain } from '../ledger/test-ledger.ts'
import { startPickyPooler } from '../support/picky-pooler.ts'
import { createEmptyDatabase, openPatientPool, runOn, stopPostgres } from '../support/postgres.ts'
import { after, test } from '../support/suite.ts'

after(stopPostgres)

test('a snapshot has no deadline, through a pooler too, and cannot write', async () => {
  const ledger = await PostgresLedger.create()
  const { url } = ledger
  await fillLedger(ledger)
  await runOn(url, `ALTER DATABASE ${new URL(url).pathname.slice(1)} SET statement_timeout = '5s'`)
  const pooler = await startPickyPooler(url)
  try {
    const snapshot = await openSnapshot(pooler.url)
    assert.ok(snapshot)
    const [row] = await snapshot.ask(sql`SELECT current_setting('statement_timeout') AS value`)
    assert.equal(row?.['value'], '0')
    assert.equal((await audit(snapshot.ask, rateAgain)).difference, null)
    await assert.rejects(snapshot.ask(sql`UPDATE account SET held_nanos = 0`), /read-only transaction/)
    await snapshot.close()
    const db = openPatientPool(url)
    const [asked] = await askAtLength(db, sql`SELECT current_setting('statement_timeout') AS value`)
    await db.close()
    assert.equal(asked?.['value'], '0')
  } finally {
    await pooler.close()
    await ledger.remove()
  }
})

test('a database without our tables has no snapshot', async () => {
  const database = await createEmptyDatabase()
  assert.equal(await openSnapshot(database.url), null)
  assert.equal(await openRerateWriter(database.url, systemClock), null)
  await database.drop()
})
