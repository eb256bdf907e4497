import assert from 'node:assert/strict'
import { after, test } from '../support/suite.ts'
import { startBillingBench } from './bench-of-one.ts'

const unknownModel = {
  model: 'claude-fable-x',
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
    await bench.assertBalanced()
  })
}

for (const [name, bench] of [
  ['auto under enforced credit', enforced],
  ['refuse', refusing],
] as const) {
  test(`${name}: a model without a price is refused, and nothing is sent`, async () => {
    const before = bench.simulator.requests
    const reply = await bench.call('/v1/messages', unknownModel)
    assert.equal(reply.status, 400)
    const { error } = JSON.parse(reply.body.toString()) as { error: Record<string, string> }
    assert.equal(error['type'], 'invalid_request_error')
    assert.equal(error['code'], 'model_not_priced')
    assert.match(error['message'] ?? '', /claude-fable-x.*no price.*Did you mean "claude-fable-5"\?/)
    const strange = await bench.call('/v1/messages', { ...unknownModel, model: 'nobody-1' })
    assert.match(strange.body.toString(), /no price in this gateway yet\. Check the name/)
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

test('an unknown path is forwarded for a key without limits', async () => {
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
