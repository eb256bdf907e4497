import assert from 'node:assert/strict'
import fc from 'fast-check'
import { allEndpoints, findEndpoint, surfacesOf } from '../../src/providers/find-endpoint.ts'
import { namedModels } from '../../src/providers/named-models.ts'
import { NOT_READ } from '../../src/providers/request-facts.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'
import { words } from '../support/words.ts'

const segment = fc.stringMatching(/^[A-Za-z0-9._~:@-]{1,40}$/)

test('every endpoint is found on its own surface, with any ids', () => {
  const literals = new Set(allEndpoints().flatMap(({ template }) => template.split('/')))
  const isLiteral = (id: string) => literals.has(id.toLowerCase())
  fc.assert(
    fc.property(
      segment.filter((id) => !isLiteral(id)),
      (id) => {
        for (const endpoint of allEndpoints()) {
          const path = endpoint.template.replaceAll(/\{\w+\}/g, id)
          assert.equal(findEndpoint(endpoint.surface, endpoint.method, path), endpoint)
          assert.ok(surfacesOf(path).includes(endpoint.surface))
        }
      },
    ),
    { numRuns: runs(20) },
  )
})

test('no endpoint is found on a surface whose table lacks it', () => {
  assert.equal(findEndpoint('chat', 'POST', '/v1/messages'), null)
  assert.equal(findEndpoint('messages', 'POST', '/v1/chat/completions'), null)
})

for (const path of [
  '/v1/messages/',
  '/V1/messages',
  '/v1/Messages',
  '/v1//messages',
  '//v1/messages',
  'v1/messages',
  'xv1/messages',
  '/v1/messages?beta=true',
  '/v1/%6dessages',
  '/v1/messages%2f',
  '/v1/messages ',
  '/v1',
  '/',
  '',
  '*',
]) {
  test(`paths are not normalised: ${JSON.stringify(path)} is not /v1/messages`, () => {
    assert.equal(findEndpoint('messages', 'POST', path), null)
    assert.equal(surfacesOf(path).length, 0)
  })
}

test('a parameter matches exactly one non-empty segment', () => {
  assert.equal(findEndpoint('chat', 'GET', '/v1/responses/resp_1')?.template, '/v1/responses/{response_id}')
  assert.equal(findEndpoint('chat', 'GET', '/v1/responses/'), null)
  assert.equal(findEndpoint('chat', 'GET', '/v1/responses/resp_1/'), null)
  assert.equal(findEndpoint('chat', 'GET', '/v1/responses/resp/1'), null)
  assert.equal(findEndpoint('chat', 'GET', '/v1/files//content'), null)
})

test('a literal segment wins over a parameter, with any method and at any depth', () => {
  assert.equal(findEndpoint('chat', 'POST', '/v1/threads/runs')?.template, '/v1/threads/runs')
  assert.equal(findEndpoint('chat', 'POST', '/v1/threads/thread_1')?.template, '/v1/threads/{thread_id}')
  // Only DELETE /v1/threads/{thread_id} exists, and `runs` is not a thread.
  assert.equal(findEndpoint('chat', 'DELETE', '/v1/threads/runs'), null)
  assert.equal(findEndpoint('messages', 'POST', '/v1/environments/e/work/w/ack')?.billing, 'free')
  assert.equal(findEndpoint('messages', 'POST', '/v1/environments/e/work/poll/ack'), null)
})

test('another spelling of a literal does not match a parameter, and so no cheaper endpoint', () => {
  for (const id of words('%72uns RUNS Runs %52UNS thread_1%2Fruns thread_1%2FRuns')) {
    assert.equal(findEndpoint('chat', 'POST', `/v1/threads/${id}`), null, id)
  }
  for (const id of ['Compact', 'input_TOKENS', '%63ompact']) {
    assert.equal(findEndpoint('chat', 'POST', `/v1/responses/${id}`), null, id)
    assert.equal(findEndpoint('chat', 'GET', `/v1/responses/${id}`), null, id)
  }
})

test('a parameter may otherwise contain anything', () => {
  for (const id of words('runs1 thread_RUNS r.uns runs.json runs; a;b a%2fb %ff % %2572uns @ Thread,a=b')) {
    assert.equal(findEndpoint('chat', 'POST', `/v1/threads/${id}`)?.template, '/v1/threads/{thread_id}', id)
  }
})

test('a model in a path may contain dots and upper case', () => {
  for (const surface of ['messages', 'chat'] as const)
    for (const model of ['gpt-4.1', 'GPT.x', 'ft:gpt-4.1:Acme::x1', 'Models', 'v1.models'])
      assert.equal(findEndpoint(surface, 'GET', `/v1/models/${model}`)?.template, '/v1/models/{model}')
})

test('a WebSocket on a path is a different endpoint from POST or GET', () => {
  assert.equal(findEndpoint('chat', 'WS', '/v1/responses')?.model, 'elsewhere')
  assert.equal(findEndpoint('chat', 'POST', '/v1/responses')?.model, 'json')
  assert.equal(findEndpoint('chat', 'GET', '/v1/realtime'), null)
})

test('looking up any text never throws, and finds only paths with a template in the table', () => {
  const paths = fc.oneof(
    fc.string(),
    fc.array(segment, { maxLength: 12 }).map((parts) => `/v1/${parts.join('/')}`),
  )
  fc.assert(
    fc.property(paths, fc.constantFrom('messages', 'chat'), (path, surface) => {
      const found = findEndpoint(surface, 'GET', path)
      if (found !== null) assert.equal(path.split('/').length, found.template.split('/').length)
    }),
  )
})

test('the model in a path is its own segment, at any position', () => {
  const modelOf = (path: string): string | null => {
    const endpoint = findEndpoint('chat', 'GET', path)
    assert.ok(endpoint !== null)
    return namedModels(endpoint, path, NOT_READ).names[0] ?? null
  }
  assert.equal(modelOf('/v1/models/ft:gpt-4.1:acme::x1'), 'ft:gpt-4.1:acme::x1')
  assert.equal(modelOf('/v1/fine_tuning/checkpoints/ft:gpt-4.1:acme::x1/permissions'), 'ft:gpt-4.1:acme::x1')
  assert.equal(modelOf('/v1/files/file-1'), null)
})
