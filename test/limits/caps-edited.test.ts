import assert from 'node:assert/strict'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import { startGatedBench } from './gated-bench.ts'
import { drawCall, drawChance, send, sortOut } from './random-calls.ts'
import { nanosOf, usdOf } from './read-ledger.ts'

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

test('edits of the cap during 300 concurrent calls: it is exceeded by at most one call, and no call is lost', async (t) => {
  const chance = drawChance((line) => t.diagnostic(line))
  await using busy = await startBillingBench()
  const caps = [4_000_000, 1_000_000, 6_000_000, 2_000_000, 9_000_000]
  const change = (cap: number) =>
    busy.gateway.manage('PATCH', `/v1/keys/${id}`, { monthly_budget_usd: usdOf(cap) })
  const { id, key } = await busy.gateway.createKey('edited', { monthly_budget_usd: usdOf(caps[0] ?? 0) })
  let answered = 0
  const edits: Promise<unknown>[] = []
  const answers = await Promise.all(
    Array.from({ length: 300 }, async () => {
      const call = drawCall(chance)
      const reply = await send(busy, call, key)
      answered += 1
      const next = answered % 20 === 0 ? caps[answered / 20] : undefined
      if (next !== undefined) edits.push(change(next))
      return { call, reply }
    }),
  )
  await Promise.all(edits)
  const outcomes = sortOut(answers)
  assert.ok(outcomes.spentNanos - outcomes.highestNanos < Math.max(...caps))
  for (const { spentNanos, capNanos } of outcomes.exceeded) {
    assert.ok(caps.includes(capNanos) && spentNanos >= capNanos)
  }
  await busy.assertBalanced()
  const record = await busy.gateway.manage('GET', `/v1/keys/${id}`)
  assert.equal(nanosOf(record['month_spend_usd']), outcomes.spentNanos)
})
