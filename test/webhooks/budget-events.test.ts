import assert from 'node:assert/strict'
import { closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { dataOf, idOf, verified, WebhookGateway } from './webhook-gateway.ts'

const hooked = await WebhookGateway.start({
  settings: { dashboardUrl: new URL('https://tollgate.example.com') },
})
closeAfter(hooked)

/** A call of this cost in nanodollars: 500 per output token. */
async function spend(key: string, nanos: number): Promise<string> {
  const tokens = nanos / 500
  const usage = `usage=${JSON.stringify({ input_tokens: 0, output_tokens: tokens })}`
  const body = {
    model: 'claude-haiku-5-5',
    max_tokens: tokens,
    messages: [{ role: 'user', content: 'How long is the bridge?' }],
  }
  const reply = await hooked.bench.call('/v1/messages', body, { simulate: usage, key })
  assert.equal(reply.status, 200, reply.body.toString())
  return reply.requestId
}

test('calls emit 50, 80, 90 and 100 % of a cap, each once and with its call', async () => {
  const subscription = await hooked.subscribe(['key.budget.threshold', 'key.budget.exceeded'])
  const { receiver, secret } = subscription
  const { id, key } = await hooked.gateway.createKey('ci-bot', { monthly_budget_usd: 0.0001 })
  const below = await spend(key, 40_000)
  const half = await spend(key, 20_000)
  const most = await spend(key, 31_000)
  const all = await spend(key, 10_000)
  const messages = await receiver.untilTypes('key.budget.exceeded')
  await receiver.until((came) => came.length >= 4)
  const crossed = messages.map((message) => {
    const { type, timestamp, data } = verified(message, secret)
    assert.ok(Math.abs(Date.parse(String(timestamp)) - Date.now()) < 300_000)
    const { key, threshold_percent, spent_usd, cap_usd, resets_at, request_id } = data as Record<
      string,
      unknown
    >
    assert.equal((key as Record<string, unknown>)['id'], id)
    assert.equal((key as Record<string, unknown>)['key'], undefined)
    assert.equal(cap_usd, 0.0001)
    assert.match(String(resets_at), /^\d{4}-\d\d-01T00:00:00\.000Z$/)
    assert.equal(typeof dataOf(message)['held_usd'], 'number')
    return [type, threshold_percent, spent_usd, request_id]
  })
  assert.deepEqual(crossed, [
    ['key.budget.threshold', 50, 0.00006, half],
    ['key.budget.threshold', 80, 0.000091, most],
    ['key.budget.threshold', 90, 0.000091, most],
    ['key.budget.exceeded', 100, 0.000101, all],
  ])
  assert.ok(!crossed.flat().includes(below))
  assert.equal(new Set(messages.map(idOf)).size, 4)

  await until('all are recorded', async () =>
    (await hooked.deliveries(subscription)).every(({ status }) => status !== 'pending'),
  )
  const deliveries = await hooked.deliveries(subscription)
  assert.deepEqual(
    deliveries.map(({ status, attempts, response_status }) => [status, attempts, response_status]),
    Array.from({ length: 4 }, () => ['succeeded', 1, 204]),
  )
  assert.deepEqual(deliveries.map(({ event_id }) => event_id).sort(), messages.map(idOf).sort())
})

test('a Slack channel gets the figures as a sentence with a link to the key, with the usual signature', async () => {
  const { receiver, secret } = await hooked.subscribe(['key.budget.threshold'], { format: 'slack' })
  const { id, key } = await hooked.gateway.createKey('<ci & bot>', { monthly_budget_usd: 0.0001 })
  await spend(key, 60_000)
  const [message] = await receiver.until((messages) => messages.length > 0)
  const { text, ...more } = verified(message ?? assert.fail(), secret)
  assert.deepEqual(more, {})
  assert.match(
    String(text),
    /^Key `&lt;ci &amp; bot&gt;` has passed 50 % of its budget for [A-Z][a-z]+: \$0\.00006 of \$0\.0001\. The budget resets on \d{4}-\d\d-01 \(UTC\)\. /,
  )
  assert.ok(
    String(text).endsWith(`<https://tollgate.example.com/dashboard/keys/${id}|Open in the dashboard>`),
  )
})
