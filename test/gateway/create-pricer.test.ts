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
    body: () => bytes,
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

test('only a response can be in the background, and what it states is rated, but nothing is counted', async () => {
  const background = await plan('chat', 'POST /v1/responses', { ...RESPONSE, background: true })
  assert.deepEqual(background.unratable, { reason: 'endpoint_not_metered', refuse: 'limited' })
  assert.equal(background.unmeteredMember, 'background')
  assert.equal(background.metered, true)
  assert.equal(background.counts, false)
  assert.equal(background.hold.kind, 'bound')
  for (const value of [false, null]) {
    const plain = await plan('chat', 'POST /v1/responses', { ...RESPONSE, background: value })
    assert.equal(plain.unratable, null)
    assert.equal(plain.counts, true)
  }
  for (const [surface, request, body] of [
    ['messages', 'POST /v1/messages', MESSAGE],
    ['chat', 'POST /v1/chat/completions', RESPONSE],
    ['chat', 'POST /v1/responses/compact', RESPONSE],
    ['chat', 'POST /v1/embeddings', { model: 'text-embedding-3-small', input: 'hi' }],
  ] as const) {
    const { unratable, counts, hold } = await plan(surface, request, { ...body, background: true })
    assert.equal(unratable, null, request)
    assert.equal(counts, true, request)
    assert.notDeepEqual(hold, { kind: 'bound', nanos: 0n, listNanos: 0n }, request)
  }
})

test('an endpoint that hands out credentials, where it is served at all, is one that cannot be metered', async () => {
  for (const request of ['POST /v1/realtime/sessions', 'POST /v1/organization/invites']) {
    const { unratable, metered } = await plan('chat', request, {})
    assert.deepEqual(unratable, { reason: 'endpoint_not_metered', refuse: 'limited' }, request)
    assert.equal(metered, false)
  }
})
