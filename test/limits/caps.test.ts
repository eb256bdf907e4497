import assert from 'node:assert/strict'
import { type BillingBench, startBillingBench } from '../billing/bench-of-one.ts'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import { startGatedBench } from './gated-bench.ts'
import { assertCapHeld, drawCall, drawChance, type RandomCall, send, sortOut } from './random-calls.ts'
import { nanosOf, readLedger, usdOf } from './read-ledger.ts'

const bench = await startBillingBench()
const hasty = await startBillingBench({ settings: { budgetWaitMs: 25 } })
closeAfter(bench, hasty)
afterEach(async () => {
  await bench.assertBalanced()
  await hasty.assertBalanced()
})

const CALLS = 500
const USD_002 = 20_000_000

async function answersTo(bench: BillingBench, calls: readonly RandomCall[], key: string) {
  return await Promise.all(calls.map(async (call) => ({ call, reply: await send(bench, call, key) })))
}

async function monthOf({ gateway }: BillingBench, id: string) {
  const record = await gateway.manage('GET', `/v1/keys/${id}`)
  return { spentNanos: nanosOf(record['month_spend_usd']), heldNanos: nanosOf(record['month_held_usd']) }
}

const sumOf = (calls: readonly RandomCall[]) => calls.reduce((sum, call) => sum + call.costNanos, 0)

test('500 concurrent calls exceed the cap by at most one call, and get 402 only once it is spent', async (t) => {
  const chance = drawChance((line) => t.diagnostic(line))
  const { id, key } = await bench.gateway.createKey('capped', { monthly_budget_usd: usdOf(USD_002) })
  const calls = Array.from({ length: CALLS }, () => drawCall(chance))
  const outcomes = sortOut(await answersTo(bench, calls, key))
  assertCapHeld(outcomes, USD_002)
  assert.ok(outcomes.spentNanos >= USD_002, 'the calls cost more than the cap, so the cap is spent')
  assert.equal(outcomes.held.length, 0, 'no call waited for half a minute')
  assert.equal(outcomes.served + outcomes.exceeded.length, CALLS)
  assert.ok(outcomes.exceeded.length > 0)
  assert.deepEqual(await monthOf(bench, id), { spentNanos: outcomes.spentNanos, heldNanos: 0 })
})

test('300 concurrent calls that cost a nanodollar less than the cap are all served, whatever they hold', async (t) => {
  const chance = drawChance((line) => t.diagnostic(line))
  const calls = Array.from({ length: 300 }, () => drawCall(chance, 3))
  const { id, key } = await bench.gateway.createKey('just enough', {
    monthly_budget_usd: usdOf(sumOf(calls) + 1),
  })
  const outcomes = sortOut(await answersTo(bench, calls, key))
  assert.equal(outcomes.served, 300)
  assert.deepEqual(await monthOf(bench, id), { spentNanos: sumOf(calls), heldNanos: 0 })
})

test('with a short wait, 500 concurrent calls are served or get 402 or 429, and 429 only while others hold the rest', async (t) => {
  const chance = drawChance((line) => t.diagnostic(line))
  const { id, key } = await hasty.gateway.createKey('hasty', { monthly_budget_usd: usdOf(USD_002 / 4) })
  const calls = Array.from({ length: CALLS }, () => drawCall(chance, 60))
  const outcomes = sortOut(await answersTo(hasty, calls, key))
  assertCapHeld(outcomes, USD_002 / 4)
  assert.equal(outcomes.served + outcomes.exceeded.length + outcomes.held.length, CALLS)
  assert.ok(outcomes.held.length > 0)
  const month = await monthOf(hasty, id)
  assert.deepEqual(month, { spentNanos: outcomes.spentNanos, heldNanos: 0 })
  if (month.spentNanos < USD_002 / 4) {
    const [next] = await answersTo(hasty, [drawCall(chance)], key)
    assert.equal(next?.reply.status, 200, 'nothing is in flight and the cap is not spent')
  }
})

test('concurrent keys each keep their own cap, and a key without a cap is not delayed', async (t) => {
  const chance = drawChance((line) => t.diagnostic(line))
  const caps = [0, 1_000_000, 3_000_000, 9_000_000, null]
  const keys = await Promise.all(
    caps.map((cap) =>
      bench.gateway.createKey(`cap ${cap}`, { monthly_budget_usd: cap === null ? null : usdOf(cap) }),
    ),
  )
  const answers = await Promise.all(
    keys.map(async ({ key }) => {
      const calls = Array.from({ length: 100 }, () => drawCall(chance))
      return sortOut(await answersTo(bench, calls, key))
    }),
  )
  for (const [i, cap] of caps.entries()) {
    const [outcomes, key] = [answers[i], keys[i]]
    assert.ok(outcomes !== undefined && key !== undefined)
    assert.equal((await monthOf(bench, key.id)).spentNanos, outcomes.spentNanos)
    if (cap === null) assert.equal(outcomes.served, 100)
    else assertCapHeld(outcomes, cap)
    if (cap === 0) assert.equal(outcomes.exceeded.length, 100, 'a cap of 0 admits no call')
  }
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
