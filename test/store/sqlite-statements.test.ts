import assert from 'node:assert/strict'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { SYSTEM } from '../../src/kernel/actor.ts'
import { applyBatch, type CallCommand } from '../../src/store/operations/apply-batch.ts'
import { type BatchContext, createBatchCache } from '../../src/store/operations/batch-rows.ts'
import {
  migrateSqlite,
  runBatchOnSqlite,
  sqliteOperations,
  statementRunner,
} from '../../src/store/sqlite/database.ts'
import { BRIEF } from '../../src/store/store.ts'
import { test } from '../support/suite.ts'
import { closing, newKey, opening } from './conformance/fixtures.ts'

class CountingDatabase extends DatabaseSync {
  statements = 0

  override prepare(text: string): StatementSync {
    const statement = super.prepare(text)
    const all = statement.all.bind(statement)
    statement.all = ((...values: never[]) => {
      this.statements += 1
      return all(...values)
    }) as StatementSync['all']
    return statement
  }
}

const CALLS = 8

/** Statements of a batch of 8 admissions and 8 settlements, the rows of whose keys are known. */
function statementsOf(keys: number): number {
  const db = new CountingDatabase(':memory:', { readBigInts: true })
  migrateSqlite(db)
  const run = statementRunner(db)
  const { createKey } = sqliteOperations(run, BRIEF)
  for (let key = 0; key < keys; key++) createKey(newKey(`k${key}`), null, SYSTEM)
  const context: BatchContext = { node: null, clock: 'caller', cache: createBatchCache(true) }
  let open: CallCommand[] = []
  for (let batch = 0; batch < 3; batch++) {
    const ids = Array.from({ length: CALLS }, (_, n) => `req_${batch}_${n}`)
    const admissions = ids.map((id, n): CallCommand => ['admit', opening(id, `k${n % keys}`)])
    db.statements = 0
    runBatchOnSqlite(applyBatch([...open, ...admissions], context), run)
    open = ids.map((id, n) => {
      const owner = { accountId: 'default', budgetId: `bud_k${n % keys}` }
      return ['settle', closing(id, { owner })]
    })
  }
  db.close()
  return db.statements
}

test('a call takes at most 2.5 statements if all calls are of one key, and 4.25 if each is of another', () => {
  assert.ok(statementsOf(1) / CALLS <= 2.5)
  assert.ok(statementsOf(CALLS) / CALLS <= 4.25)
})
