import assert from 'node:assert/strict'
import { type DatabaseOwner, readDatabase } from '../support/read-database.ts'
import { test } from '../support/suite.ts'
import { startGatedBench } from './gated-bench.ts'
import { nanosOf } from './read-ledger.ts'

/** Upstream uses far more tokens than the request allows: $0.004 a call. */
const TOKENS = 8_000
const COST = 4_000_000
const SMALL = { maxTokens: 20 }

async function holdOf(gateway: DatabaseOwner, requestId: string): Promise<number> {
  const [row] = await readDatabase(gateway, `SELECT hold_nanos FROM call WHERE id = '${requestId}'`)
  return Number(row?.['hold_nanos'])
}

test('a bound that is too small costs one burst: afterwards calls hold what the largest of them cost', async () => {
  await using bench = await startGatedBench({ settings: { budgetWaitMs: 600_000 } })
  const { gateway, upstream, send } = bench
  const { id, key } = await gateway.createKey('capped', { monthly_budget_usd: 0.05 })
  const burst = async (name: string, count: number) =>
    await Promise.all(Array.from({ length: count }, (_, i) => send(`${name} ${i}`, key, SMALL)))

  const first = await burst('first', 5)
  // All are admitted before the first of them is settled.
  const open = []
  while (open.length < 5) open.push(await upstream.next())
  for (const [i, call] of open.entries()) call.finish(i === 3 ? TOKENS : TOKENS / 2)
  const replies = await Promise.all(first.map(({ reply }) => reply))
  for (const { requestId, status } of replies) {
    assert.equal(status, 200)
    assert.ok((await holdOf(gateway, requestId)) < COST / 20)
    assert.equal((await gateway.manage('GET', `/gateway/v1/requests/${requestId}`))['overrun'], true)
  }

  // $0.012 are spent, and calls that hold $0.004 are admitted while less than $0.05 is spent and held.
  const second = await burst('second', 30)
  await bench.storeAnswered()
  const arrived: Awaited<ReturnType<typeof upstream.next>>[] = []
  while (arrived.length < 10) arrived.push(await upstream.next())
  assert.equal(upstream.names.length, 5 + 10)
  assert.equal(nanosOf((await bench.record(id))['month_held_usd']), 10 * COST)
  for (const call of arrived) call.finish(TOKENS)
  const statuses = (await Promise.all(second.map(({ reply }) => reply))).map(({ status }) => status)
  assert.deepEqual(statuses.toSorted(), [...Array(10).fill(200), ...Array(20).fill(402)])
  assert.equal(nanosOf((await bench.record(id))['month_spend_usd']), 52_000_000)
  await bench.assertBalanced()
})
