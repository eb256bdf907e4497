import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toUpstreamHeaders } from '../../src/gateway/forwarded-headers.ts'

const upstream = {
  credential: ['x-api-key', 'provider'] as const,
  host: 'up.example',
  contentLength: null,
  ownPrefix: 'x-svc-',
  bodyEdited: false,
}
const rewrite = (...lines: string[]) => toUpstreamHeaders(lines, upstream)

test('case, order and duplicates of the client stay', () => {
  const lines = ['X-One', '1', 'x-one', '2', 'ACCEPT', '*/*', 'X-One', '1']
  assert.deepEqual(rewrite('x-api-key', 'ours', ...lines), [
    'host',
    'up.example',
    'x-api-key',
    'provider',
    ...lines,
  ])
})

test('the provider’s credential takes the place of the first one the client sent, the others go', () => {
  assert.deepEqual(
    rewrite('A', '1', 'Authorization', 'Bearer ours', 'B', '2', 'api-key', 'dummy', 'C', '3'),
    ['host', 'up.example', 'A', '1', 'x-api-key', 'provider', 'B', '2', 'C', '3'],
  )
})

test('without a provider key nothing is sent as credential', () => {
  const lines = toUpstreamHeaders(['Authorization', 'Bearer ours'], { ...upstream, credential: null })
  assert.deepEqual(lines, ['host', 'up.example'])
})

for (const name of [
  'Proxy-Authorization',
  'Cookie',
  'OpenAI-Organization',
  'OpenAI-Project',
  'Anthropic-Workspace-Id',
  'X-Forwarded-For',
  'X-Forwarded-Whatever',
  'Forwarded',
  'Via',
  'X-Real-IP',
  'CF-Connecting-IP',
  'X-HTTP-Method-Override',
  'x-http-method',
  'X-Method-Override',
  'X-Svc-Cost-Usd',
  'Keep-Alive',
  'TE',
  'Trailer',
  'Transfer-Encoding',
  'Upgrade',
  'HTTP2-Settings',
  'Proxy-Connection',
  'Expect',
]) {
  test(`${name} does not reach upstream`, () => {
    assert.deepEqual(rewrite('x-api-key', 'ours', name, 'v'), ['host', 'up.example', 'x-api-key', 'provider'])
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

test('what Connection names is dropped, unless the meaning of the request rests on it', () => {
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
    'host',
    'up.example',
    'x-api-key',
    'provider',
    'Content-Type',
    'application/json',
    'anthropic-version',
    '2023-06-01',
  ])
})

test('a known length is announced anew', () => {
  const lines = toUpstreamHeaders(['Content-Length', '7'], {
    ...upstream,
    credential: null,
    contentLength: 7,
  })
  assert.deepEqual(lines, ['host', 'up.example', 'content-length', '7'])
})
