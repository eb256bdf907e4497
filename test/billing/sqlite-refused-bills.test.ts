import assert from 'node:assert/strict'
import { changeDatabase } from '../support/read-database.ts'
import { test } from '../support/suite.ts'
import { startBillingBench } from './bench-of-one.ts'

test('a call whose settlement the store refuses is closed as interrupted', async () => {
  await using bench = await startBillingBench()
  const { id, key } = await bench.gateway.createKey('refused')
  await changeDatabase(
    bench.gateway,
    `CREATE TRIGGER refusing BEFORE INSERT ON call WHEN NEW.state = 'settled'
       BEGIN SELECT RAISE(ABORT, 'no such bill'); END`,
  )
  const messages = [{ role: 'user', content: 'Hi' }]
  const body = { model: 'claude-haiku-5-5', max_tokens: 64, messages }
  const { requestId } = await bench.call('/v1/messages', body, { key })
  await changeDatabase(bench.gateway, 'DROP TRIGGER refusing')
  const record = await bench.record(requestId)
  assert.deepEqual([record['state'], record['cost_usd']], ['interrupted', 0])
  assert.ok(Number(record['lost_list_cost_usd']) > 0)
  const { month_lost_usd, month_held_usd } = await bench.gateway.manage('GET', `/v1/keys/${id}`)
  assert.deepEqual([month_lost_usd, month_held_usd], [record['lost_list_cost_usd'], 0])
  await bench.assertBalanced()
})
