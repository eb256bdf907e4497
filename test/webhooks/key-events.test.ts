import assert from 'node:assert/strict'
import { movableClock } from '../management/movable-clock.ts'
import { changeBooks } from '../support/books.ts'
import { after, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import type { ReceivedMessage } from '../support/webhook-receiver.ts'
import { dataOf, ToldGateway, verified } from './told-gateway.ts'

const DAY_MS = 86_400_000
const clock = movableClock()
const told = await ToldGateway.start({ clock, settings: { balanceLowNanos: 1_000_000_000n } })
after(() => told.close())

test('what happens to a key is told in its order, with the record and without the key itself', async () => {
  const { receiver, secret } = await told.subscribe()
  const { id, key } = await told.gateway.createKey('told')
  await told.gateway.manage('PATCH', `/v1/keys/${id}`, { name: 'told again' })
  const rotated = await told.gateway.manage('POST', `/v1/keys/${id}/rotate`, { old_expires_in_seconds: 3600 })
  await told.gateway.revokeKey(id)
  const messages = await receiver.untilTypes('key.revoked')
  assert.deepEqual(receiver.types, ['key.created', 'key.updated', 'key.rotated', 'key.revoked'])
  for (const message of messages) {
    verified(message, secret)
    assert.ok(!message.body.includes(key) && !message.body.includes(String(rotated['key'])))
  }
  const keyIn = (at: number, name = 'key') =>
    dataOf(messages[at] ?? assert.fail())[name] as Record<string, unknown>
  const shown = Object.keys(await told.gateway.manage('GET', `/v1/keys/${id}`))
  assert.deepEqual(
    Object.keys(keyIn(0)),
    shown.filter((name) => name !== 'month_waiting'),
  )
  assert.equal(keyIn(0)['id'], id)
  assert.equal(keyIn(1)['name'], 'told again')
  assert.equal(keyIn(2)['id'], rotated['id'])
  assert.equal(keyIn(2, 'old_key')['id'], id)
  assert.equal(keyIn(3)['status'], 'revoked')
})

test('a row of the outbox that cannot be read holds up none behind it, and a limit that a kept key lacks is none', async () => {
  const { receiver } = await told.subscribe()
  const { id } = await told.gateway.createKey('kept')
  await receiver.untilTypes('key.created')
  const record = {
    id,
    name: 'kept by an older version',
    month: { spentNanos: '0', heldNanos: '0', lostNanos: '0' },
  }
  const kept = {
    key: {
      record: { ...record, createdAtMs: 0, expiresAtMs: null, revokedAtMs: null, lastUsedAtMs: null },
      atMs: 0,
    },
  }
  const row = (type: string, keyId: string | null, facts: object) =>
    `('default', '${type}', ${keyId === null ? 'NULL' : `'${keyId}'`}, ${clock.nowMs()}, '${JSON.stringify(facts)}')`
  const rows = [
    row('key.paused', id, {}),
    row('balance.low', null, {}),
    row('key.expired', 'key_none', {}),
    row('key.updated', id, kept),
  ]
  await changeBooks(
    told.gateway,
    `INSERT INTO webhook_outbox (account_id, type, key_id, at_ms, facts) VALUES ${rows.join(', ')}`,
  )
  await told.gateway.revokeKey(id)
  const messages = await receiver.untilTypes('key.revoked')
  assert.deepEqual(receiver.types, ['key.created', 'key.updated', 'key.revoked'])
  const { name, monthly_budget_usd } = dataOf(messages[1] ?? assert.fail())['key'] as Record<string, unknown>
  assert.deepEqual([name, monthly_budget_usd], ['kept by an older version', null])
})

test('of a key and the one that it is rotated to, one event is told after the other', async () => {
  const subscription = await told.subscribe(['key.created', 'key.updated', 'key.rotated', 'key.revoked'])
  const { receiver } = subscription
  const isBeside = (message: ReceivedMessage) =>
    String((dataOf(message)['key'] as Record<string, unknown>)['name']).startsWith('beside')
  const allDue = Promise.withResolvers<unknown>()
  let open = 0
  let openMost = 0
  receiver.reply = (message) => {
    if (isBeside(message)) return 204
    open += 1
    openMost = Math.max(openMost, open)
    // Events of another key go at the same time, one after the other: when the second comes, whatever could begin
    // together with the first has come.
    const othersCame = () => receiver.until((messages) => messages.filter(isBeside).length === 2)
    const held = message.json['type'] === 'key.created' ? allDue.promise : othersCame()
    return (response) =>
      held.then(() => {
        open -= 1
        response.writeHead(204).end()
      })
  }
  const { id } = await told.gateway.createKey('rotated')
  await receiver.untilTypes('key.created')
  await told.gateway.manage('PATCH', `/v1/keys/${id}`, { name: 'rotated soon' })
  await told.gateway.manage('POST', `/v1/keys/${id}/rotate`, { old_expires_in_seconds: 3600 })
  await told.gateway.revokeKey(id)
  const beside = await told.gateway.createKey('beside')
  await told.gateway.manage('PATCH', `/v1/keys/${beside.id}`, { name: 'beside again' })
  // The first delivery is still held, so all others are due together when it is over.
  await until('all are due', async () => (await told.deliveries(subscription)).length === 6)
  allDue.resolve(null)
  await receiver.untilTypes('key.revoked')
  const types = receiver.messages.filter((message) => !isBeside(message)).map(({ json }) => json['type'])
  assert.deepEqual(types, ['key.created', 'key.updated', 'key.rotated', 'key.revoked'])
  assert.equal(openMost, 1)
})

test('an endpoint gets the events that it has asked for, and no others', async () => {
  const revoked = await told.subscribe(['key.revoked'])
  const created = await told.subscribe(['key.created'])
  const { id } = await told.gateway.createKey('one')
  await told.gateway.revokeKey(id)
  await revoked.receiver.untilTypes('key.revoked')
  await created.receiver.untilTypes('key.created')
  assert.deepEqual([revoked.receiver.types, created.receiver.types], [['key.revoked'], ['key.created']])
})

test('a key that expires is told seven days and a day before, and when it has', async () => {
  const subscription = await told.subscribe(['key.expiring', 'key.expired'])
  const { receiver } = subscription
  const expires_at = new Date(clock.nowMs() + 8 * DAY_MS).toISOString()
  await told.gateway.createKey('leaving', { expires_at })
  for (const [i, aheadMs] of [1.1 * DAY_MS, 6 * DAY_MS, DAY_MS].entries()) {
    clock.advance(aheadMs)
    await told.look(subscription)
    await receiver.until((messages) => messages.length > i)
    // The next leap of the clock would end the lease under which the delivery is recorded, and it would be sent again.
    await until(
      'it is recorded',
      async () => (await told.deliveries(subscription))[0]?.status === 'succeeded',
    )
  }
  assert.deepEqual(
    receiver.messages.map((message) => [message.json['type'], dataOf(message)['expires_in_days']]),
    [
      ['key.expiring', 7],
      ['key.expiring', 1],
      ['key.expired', undefined],
    ],
  )
})

test('a call of a model without a price is told, once for the model and day', async () => {
  const subscription = await told.subscribe(['call.unpriced'])
  const { receiver } = subscription
  const body = { model: 'claude-fable-5-2', max_tokens: 50, messages: [{ role: 'user', content: 'Hi' }] }
  const first = await told.bench.call('/v1/messages', body)
  assert.equal(first.status, 200)
  await told.bench.call('/v1/messages', body)
  const [message] = await receiver.untilTypes('call.unpriced')
  assert.deepEqual(dataOf(message ?? assert.fail()), {
    model: 'claude-fable-5-2',
    request_id: first.requestId,
  })
  await told.gateway.manage('POST', `${subscription.path}/test`)
  await receiver.untilTypes('webhook.test')
  assert.deepEqual(receiver.types, ['call.unpriced', 'webhook.test'])
})

test('credit that runs low, and out, is told with the balance', async () => {
  const { receiver } = await told.subscribe(['balance.low', 'balance.exhausted'])
  await told.bench.credit(0.0001)
  const [low] = await receiver.untilTypes('balance.low')
  const balance = dataOf(low ?? assert.fail())['balance'] as Record<string, unknown>
  assert.deepEqual([balance['object'], balance['balance_usd']], ['balance', 0.0001])
  const usage = `usage=${JSON.stringify({ input_tokens: 0, output_tokens: 400 })}`
  const body = { model: 'claude-haiku-5-5', max_tokens: 400, messages: [{ role: 'user', content: 'Hi' }] }
  await told.bench.call('/v1/messages', body, { simulate: usage })
  await receiver.untilTypes('balance.exhausted')
})
