import assert from 'node:assert/strict'
import { after, test } from '../support/suite.ts'
import { startBillingBench } from './bench-of-one.ts'
import { startShownUpstream } from './shown-upstream.ts'

const unknownModel = {
  model: 'claude-fable-5-2',
  max_tokens: 50,
  messages: [{ role: 'user', content: 'Hi' }],
}

async function benchWith(unpriced: 'auto' | 'refuse' | 'pass', creditUsd = 0) {
  const bench = await startBillingBench({ settings: { unpriced } })
  if (creditUsd > 0) await bench.credit(creditUsd)
  after(() => bench.close())
  return bench
}
const open = await benchWith('auto')
const enforced = await benchWith('auto', 10)
const refusing = await benchWith('refuse')
const passing = await benchWith('pass', 10)

for (const [name, bench] of [
  ['auto without a limit', open],
  ['pass under enforced credit', passing],
] as const) {
  test(`${name}: a model without a price is served at cost 0 and flagged`, async () => {
    const reply = await bench.call('/v1/messages', unknownModel)
    assert.equal(reply.status, 200)
    assert.equal(reply.header('x-svc-cost-usd'), '0')
    const record = await bench.record(reply.requestId)
    assert.equal(record['unpriced'], true)
    assert.ok(
      (record['usage'] as Record<string, number>)['output_tokens'],
      'its usage is kept, to be rated later',
    )
    await bench.assertBooksBalance()
  })
}

for (const [name, bench] of [
  ['auto under enforced credit', enforced],
  ['refuse', refusing],
] as const) {
  test(`${name}: a model without a price is refused as unknown, and nothing is sent`, async () => {
    const before = bench.simulator.requests
    const reply = await bench.call('/v1/messages', unknownModel)
    assert.equal(reply.status, 404)
    const { error } = JSON.parse(reply.body.toString()) as { error: Record<string, string> }
    assert.equal(error['type'], 'not_found_error')
    assert.equal(error['code'], 'model_not_priced')
    assert.match(error['message'] ?? '', /claude-fable-5-2.*no price/)
    assert.equal(reply.header('x-svc-cost-usd'), '0')
    assert.equal(bench.simulator.requests, before)
  })

  test(`${name}: an endpoint that cannot be metered is refused, and nothing is sent`, async () => {
    const before = bench.simulator.requests
    for (const [method, path, body] of [
      ['POST', '/v1/complete', {}],
      ['POST', '/v1/no/such/endpoint', {}],
      ['POST', '/v2/messages', {}],
    ] as const) {
      const reply = await bench.call(path, body, { method })
      assert.equal(reply.status, 404, path)
      assert.match(reply.body.toString(), /endpoint_not_metered/, path)
    }
    assert.equal(bench.simulator.requests, before)
  })
}

test('an unknown path is forwarded where no limit is at stake, and flagged', async () => {
  const reply = await open.call('/v1/no/such/endpoint', {})
  assert.equal(reply.status, 404)
  assert.doesNotMatch(reply.body.toString(), /endpoint_not_metered/)
})

test('free endpoints need no price, under any policy', async () => {
  for (const bench of [open, enforced, refusing, passing]) {
    const listed = await bench.call('/v1/models', undefined, { method: 'GET' })
    assert.equal(listed.status, 200)
    const counted = await bench.call('/v1/messages/count_tokens', unknownModel)
    assert.equal(counted.status, 200)
    assert.equal(counted.header('x-svc-cost-usd'), '0')
  }
})

test('videos and Assistants are refused to limited keys; for others they are upstream’s, at cost 0 and flagged', async () => {
  const upstream = await startShownUpstream()
  const bench = await startBillingBench(upstream.urls)
  after(async () => {
    await bench.close()
    await upstream.close()
  })
  const { key: capped } = await bench.gateway.createKey('capped', { monthly_budget_usd: 5 })
  const { key: allowed } = await bench.gateway.createKey('allowed', { allowed_models: ['sora-2'] })
  for (const path of [
    '/v1/videos',
    '/v1/videos/edits',
    '/v1/videos/video_1/remix',
    '/v1/assistants',
    '/v1/threads',
    '/v1/threads/runs',
    '/v1/threads/thread_1/messages',
    '/v1/threads/thread_1/runs',
    '/v1/threads/thread_1/runs/run_1/submit_tool_outputs',
    '/v1/live/sessions',
  ]) {
    upstream.shows(`POST ${path}`, { id: 'made', usage: { total_tokens: 9_000 } })
    for (const key of [capped, allowed]) {
      const refused = await bench.call(path, { model: 'sora-2' }, { surface: 'chat', key })
      const { error } = JSON.parse(refused.body.toString()) as { error: Record<string, string> }
      assert.deepEqual([refused.status, error['code']], [404, 'endpoint_not_metered'], path)
      assert.ok(error['message']?.includes(path), error['message'])
    }
    assert.equal(upstream.wasAsked(`POST ${path}`), false, path)
    const passed = await bench.call(path, { model: 'sora-2' }, { surface: 'chat' })
    assert.deepEqual(
      [passed.status, passed.header('x-svc-cost-usd'), passed.body.includes('made')],
      [200, '0', true],
    )
    assert.equal((await bench.record(passed.requestId))['unpriced'], true, path)
  }
})
