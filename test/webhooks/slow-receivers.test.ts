import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { WEBHOOK_TRIES_MAX } from '../../src/webhooks/deliver.ts'
import { after, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { WebhookReceiver } from '../support/webhook-receiver.ts'
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

const AT_ONCE = WEBHOOK_TRIES_MAX
const QUEUED = 3 * AT_ONCE

const endings: readonly (readonly [what: string, method: string, fields?: object])[] = [
  ['is deleted', 'DELETE'],
  ['is disabled', 'PATCH', { enabled: false }],
]
for (const [what, method, fields] of endings) {
  test(`once a webhook ${what}, what is under way ends, and what was claimed with it is not sent`, async () => {
    const { receiver, path, answerAll } = await manyUnderWay()
    if (method === 'DELETE') await told.unsubscribe({ path })
    else await told.gateway.manage(method, path, fields)
    answerAll()
    // Three deliveries to another webhook, from command to end, give time for further attempts.
    const fence = await told.subscribe()
    for (let i = 1; i <= 3; i++) {
      await told.gateway.manage('POST', `${fence.path}/test`)
      await fence.receiver.until((messages) => messages.length === i)
    }
    assert.equal(receiver.messages.length, AT_ONCE)
  })
}

test('once a webhook has another URL, what was claimed before goes there', async () => {
  const { receiver, path, answerAll } = await manyUnderWay()
  const moved = await WebhookReceiver.start()
  after(() => moved.close())
  await told.gateway.manage('PATCH', path, { url: moved.url })
  answerAll()
  await moved.until((messages) => messages.length === QUEUED - AT_ONCE)
  assert.equal(receiver.messages.length, AT_ONCE)
})

/** A receiver that has as many messages as are sent at once and has answered none; more deliveries were claimed with them. */
async function manyUnderWay() {
  const { receiver, path } = await told.subscribe()
  const held: ServerResponse[] = []
  receiver.reply = () => (response) => void held.push(response)
  const send = async () => void (await told.gateway.manage('POST', `${path}/test`))
  await send()
  await receiver.until((messages) => messages.length === 1)
  for (let i = 0; i < QUEUED; i++) await send()
  const answerAll = () => {
    for (const response of held.splice(0)) response.writeHead(204).end()
  }
  answerAll()
  await receiver.until((messages) => messages.length === 1 + AT_ONCE)
  receiver.messages.shift()
  return { receiver, path, answerAll }
}

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
