import assert from 'node:assert/strict'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import { clockAt } from './clock-at.ts'
import { startGatedBench } from './gated-bench.ts'

const clock = clockAt('2026-12-20T12:00:00.000Z')
const bench = await startGatedBench({ clock, settings: { budgetWaitMs: 0 } })
const { gateway, upstream } = bench
closeAfter(bench)
afterEach(() => bench.assertBalanced())

let calls = 0
/** The status of a call that costs $0.00001. */
async function status(key: string, surface: 'messages' | 'chat' = 'messages'): Promise<number> {
  const { reply } = await bench.send(`at once 20, ${calls++}`, key, { surface })
  return (await reply).status
}

test('a stream whose key is revoked or expires finishes and is billed', async () => {
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
