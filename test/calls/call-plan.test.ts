import assert from 'node:assert/strict'
import { type Prices, planRequest } from '../../src/calls/call-plan.ts'
import type { Surface } from '../../src/kernel/vocabulary.ts'
import { findEndpoint } from '../../src/providers/find-endpoint.ts'
import { prices } from '../pricing/worked-example.ts'
import { factsOf } from '../providers/request-facts-of.ts'
import { test } from '../support/suite.ts'

async function plan(
  surface: Surface,
  request: string,
  body: Record<string, unknown> | null,
  by: Prices = prices(),
) {
  const [method = '', path = ''] = request.split(' ')
  const endpoint = findEndpoint(surface, method, path)
  const facts = await factsOf(endpoint, body)
  const bodyBytes = Buffer.byteLength(JSON.stringify(body))
  return planRequest({ surface, method, path, endpoint, facts, bodyBytes, atMs: Date.now() }, by)
}

const RESPONSE = { model: 'gpt-6-luna', max_output_tokens: 100, input: 'hi' }
const MESSAGE = { model: 'claude-haiku-5-5', max_tokens: 10, messages: [] }

test('a request with limits holds exactly what they allow', async () => {
  assert.equal((await plan('chat', 'POST /v1/responses', RESPONSE)).hold.kind, 'bound')
  const { hold, context } = await plan('messages', 'POST /v1/messages', MESSAGE)
  assert.equal(hold.kind, 'bound')
  assert.equal(context.isUnbounded, undefined)
})

test('a request with any unbounded part holds everything', async () => {
  for (const more of [
    { tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'image_generation' }] }] },
    { tools: [{ type: 'function', description: 'x'.repeat(300_000) }] },
  ])
    assert.equal(
      (await plan('chat', 'POST /v1/responses', { ...RESPONSE, ...more })).hold.kind,
      'unbounded',
      JSON.stringify(more).slice(0, 100),
    )
  const fallbacks = await plan('messages', 'POST /v1/messages', { ...MESSAGE, fallbacks: 'default' })
  assert.equal(fallbacks.hold.kind, 'unbounded')
  assert.equal(fallbacks.context.isUnbounded, true)
})

test('an unbounded request for a model without a price is still unpriced', async () => {
  const { unpricedModel } = await plan('messages', 'POST /v1/messages', {
    ...MESSAGE,
    model: 'nobody-sells-this',
    fallbacks: 'default',
  })
  assert.equal(unpricedModel, 'nobody-sells-this')
})

test('an endpoint that mints credentials, if served, counts as unmetered', async () => {
  for (const request of ['POST /v1/realtime/sessions', 'POST /v1/organization/invites']) {
    const { unratable, metered } = await plan('chat', request, {})
    assert.deepEqual(unratable, { reason: 'endpoint_not_metered', refuse: 'limited' }, request)
    assert.equal(metered, false)
  }
})

test('a stored prompt may name a model, so the models are unknown and the hold is unbounded', async () => {
  for (const stored of [{ prompt: { id: 'p' } }, { previous_response_id: 'r' }, { conversation: 'c' }]) {
    const { hold, modelDefault } = await plan('chat', 'POST /v1/responses', { input: 'hi', ...stored })
    assert.deepEqual([hold.kind, modelDefault], ['unbounded', null], JSON.stringify(stored))
  }
})

test('an invalid model name does not count as a missing one', async () => {
  for (const model of [7, {}, [], true, 'm'.repeat(257)])
    assert.equal((await plan('chat', 'POST /v1/images/generations', { model })).modelDefault, null)
})

test('the call records the requested tier, else that of the upstream project', async () => {
  const flexible = prices({ chatDefaultTier: 'flex' })
  const tierOf = async (by: Prices, more: object, surface: Surface = 'chat') => {
    const path = surface === 'chat' ? 'POST /v1/responses/compact' : 'POST /v1/messages'
    return (await plan(surface, path, { ...RESPONSE, ...more }, by)).context.tierAsked
  }
  assert.equal(await tierOf(prices(), {}), null)
  assert.equal(await tierOf(prices(), { service_tier: 'priority' }), 'priority')
  assert.equal(await tierOf(flexible, {}), 'flex')
  assert.equal(await tierOf(flexible, { service_tier: 'auto' }), 'flex')
  assert.equal(await tierOf(flexible, { service_tier: 'default' }), 'default')
  assert.equal(await tierOf(flexible, {}, 'messages'), undefined)
})
