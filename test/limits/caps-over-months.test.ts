import assert from 'node:assert/strict'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { test } from '../support/suite.ts'
import { clockAt } from './clock-at.ts'
import { lookAtBooks, nanosOf, usdOf } from './look-at-books.ts'
import { drawCall, drawChance, send, sortOut } from './random-calls.ts'

const DECEMBER = '2026-12'
const JANUARY = '2027-01'

test('when the month ends under 500 calls at once, each month keeps to the cap, and a call stays in its own', async (t) => {
  const chance = drawChance((line) => t.diagnostic(line))
  const clock = clockAt('2026-12-31T23:59:59.999Z')
  const bench = await startBillingBench({ clock })
  try {
    const cap = 12_000_000
    const { id, key } = await bench.gateway.createKey('over the year', { monthly_budget_usd: usdOf(cap) })
    let answered = 0
    const answers = await Promise.all(
      Array.from({ length: 500 }, async () => {
        const call = drawCall(chance)
        const reply = await send(bench, call, key)
        answered += 1
        // December's cap is about to be spent, and most calls wait.
        if (answered === 60) clock.advance(1)
        return { call, reply }
      }),
    )
    const outcomes = sortOut(answers)
    await bench.assertBooksBalance()

    const books = lookAtBooks(bench.gateway)
    const months = await books.months(id)
    assert.deepEqual([...months.keys()].sort(), [DECEMBER, JANUARY])
    const calls = await books.calls(id)
    for (const [month, { spentNanos, heldNanos }] of months) {
      const own = calls.filter((call) => call.month === month)
      const dearest = Math.max(...own.map((call) => call.costNanos))
      assert.equal(heldNanos, 0)
      assert.ok(spentNanos - dearest < cap, `${month} is more than one call above its cap`)
      for (const call of own) {
        assert.equal(month, new Date(call.startedAtMs).toISOString().slice(0, 7))
      }
    }
    assert.equal(outcomes.held.length, 0)
    assert.ok(outcomes.exceeded.every((details) => details.spentNanos >= details.capNanos))
    const spent = [...months.values()].reduce((sum, month) => sum + month.spentNanos, 0)
    assert.equal(spent, outcomes.spentNanos)
    assert.ok(
      (months.get(JANUARY)?.spentNanos ?? 0) >= cap,
      'there were calls enough to spend January as well',
    )
    const record = await bench.gateway.manage('GET', `/v1/keys/${id}`)
    assert.equal(nanosOf(record['month_spend_usd']), months.get(JANUARY)?.spentNanos)
    assert.equal(record['budget_resets_at'], '2027-02-01T00:00:00.000Z')
  } finally {
    await bench.close()
  }
})

test('a spent cap is whole again in the first millisecond of the next month, and not before', async () => {
  const clock = clockAt('2027-02-10T12:00:00.000Z')
  const bench = await startBillingBench({ clock })
  try {
    const { key } = await bench.gateway.createKey('monthly', { monthly_budget_usd: 0.0001 })
    const body = { model: 'claude-haiku-5-5', max_tokens: 300, messages: [{ role: 'user', content: 'x' }] }
    const simulate = 'usage={"input_tokens":0,"output_tokens":200}'
    const call = () => bench.call('/v1/messages', body, { simulate, key })
    assert.equal((await call()).status, 200)
    assert.equal((await call()).status, 402)
    clock.set('2027-02-28T23:59:59.999Z')
    const last = await call()
    assert.equal(last.status, 402)
    assert.equal(last.header('x-svc-budget-resets-at'), '2027-03-01T00:00:00.000Z')
    clock.advance(1)
    assert.equal((await call()).status, 200)
    assert.equal((await call()).status, 402)
    await bench.assertBooksBalance()
  } finally {
    await bench.close()
  }
})
