import assert from 'node:assert/strict'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import { startGatedBench } from './gated-bench.ts'

const bench = await startGatedBench()
const { gateway, upstream } = bench
closeAfter(bench)
afterEach(() => bench.assertBalanced())

/** A cap below the hold of any call; equal to the cost of 200 output tokens. */
const CAP_USD = 0.0001

const edit = (id: string, monthly_budget_usd: number | null) =>
  gateway.manage('PATCH', `/v1/keys/${id}`, { monthly_budget_usd })

for (const [how, cap] of [
  ['raised', 1],
  ['removed', null],
] as const) {
  test(`a waiting call is admitted when its cap is ${how}, while another runs`, async () => {
    const { id, key } = await gateway.createKey(how, { monthly_budget_usd: CAP_USD })
    const first = await bench.send('runs', key)
    const running = await upstream.next()
    const second = await bench.send('waits', key)
    const third = await bench.send('waits behind', key)
    // Both calls are queued now; an earlier edit might fall between two that are still asking.
    await bench.storeAnswered()
    await edit(id, cap)
    const next = [await upstream.next(), await upstream.next()]
    assert.deepEqual(
      next.map((call) => call.name),
      ['waits', 'waits behind'],
    )
    for (const call of [running, ...next]) call.finish(200)
    for (const { reply } of [first, second, third]) assert.equal((await reply).status, 200)
    const record = await bench.record(id)
    assert.equal(record['month_spend_usd'], 0.0003)
    assert.equal(record['monthly_budget_usd'], cap)
  })
}
