import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { until } from '../support/until.ts'
import { idOf, ToldGateway } from './told-gateway.ts'

const told = await ToldGateway.start()
after(() => told.close())

const KEYS = 30

test('a receiver that never answers delays neither another nor a call, and has few messages at once', async () => {
  const dead = await told.subscribe(['key.created'])
  const well = await told.subscribe(['key.created'])
  dead.receiver.reply = () => 'silence'
  for (let i = 0; i < KEYS; i++) await told.gateway.createKey(`key ${i}`)
  const names = (await well.receiver.until((messages) => messages.length === KEYS)).map(({ json }) => {
    const { key } = json['data'] as { key: { name: string } }
    return key.name
  })
  assert.equal(new Set(names).size, KEYS)
  await dead.receiver.until((messages) => messages.length > 0)
  assert.ok(dead.receiver.messages.length <= 4, String(dead.receiver.messages.length))
  const reply = await told.bench.call('/v1/models', undefined, { method: 'GET' })
  assert.equal(reply.status, 200)
  await told.unsubscribe(dead)
})

test('both secrets sign after a rotation, and the messages of a test are for one endpoint alone', async () => {
  const one = await told.subscribe()
  const other = await told.subscribe()
  const { secret } = await told.gateway.manage('POST', `${one.path}/rotate-secret`)
  assert.notEqual(secret, one.secret)
  await told.gateway.manage('POST', `${one.path}/test`)
  const [message] = await one.receiver.untilTypes('webhook.test')
  assert.equal(message?.headers['webhook-signature']?.toString().split(' ').length, 2)
  await until('the delivery is recorded', async () => (await told.deliveries(one))[0]?.status === 'succeeded')
  assert.deepEqual(await told.deliveries(other), [])
  assert.equal(idOf(message ?? assert.fail()), (await told.deliveries(one))[0]?.event_id)
})
