import assert from 'node:assert/strict'
import { after, beforeEach, test } from '../support/suite.ts'
import { startBillingBench } from './bench-of-one.ts'
import { startShownUpstream } from './shown-upstream.ts'

const upstream = await startShownUpstream()
const bench = await startBillingBench(upstream.urls)
after(async () => {
  await bench.close()
  await upstream.close()
})

/** At half the list price these cost $15 on claude-opus-5. */
const USAGE = { input_tokens: 1_000_000, output_tokens: 1_000_000 }
const messages = [{ role: 'user', content: 'Hi' }]
let batches = 0
let keyId = ''
let key = ''
beforeEach(async () => {
  batches += 1
  const made = await bench.gateway.createKey('batches', { monthly_budget_usd: 1_000 })
  keyId = made.id
  key = made.key
})

/** The one record that the batch has led to. */
async function childOf(requestId: string): Promise<readonly unknown[]> {
  const { data } = await bench.gateway.manage('GET', `/v1/keys/${keyId}/requests?parent_id=${requestId}`)
  const [child = {}] = data as Record<string, unknown>[]
  await bench.assertBalanced()
  return [child['model'], child['cost_usd'], child['priced_as_requested'], child['unpriced']]
}

async function messagesBatch(models: readonly string[], served: string): Promise<readonly unknown[]> {
  const ended = { id: `msgbatch_${batches}`, processing_status: 'ended' }
  const path = `/v1/messages/batches/${ended.id}`
  upstream.shows('POST /v1/messages/batches', { ...ended, processing_status: 'in_progress' })
  upstream.shows(`GET ${path}`, ended)
  const message = { model: served, usage: USAGE }
  upstream.shows(`GET ${path}/results`, { custom_id: 'a', result: { type: 'succeeded', message } })
  const requests = models.map((model, i) => ({
    ...{ custom_id: `entry-${i}`, params: { model, max_tokens: 64, messages } },
  }))
  const { requestId } = await bench.call('/v1/messages/batches', { requests }, { key })
  await bench.call(path, undefined, { method: 'GET', key })
  return await childOf(requestId)
}

test('a batch that is served under a name without a price is rated as the model that it names', async () => {
  const dated = 'claude-opus-5-20991231'
  assert.deepEqual(await messagesBatch(['claude-opus-5'], dated), [dated, 15, true, false])
})

test('of several models that a batch names the most expensive stands for a name without a price', async () => {
  const dated = 'claude-haiku-5-5-20991231'
  const cost = await messagesBatch(['claude-haiku-5-5', 'claude-opus-5'], dated)
  assert.deepEqual(cost, [dated, 15, true, false])
})

test('a batch that names a model without a price leaves that model to be priced later', async () => {
  const made = await bench.gateway.createKey('without a cap')
  keyId = made.id
  key = made.key
  const cost = await messagesBatch(['claude-opus-5', 'no-such-model'], 'no-such-model')
  assert.deepEqual(cost, ['no-such-model', 0, false, true])
})
