import assert from 'node:assert/strict'
import { isOutdated, toReplyHeaders, toUpstreamHeaders } from '../../src/http-calls/permitted-changes.ts'
import { test } from '../support/suite.ts'
import { words } from '../support/words.ts'

const upstream = {
  credential: ['x-api-key', 'provider'] as const,
  ownPrefix: 'x-svc-',
  bodyEdited: false,
  plainReply: false,
  protocols: null,
  idempotencyPrefix: '',
  fixedHeaders: [],
}
const rewrite = (...lines: string[]) => toUpstreamHeaders(lines, upstream)

test('client headers keep case, order and duplicates', () => {
  const lines = ['X-One', '1', 'x-one', '2', 'ACCEPT', '*/*', 'X-One', '1']
  assert.deepEqual(rewrite('x-api-key', 'ours', ...lines), ['x-api-key', 'provider', ...lines])
})

test('the provider’s credential replaces the client’s first one, and the others are dropped', () => {
  assert.deepEqual(
    rewrite('A', '1', 'Authorization', 'Bearer ours', 'B', '2', 'api-key', 'dummy', 'C', '3'),
    ['A', '1', 'x-api-key', 'provider', 'B', '2', 'C', '3'],
  )
})

test('without a provider key no credential is sent', () => {
  const lines = toUpstreamHeaders(['Authorization', 'Bearer ours'], { ...upstream, credential: null })
  assert.deepEqual(lines, [])
})

for (const name of words(`
  Proxy-Authorization Cookie OpenAI-Organization OpenAI-Project Anthropic-Workspace-Id X-Forwarded-For
  X-Forwarded-Whatever Forwarded Via X-Real-IP CF-Connecting-IP X-HTTP-Method-Override x-http-method
  X-Method-Override X-Svc-Cost-Usd Keep-Alive TE Trailer Transfer-Encoding Upgrade HTTP2-Settings
  Proxy-Connection Expect
`)) {
  test(`${name} does not reach upstream`, () => {
    assert.deepEqual(rewrite('x-api-key', 'ours', name, 'v'), ['x-api-key', 'provider'])
  })
}

for (const name of [
  'anthropic-version',
  'anthropic-beta',
  'openai-beta',
  'idempotency-key',
  'x-stainless-lang',
  '__proto__',
]) {
  test(`${name} reaches upstream`, () => {
    assert.ok(rewrite('x-api-key', 'ours', name, 'v').includes(name))
  })
}

test('headers named in Connection are dropped, except those that the request needs', () => {
  const lines = rewrite(
    'Connection',
    'x-hop, authorization, content-type, anthropic-version',
    'X-Hop',
    '1',
    'Authorization',
    'Bearer ours',
    'Content-Type',
    'application/json',
    'anthropic-version',
    '2023-06-01',
  )
  assert.deepEqual(lines, [
    'x-api-key',
    'provider',
    'Content-Type',
    'application/json',
    'anthropic-version',
    '2023-06-01',
  ])
})

test('hop-by-hop headers of upstream are dropped, including nominated ones', () => {
  const headers = ['Connection', 'keep-alive, X-Debug', 'Keep-Alive', 'timeout=5', 'x-debug', 'a', 'a', 'b']
  assert.deepEqual(toReplyHeaders(headers, 'x-svc-', true), ['a', 'b'])
})

test('response headers with our own prefix are dropped', () => {
  const headers = ['X-Svc-Cost-Usd', '0', 'x-svc-request-id', 'forged', 'x-svc', 'a']
  assert.deepEqual(toReplyHeaders(headers, 'x-svc-', true), ['x-svc', 'a'])
})

test('headers that describe a body are dropped once it is changed', () => {
  for (const name of ['content-length', 'content-md5', 'digest', 'content-digest', 'repr-digest']) {
    assert.equal(isOutdated(name, 'x'), true, name)
  }
  assert.equal(isOutdated('etag', '"abc"'), true)
})
