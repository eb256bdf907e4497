import assert from 'node:assert/strict'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { test } from '../support/suite.ts'
import { clockAt } from './clock-at.ts'
import { drawCall, drawChance, send, sortOut } from './random-calls.ts'
import { nanosOf, readLedger, usdOf } from './read-ledger.ts'

/** A ceiling of each period, with 500 concurrent calls while the period changes. */
const PERIODS = [
  {
    ...{ period: 'month', field: 'monthly_budget_usd', spend: 'month_spend_usd', chars: 7 },
    ...{ last: '2026-12-31T23:59:59.999Z', names: ['2026-12', '2027-01'] },
  },
  {
    ...{ period: 'day', field: 'daily_budget_usd', spend: 'day_spend_usd', chars: 10 },
    ...{ last: '2026-12-14T23:59:59.999Z', names: ['2026-12-14', '2026-12-15'] },
  },
] as const

for (const { period, field, spend, chars, last, names } of PERIODS) {
  test(`if a ${period} ends during 500 concurrent calls, each ${period} keeps its cap, and calls count where they began`, async (t) => {
    const chance = drawChance((line) => t.diagnostic(line))
    const clock = clockAt(last)
    await using bench = await startBillingBench({ clock })
    const cap = 12_000_000
    const { id, key } = await bench.gateway.createKey('over the end', { [field]: usdOf(cap) })
    let answered = 0
    const answers = await Promise.all(
      Array.from({ length: 500 }, async () => {
        const call = drawCall(chance)
        const reply = await send(bench, call, key)
        answered += 1
        // The first cap is almost spent, and most calls wait.
        if (answered === 60) clock.advance(1)
        return { call, reply }
      }),
    )
    const outcomes = sortOut(answers)
    await bench.assertBalanced()

    const calls = await readLedger(bench.gateway).calls(id)
    const sums = names.map((name) => {
      const own = calls.filter(({ startedAtMs }) => new Date(startedAtMs).toISOString().startsWith(name))
      assert.ok(own.every(({ day }) => day.slice(0, chars) === name))
      const costs = own.map(({ costNanos }) => costNanos)
      const sum = costs.reduce((a, b) => a + b, 0)
      assert.ok(sum - Math.max(...costs) < cap, `${name} is more than one call above its cap`)
      return sum
    })
    assert.equal(
      sums.reduce((a, b) => a + b),
      outcomes.spentNanos,
      'each call is in one of the two',
    )
    assert.equal(outcomes.held.length, 0)
    assert.ok(outcomes.exceeded.every((details) => details.spentNanos >= details.capNanos))
    assert.ok((sums[1] ?? 0) >= cap, 'there were enough calls to spend the second cap too')
    const record = await bench.gateway.manage('GET', `/v1/keys/${id}`)
    assert.equal(nanosOf(record[spend]), sums[1])
    assert.equal(record['month_held_usd'], 0)
  })
}

test('a rate of 60 admits exactly 60 of 500 concurrent calls in a minute, and free calls do not count', async () => {
  const clock = clockAt('2026-12-14T10:00:12.345Z')
  await using bench = await startBillingBench({ clock })
  const { key } = await bench.gateway.createKey('rated', { requests_per_minute: 60 })
  const body = { model: 'claude-haiku-5-5', max_tokens: 5, messages: [{ role: 'user', content: 'x' }] }
  const call = () => bench.call('/v1/messages', body, { key })
  const count = () => bench.call('/v1/messages/count_tokens', { ...body, max_tokens: undefined }, { key })
  for (const seconds of ['48', '60']) {
    const replies = await Promise.all(Array.from({ length: 250 }, () => [call(), call()]).flat())
    const refused = replies.filter(({ status }) => status === 429)
    assert.deepEqual([replies.filter(({ status }) => status === 200).length, refused.length], [60, 440])
    for (const { header } of refused) assert.equal(header('retry-after'), seconds)
    const { error } = JSON.parse(String(refused[0]?.body))
    assert.deepEqual([error.type, error.code], ['rate_limit_error', 'rate_limit_exceeded'])
    assert.equal(refused[0]?.header('x-should-retry'), undefined)
    assert.equal((await count()).status, 200)
    clock.set('2026-12-14T10:01:00.000Z')
  }
  const chat = { model: 'gpt-6-luna', messages: [{ role: 'user', content: 'x' }] }
  const refused = await bench.call('/v1/chat/completions', chat, { surface: 'chat', key })
  assert.equal(JSON.parse(refused.body.toString()).error.type, 'requests')
  await bench.assertBalanced()
})
