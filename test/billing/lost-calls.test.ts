import assert from 'node:assert/strict'
import { readDatabase } from '../support/read-database.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import type { Script } from '../support/upstream-script.ts'
import { message } from '../support/wire-bytes.ts'
import { type BilledReply, type BillingBench, startBillingBench } from './bench-of-one.ts'

const upstream = await ScriptedUpstream.start()
const bench = await startBillingBench({ messagesUrl: upstream.url, chatUrl: `${upstream.url}/v1` })
closeAfter(bench, upstream)
afterEach(() => bench.assertBalanced())

const HAIKU = { model: 'claude-haiku-5-5', max_tokens: 1_000, messages: [{ role: 'user', content: 'Hi' }] }
const LUNA = {
  model: 'gpt-6-luna',
  max_completion_tokens: 1_000,
  messages: [{ role: 'user', content: 'Hi' }],
}

async function keyAfter({ gateway }: BillingBench, id: string): Promise<readonly unknown[]> {
  const key = await gateway.manage('GET', `/v1/keys/${id}`)
  return [key['month_spend_usd'], key['month_held_usd'], key['month_lost_usd']]
}

async function assertReleased(bench: BillingBench, reply: BilledReply, keyId: string): Promise<void> {
  assert.equal(reply.status, 502)
  const { state, cost_usd, lost_list_cost_usd } = await bench.record(reply.requestId)
  assert.deepEqual([state, cost_usd, lost_list_cost_usd], ['released', 0, 0])
  assert.deepEqual(await keyAfter(bench, keyId), [0, 0, 0])
}

const endings: Record<string, Script> = {
  'closes the connection': [{ close: true }],
  'resets the connection': [{ reset: true }],
  'closes the connection in the middle of its head': [
    { send: 'HTTP/1.1 200 OK\r\nContent-Ty' },
    { close: true },
  ],
  'closes the connection after an interim reply': [
    { send: message('HTTP/1.1 103 Early Hints', []) },
    { close: true },
  ],
  'answers with something that is not HTTP': [{ send: 'SSH-2.0-OpenSSH_9.2\r\n\r\n' }],
}

for (const [name, script] of Object.entries(endings)) {
  test(`if upstream has the request and ${name}, the call is free and its possible cost is lost`, async () => {
    const { id, key } = await bench.gateway.createKey('loser', { monthly_budget_usd: 1 })
    let lostUsd = 0
    for (const [path, body, surface] of [
      ['/v1/messages', HAIKU, 'messages'],
      ['/v1/messages', { ...HAIKU, stream: true }, 'messages'],
      ['/v1/chat/completions', { ...LUNA, stream: true }, 'chat'],
    ] as const) {
      upstream.queue(script)
      const reply = await bench.call(path, body, { surface, key })
      assert.equal(reply.status, 502)
      assert.equal(reply.header('x-svc-cost-usd'), '0')
      const record = await bench.record(reply.requestId)
      const [row] = await readDatabase(
        bench.gateway,
        `SELECT hold_list_nanos FROM call WHERE id = '${reply.requestId}'`,
      )
      const holdUsd = Number(row?.['hold_list_nanos']) / 1e9
      // The hold covers at least 1,000 output tokens.
      assert.ok(holdUsd >= 0.0005, `${holdUsd} were held`)
      assert.deepEqual(
        [record['state'], record['status'], record['cost_usd'], record['list_cost_usd']],
        ['interrupted', null, 0, 0],
      )
      assert.equal(record['lost_list_cost_usd'], holdUsd)
      assert.equal(record['estimated'], false)
      lostUsd += holdUsd
    }
    const [spent, held, lost] = await keyAfter(bench, id)
    assert.deepEqual([spent, held], [0, 0])
    assert.ok(Math.abs(Number(lost) - lostUsd) < 1e-9)
    const usage = await bench.gateway.manage('GET', '/v1/usage?group_by=key')
    const buckets = usage['data'] as { key: string }[]
    assert.ok(!buckets.some((bucket) => bucket.key === id))
  })
}

test('a call that never reached upstream is released, and nothing is lost', async () => {
  const nobody = await ScriptedUpstream.start()
  const { url } = nobody
  await nobody.close()
  await using alone = await startBillingBench({ messagesUrl: url })
  const { id, key } = await alone.gateway.createKey('refused')
  await assertReleased(alone, await alone.call('/v1/messages', HAIKU, { key }), id)
})

test('a request that upstream read only in part is released, since it cannot have been processed', async () => {
  const { id, key } = await bench.gateway.createKey('half way')
  upstream.queue({ early: [{ reset: true }], reading: false })
  const long = { ...HAIKU, messages: [{ role: 'user', content: 'x'.repeat(24 * 1024 * 1024) }] }
  await assertReleased(bench, await bench.call('/v1/messages', long, { key }), id)
})
