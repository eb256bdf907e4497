import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { closeAfter, test } from '../support/suite.ts'
import { WebhookGateway } from './webhook-gateway.ts'

const hooked = await WebhookGateway.start()
closeAfter(hooked)

const KEYS = 30

test('a receiver that never answers delays no other receiver and no call, and gets few messages at once', async () => {
  const dead = await hooked.subscribe(['key.created'])
  const well = await hooked.subscribe(['key.created'])
  dead.receiver.reply = () => 'silence'
  for (let i = 0; i < KEYS; i++) await hooked.gateway.createKey(`key ${i}`)
  const names = (await well.receiver.until((messages) => messages.length === KEYS)).map(({ json }) => {
    const { key } = json['data'] as { key: { name: string } }
    return key.name
  })
  assert.equal(new Set(names).size, KEYS)
  await dead.receiver.until((messages) => messages.length > 0)
  assert.ok(dead.receiver.messages.length <= 4, String(dead.receiver.messages.length))
  const reply = await hooked.bench.call('/v1/models', undefined, { method: 'GET' })
  assert.equal(reply.status, 200)
  await hooked.unsubscribe(dead)
})

const AT_ONCE = 4
const QUEUED = 3 * AT_ONCE

const endings: readonly (readonly [what: string, method: string, fields?: object])[] = [
  ['is deleted', 'DELETE'],
  ['is disabled', 'PATCH', { enabled: false }],
]
for (const [what, method, fields] of endings) {
  test(`once a webhook ${what}, running deliveries end and no more are sent`, async () => {
    const { receiver, path, answerAll } = await manyUnderWay()
    if (method === 'DELETE') await hooked.unsubscribe({ path })
    else await hooked.gateway.manage(method, path, fields)
    answerAll()
    // Three complete deliveries to another webhook leave time for further attempts.
    const fence = await hooked.subscribe(['key.created'])
    for (let i = 1; i <= 3; i++) {
      await hooked.gateway.manage('POST', `${fence.path}/test`)
      await fence.receiver.until((messages) => messages.length === i)
    }
    assert.equal(receiver.messages.length, AT_ONCE)
  })
}

/** A receiver with the maximum of concurrent messages, none answered; more deliveries are due. */
async function manyUnderWay() {
  const { receiver, path } = await hooked.subscribe(['key.created'])
  const held: ServerResponse[] = []
  receiver.reply = () => (response) => void held.push(response)
  for (let i = 0; i < QUEUED; i++) await hooked.gateway.manage('POST', `${path}/test`)
  await receiver.until((messages) => messages.length === AT_ONCE)
  const answerAll = () => {
    for (const response of held.splice(0)) response.writeHead(204).end()
  }
  return { receiver, path, answerAll }
}
