import assert from 'node:assert/strict'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { test } from '../support/suite.ts'
import { clockAt } from './clock-at.ts'

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
