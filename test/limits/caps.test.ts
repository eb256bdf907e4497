import assert from 'node:assert/strict'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import { startGatedBench } from './gated-bench.ts'
import { drawCall, drawChance, send, sortOut } from './random-calls.ts'
import { nanosOf, readLedger, usdOf } from './read-ledger.ts'

const bench = await startBillingBench()
closeAfter(bench)
afterEach(() => bench.assertBalanced())

const CALLS = 500
const USD_002 = 20_000_000

test('500 concurrent calls exceed the cap by at most one call, and get 402 only once it is spent', async (t) => {
  const chance = drawChance((line) => t.diagnostic(line))
  const { id, key } = await bench.gateway.createKey('capped', { monthly_budget_usd: usdOf(USD_002) })
  const calls = Array.from({ length: CALLS }, () => drawCall(chance))
  const answers = calls.map(async (call) => ({ call, reply: await send(bench, call, key) }))
  const { served, spentNanos, highestNanos, exceeded } = sortOut(await Promise.all(answers))
  assert.ok(spentNanos >= USD_002, 'the calls cost more than the cap, so the cap is spent')
  assert.ok(spentNanos - highestNanos < USD_002, `${spentNanos} is more than one call above the cap`)
  for (const each of exceeded) assert.ok(each.spentNanos >= each.capNanos, '402 before the cap is spent')
  assert.equal(served + exceeded.length, CALLS)
  assert.ok(exceeded.length > 0)
  const record = await bench.gateway.manage('GET', `/v1/keys/${id}`)
  assert.equal(nanosOf(record['month_spend_usd']), spentNanos)
  assert.equal(record['month_held_usd'], 0)
})

test('calls that fail, break or lose their client leave no hold, and the cap holds', async (t) => {
  const chance = drawChance((line) => t.diagnostic(line))
  const cap = USD_002 / 2
  const { id, key } = await bench.gateway.createKey('unlucky', { monthly_budget_usd: usdOf(cap) })
  const faults = ['status=529', 'status=400', 'reset', 'cut=event:2', 'error-event=1', 'no-usage', 'early']
  await Promise.all(
    Array.from({ length: 300 }, async () => {
      const call = drawCall(chance)
      const fault = chance.below(3) === 0 ? `;${faults[chance.below(faults.length)]}` : ''
      await send(bench, { ...call, simulate: call.simulate + fault }, key)
    }),
  )
  await bench.assertBalanced()
  const ledger = readLedger(bench.gateway)
  const calls = await ledger.calls(id)
  const highest = Math.max(...calls.map((call) => call.costNanos))
  const [month] = (await ledger.months(id)).values()
  assert.equal(month?.heldNanos, 0)
  assert.ok((month?.spentNanos ?? 0) - highest < cap)
})

test('with budgets.mode "settled" no call waits while the spend is below the cap', async () => {
  await using settledMode = await startGatedBench({ settings: { budgetMode: 'settled', budgetWaitMs: 0 } })
  const { key } = await settledMode.gateway.createKey('settled', { monthly_budget_usd: 0.0001 })
  const sent = []
  for (let i = 0; i < 20; i++) sent.push(await settledMode.send(`${i}`, key))
  // The first call to finish spends the whole cap, so all must reach upstream before it.
  const calls = []
  for (const _ of sent) calls.push(await settledMode.upstream.next())
  for (const call of calls) call.finish(200)
  for (const { reply } of sent) assert.equal((await reply).status, 200)
  assert.equal((await (await settledMode.send('too late', key)).reply).status, 402)
  await settledMode.assertBalanced()
})
