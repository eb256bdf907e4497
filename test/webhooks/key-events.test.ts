import assert from 'node:assert/strict'
import { movableClock } from '../management/movable-clock.ts'
import { after, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { dataOf, verified, WebhookGateway } from './webhook-gateway.ts'

const DAY_MS = 86_400_000
const clock = movableClock()
const hooked = await WebhookGateway.start({ clock, settings: { balanceLowNanos: 100_000n } })
after(() => hooked.close())

test('a change of a key is sent with the record, its actor and the changes, and without the key itself', async () => {
  const { receiver, secret } = await hooked.subscribe()
  const { id, key } = await hooked.gateway.createKey('told')
  await hooked.gateway.manage('PATCH', `/v1/keys/${id}`, { name: 'told again' })
  const rotated = await hooked.gateway.manage('POST', `/v1/keys/${id}/rotate`, {
    old_expires_in_seconds: 3600,
  })
  await hooked.gateway.revokeKey(id)
  const types = ['key.created', 'key.updated', 'key.rotated', 'key.revoked']
  const messages = await receiver.untilTypes(...types)
  assert.deepEqual(receiver.types.toSorted(), ['key.created', 'key.revoked', 'key.rotated', 'key.updated'])
  for (const message of messages) {
    const { type: _type, data: _data, timestamp, ...more } = verified(message, secret)
    assert.match(String(timestamp), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/)
    const { actor, account_id, ...others } = more as { actor: Record<string, unknown>; account_id: string }
    assert.deepEqual([account_id, actor['kind'], others], ['default', 'admin_key', {}])
    assert.match(String(actor['id']), /^adm_/)
    assert.ok(!message.body.includes(key) && !message.body.includes(String(rotated['key'])))
  }
  const keyIn = (at: number, name = 'key') =>
    dataOf(messages.find(({ json }) => json['type'] === types[at]) ?? assert.fail())[name] as Record<
      string,
      unknown
    >
  const shown = Object.keys(await hooked.gateway.manage('GET', `/v1/keys/${id}`))
  assert.deepEqual(
    Object.keys(keyIn(0)),
    shown.filter((name) => name !== 'month_waiting'),
  )
  assert.equal(keyIn(0)['id'], id)
  assert.equal(keyIn(1)['name'], 'told again')
  assert.deepEqual(keyIn(1, 'changes'), { name: { old: 'told', new: 'told again' } })
  assert.equal(keyIn(2)['id'], rotated['id'])
  assert.equal(keyIn(2, 'old_key')['id'], id)
  assert.equal(keyIn(3)['status'], 'revoked')
})

test('an endpoint gets the events that it has asked for, and no others', async () => {
  const revoked = await hooked.subscribe(['key.revoked'])
  const created = await hooked.subscribe(['key.created'])
  const { id } = await hooked.gateway.createKey('one')
  await hooked.gateway.revokeKey(id)
  await revoked.receiver.untilTypes('key.revoked')
  await created.receiver.untilTypes('key.created')
  assert.deepEqual([revoked.receiver.types, created.receiver.types], [['key.revoked'], ['key.created']])
})

test('a key that expires is told seven days and a day before, and when it has', async () => {
  const subscription = await hooked.subscribe(['key.expiring', 'key.expired'])
  const { receiver } = subscription
  const expires_at = new Date(clock.nowMs() + 8 * DAY_MS).toISOString()
  await hooked.gateway.createKey('leaving', { expires_at })
  for (const [i, aheadMs] of [1.1 * DAY_MS, 6 * DAY_MS, DAY_MS].entries()) {
    clock.advance(aheadMs)
    await hooked.look(subscription)
    await receiver.until((messages) => messages.length > i)
    // The next step of the clock would end the claim of the delivery, and it would be sent again.
    await until(
      'it is recorded',
      async () => (await hooked.deliveries(subscription))[0]?.status === 'succeeded',
    )
  }
  assert.deepEqual(receiver.types, ['key.expiring', 'key.expiring', 'key.expired'])
})

test('a call of a model without a price is told, once for the model and day', async () => {
  const subscription = await hooked.subscribe(['call.unpriced'])
  const { receiver } = subscription
  const body = { model: 'claude-fable-5-2', max_tokens: 50, messages: [{ role: 'user', content: 'Hi' }] }
  const first = await hooked.bench.call('/v1/messages', body)
  assert.equal(first.status, 200)
  await hooked.bench.call('/v1/messages', body)
  const [message] = await receiver.untilTypes('call.unpriced')
  assert.deepEqual(dataOf(message ?? assert.fail()), {
    model: 'claude-fable-5-2',
    request_id: first.requestId,
  })
  await hooked.gateway.manage('POST', `${subscription.path}/test`)
  await receiver.untilTypes('webhook.test')
  assert.deepEqual(receiver.types, ['call.unpriced', 'webhook.test'])
})

test('credit that runs low, and out, is told with the balance', async () => {
  const { receiver } = await hooked.subscribe(['balance.low', 'balance.exhausted'])
  await hooked.bench.credit(0.00025)
  const usage = `usage=${JSON.stringify({ input_tokens: 0, output_tokens: 400 })}`
  const body = { model: 'claude-haiku-5-5', max_tokens: 400, messages: [{ role: 'user', content: 'Hi' }] }
  await hooked.bench.call('/v1/messages', body, { simulate: usage })
  const [low] = await receiver.untilTypes('balance.low')
  const balance = dataOf(low ?? assert.fail())['balance'] as Record<string, unknown>
  assert.deepEqual([balance['object'], balance['enforced']], ['balance', true])
  await hooked.bench.call('/v1/messages', body, { simulate: usage })
  await receiver.untilTypes('balance.exhausted')
})
