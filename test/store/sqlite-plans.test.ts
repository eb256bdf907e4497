import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { audit } from '../../src/store/operations/audit.ts'
import { DEFERRED } from '../../src/store/operations/deferred.ts'
import { runOn } from '../../src/store/operations/operation.ts'
import { PRICES } from '../../src/store/operations/prices.ts'
import { render, type Sql } from '../../src/store/operations/sql.ts'
import { sqliteSchema } from '../../src/store/schema.ts'
import { test } from '../support/suite.ts'

const db = new DatabaseSync(':memory:')
db.exec(sqliteSchema('main'))

/** How SQLite finds the rows of a statement. */
function planOf(statement: Sql): string {
  const { text, values } = render(statement, { store: 'sqlite', clock: 'caller' })
  const rows = db.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...(values as bigint[]))
  return rows.map(({ detail }) => String(detail)).join('\n')
}

test('a poll finds the DELETE of an object that upstream lost by its id, however long the log is', async () => {
  const plans: string[] = []
  const name = { surface: 'chat', scope: 'acct_1', objectId: 'resp_1' } as const
  await runOn(async (statement) => {
    plans.push(planOf(statement))
    return []
  }, DEFERRED.reads.wasDeleted(name))
  assert.match(plans.join('\n'), /SEARCH call USING INDEX call_by_object/)
  assert.doesNotMatch(plans.join('\n'), /SCAN call/)
})

test('the surface of a model that passed without a price is that of one call of one key', async () => {
  const plans: string[] = []
  await runOn(async (statement) => {
    plans.push(planOf(statement))
    const isSums = plans.at(-1)?.includes('rollup') === true && plans.length === 2
    return isSums ? [{ model: 'm', calls: '1', day: '2026-11-19' }] : []
  }, PRICES.reads.listUnpricedModels(0))
  assert.match(plans[2] ?? '', /SEARCH call USING INDEX call_by_key/)
})

test('the audit reads all rows once, not once for each sum of a day, model and key', async () => {
  const plans: string[] = []
  await audit(
    async (statement) => {
      plans.push(planOf(statement))
      return plans.length <= 2 ? [{ count: 0n }] : []
    },
    () => null,
  )
  assert.match(plans.join('\n'), /SCAN rollup/)
  assert.doesNotMatch(plans.join('\n'), /SCAN \S+ LEFT-JOIN/)
})
