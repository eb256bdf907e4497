import assert from 'node:assert/strict'
import { movableClock } from '../management/movable-clock.ts'
import { after, test } from '../support/suite.ts'
import { dataOf, verified, WebhookGateway } from './webhook-gateway.ts'

const clock = movableClock()
const hooked = await WebhookGateway.start({ clock, settings: { balanceLowNanos: 100_000n } })
after(() => hooked.close())

test('a change of a key is sent with the record, its actor and the changes, and without the key itself', async () => {
  const { receiver, secret } = await hooked.subscribe()
  const { id, key } = await hooked.gateway.createKey('delivered')
  await hooked.gateway.manage('PATCH', `/v1/keys/${id}`, { name: 'delivered again' })
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
  assert.equal(keyIn(1)['name'], 'delivered again')
  assert.deepEqual(keyIn(1, 'changes'), { name: { old: 'delivered', new: 'delivered again' } })
  assert.equal(keyIn(2)['id'], rotated['id'])
  assert.equal(keyIn(2, 'old_key')['id'], id)
  assert.equal(keyIn(3)['status'], 'revoked')
})
