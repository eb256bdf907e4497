import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPricer } from '../../src/gateway/create-pricer.ts'
import { modelAsked } from '../../src/metering/request-facts.ts'
import { NO_DISCOUNT } from '../../src/pricing/discount.ts'
import { loadListPrices } from '../../src/pricing/load-book.ts'
import type { Surface } from '../../src/providers/endpoint.ts'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { factsOf } from '../providers/request-facts-of.ts'

const loaded = loadListPrices()
assert.ok(loaded.kind === 'book')
const pricer = createPricer(loaded.book, {
  discount: NO_DISCOUNT,
  unpriced: 'auto',
  chatDefaultTier: null,
  chatRegional: false,
})

async function plan(surface: Surface, request: string, body: Record<string, unknown> | null) {
  const [method = '', path = ''] = request.split(' ')
  const endpoint = findEndpoint(surface, method, path)
  const facts = await factsOf(endpoint, body)
  const bytes = Buffer.from(JSON.stringify(body))
  return pricer.plan({
    surface,
    method,
    path,
    endpoint,
    facts,
    modelAsked: modelAsked(facts),
    bodyBytes: bytes.length,
    atMs: Date.now(),
  })
}

const RESPONSE = { model: 'gpt-6-luna', max_output_tokens: 100, input: 'hi' }
const MESSAGE = { model: 'claude-haiku-5-5', max_tokens: 10, messages: [] }

test('what a request limits is held, and no more', async () => {
  assert.equal((await plan('chat', 'POST /v1/responses', RESPONSE)).hold.kind, 'bound')
  assert.equal((await plan('messages', 'POST /v1/messages', MESSAGE)).hold.kind, 'bound')
})

test('all is held for a request with something in it that it does not limit', async () => {
  const search = { type: 'web_search' }
  for (const more of [
    { tools: [{ type: 'namespace', name: 'n', tools: [search] }] },
    { tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'image_generation' }] }] },
    { input: [{ type: 'additional_tools', tools: [search] }] },
    { tools: [{ type: 'function', description: 'x'.repeat(300_000) }] },
  ])
    assert.equal(
      (await plan('chat', 'POST /v1/responses', { ...RESPONSE, ...more })).hold.kind,
      'unbounded',
      JSON.stringify(more).slice(0, 100),
    )
  const fallbacks = await plan('messages', 'POST /v1/messages', { ...MESSAGE, fallbacks: 'default' })
  assert.equal(fallbacks.hold.kind, 'unbounded')
})

test('a request without a limit for a model without a price stays one without a price', async () => {
  const { unpricedModel } = await plan('messages', 'POST /v1/messages', {
    ...MESSAGE,
    model: 'nobody-sells-this',
    fallbacks: 'default',
  })
  assert.equal(unpricedModel, 'nobody-sells-this')
})

test('no spelling of the path of credentials passes for a free reading of something else', async () => {
  for (const path of ['e/work/poll', 'a;b/work/poll', 'e/work/poll;c', 'e/work/POLL', 'e/work/p%6fll']) {
    const { unratable } = await plan('messages', `GET /v1/environments/${path}`, null)
    assert.deepEqual(unratable, { reason: 'endpoint_not_metered', refuse: 'always' }, path)
  }
  assert.equal((await plan('messages', 'GET /v1/environments/e/work/w', null)).unratable, null)
})
