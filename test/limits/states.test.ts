import assert from 'node:assert/strict'
import { after, afterEach, test } from '../support/suite.ts'
import { clockAt } from './clock-at.ts'
import { startGatedBench } from './gated-bench.ts'

const clock = clockAt('2026-12-20T12:00:00.000Z')
const bench = await startGatedBench({ clock, settings: { budgetWaitMs: 0 } })
const { gateway, upstream } = bench
after(() => bench.close())
afterEach(() => bench.assertBalanced())

let calls = 0
/** The status of a call that costs $0.00001. */
async function status(key: string, surface: 'messages' | 'chat' = 'messages'): Promise<number> {
  const { reply } = await bench.send(`at once 20, ${calls++}`, key, { surface })
  return (await reply).status
}

test('a key is refused from the very millisecond in expires_at on, on both surfaces and its own record', async () => {
  const expires_at = '2026-12-20T12:30:00.250Z'
  const { id, key } = await gateway.createKey('short-lived', { expires_at })
  const own = async () =>
    (await fetch(`${gateway.url}/v1/keys/me`, { headers: { authorization: `Bearer ${key}` } })).status
  clock.set('2026-12-20T12:30:00.249Z')
  assert.equal(await status(key), 200)
  assert.equal(await status(key, 'chat'), 200)
  assert.equal((await bench.free(key)).status, 200)
  assert.equal(await own(), 200)
  assert.equal((await bench.record(id))['status'], 'usable')
  clock.set(expires_at)
  assert.equal(await status(key), 401)
  assert.equal(await status(key, 'chat'), 401)
  assert.equal((await bench.free(key)).status, 401)
  assert.equal(await own(), 401)
  const record = await bench.record(id)
  assert.equal(record['status'], 'expired')
  assert.equal(record['last_used_at'], '2026-12-20T12:30:00.249Z', 'refusals do not count as use')
})

test('a stream that runs when its key is revoked or expires goes on to its end and is billed', async () => {
  clock.set('2026-12-26T00:00:00.000Z')
  const revoked = await gateway.createKey('revoked under way')
  const expired = await gateway.createKey('expired under way', { expires_at: '2026-12-26T01:00:00.000Z' })
  for (const { id, key } of [revoked, expired]) {
    const name = `streams ${id}`
    const sent = await bench.send(name, key, { stream: true })
    const running = await upstream.next()
    assert.equal(running.name, name)
    running.begin()
    await sent.received('message_start')
    if (id === revoked.id) await gateway.revokeKey(id)
    else clock.set('2026-12-26T01:00:00.000Z')
    assert.equal(await status(key), 401)
    running.finish(200)
    const reply = await sent.reply
    assert.deepEqual([reply.status, reply.ended], [200, 'complete'])
    assert.match(reply.body.toString(), /message_stop/)
    assert.equal(reply.trailer('x-svc-cost-usd'), '0.0001')
    assert.equal((await bench.record(id))['month_spend_usd'], 0.0001)
  }
})

test('revocation is final and immediate by either endpoint', async () => {
  for (const [method, path] of [
    ['POST', '/revoke'],
    ['DELETE', ''],
  ] as const) {
    const { id, key } = await gateway.createKey(`ends by ${method}`)
    assert.equal(await status(key), 200)
    await gateway.manage(method, `/v1/keys/${id}${path}`)
    assert.equal(await status(key), 401)
    await assert.rejects(gateway.manage('PATCH', `/v1/keys/${id}`, { name: 'back again' }), /409/)
    await assert.rejects(gateway.manage('POST', `/v1/keys/${id}/rotate`), /409/)
    assert.equal(await status(key), 401)
  }
})
