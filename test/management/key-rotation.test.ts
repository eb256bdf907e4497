import assert from 'node:assert/strict'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { startGateway } from '../support/gateway.ts'
import { after, test } from '../support/suite.ts'
import { movableClock } from './movable-clock.ts'
import { askOf, assertUnstored } from './own-client.ts'

const clock = movableClock()
const simulator = await startSimulator({ messagesKey: 'pm' })
const gateway = await startGateway({ messagesUrl: simulator.messagesUrl, messagesKey: 'pm', clock })
after(async () => {
  await gateway.close()
  await simulator.close()
})
const ask = askOf(gateway)
const show = async (id: string) => (await ask('GET', `/v1/keys/${id}`)).body
const inSeconds = (seconds: number) => new Date(clock.nowMs() + seconds * 1_000).toISOString()

const LIMITS = {
  ...{
    monthly_budget_usd: 12.5,
    daily_budget_usd: 0.000000001,
    requests_per_minute: 60,
    budget_mode: 'settled',
  },
  ...{ allowed_models: ['claude-haiku-5-5', 'gpt-6*'], log_requests: true, metadata: { team: 'web' } },
  expires_at: '2100-02-28T23:59:59.123Z',
}

const rotate = (id: string, json?: unknown, headers: Record<string, string> = {}) =>
  ask('POST', `/v1/keys/${id}/rotate`, { headers, ...(json === undefined ? {} : { json }) })

test('POST /v1/keys/{id}/rotate 201: a new key with the same limits, and the old one goes on', async () => {
  const old = await gateway.createKey('service', LIMITS)
  const answer = await rotate(old.id)
  assert.equal(answer.status, 201)
  assertUnstored(answer)
  const { id, key, name, rotated_from, status, last_used_at } = answer.body
  assert.notEqual(id, old.id)
  assert.notEqual(key, old.key)
  assert.deepEqual([name, rotated_from, status, last_used_at], ['service', old.id, 'usable', null])
  for (const [field, value] of Object.entries(LIMITS)) assert.deepEqual(answer.body[field], value)
  assert.equal(answer.body['last4'], String(key).slice(-4))
  for (const each of [old.key, String(key)])
    assert.equal((await ask('GET', '/v1/keys/me', { key: each })).status, 200)
})

test('PATCH /v1/keys/{id} 200: the keys of a rotation share a budget, and show its limits alike', async () => {
  const old = await gateway.createKey('lineage', { monthly_budget_usd: 5, metadata: { team: 'web' } })
  const made = (await rotate(old.id)).body
  await gateway.manage('POST', `/v1/keys/${old.id}/revoke`)
  const limits = {
    monthly_budget_usd: 7,
    daily_budget_usd: 2,
    requests_per_minute: 9,
    budget_mode: 'settled',
  }
  const patch = { ...limits, name: 'new', metadata: { team: 'data' } }
  await gateway.manage('PATCH', `/v1/keys/${made['id']}`, patch)
  const [first, second] = [await show(old.id), await show(String(made['id']))]
  assert.partialDeepStrictEqual(first, { ...limits, name: 'lineage', metadata: { team: 'web' } })
  assert.partialDeepStrictEqual(second, patch)
  assert.equal(first['budget_id'], second['budget_id'])
  await gateway.manage('PATCH', `/v1/keys/${made['id']}`, { requests_per_minute: null, metadata: null })
  assert.equal((await show(old.id))['requests_per_minute'], null)
  assert.deepEqual((await show(String(made['id'])))['metadata'], {})
  const found = (await ask('GET', '/v1/keys?search=metadata.team:web')).body['data'] as { id: string }[]
  assert.ok(found.some(({ id }) => id === old.id) && !found.some(({ id }) => id === made['id']))
})

test('POST /v1/keys/{id}/rotate 201: the old key expires as requested, never later than before', async () => {
  const old = await gateway.createKey('service')
  const { body } = await rotate(old.id, { old_expires_in_seconds: 3_600 })
  assert.equal(body['expires_at'], null)
  assert.equal((await show(old.id))['status'], 'usable')
  clock.advance(3_600_000)
  assert.equal((await show(old.id))['status'], 'expired')
  assert.equal((await show(String(body['id'])))['status'], 'usable')
  const now = await gateway.createKey('now')
  await rotate(now.id, { old_expires_in_seconds: 0 })
  assert.equal((await ask('GET', '/v1/keys/me', { key: now.key })).status, 401)
  const expires_at = inSeconds(60)
  const short = await gateway.createKey('short', { expires_at })
  await rotate(short.id, { old_expires_in_seconds: 31_536_000 })
  assert.equal((await show(short.id))['expires_at'], expires_at)
})
