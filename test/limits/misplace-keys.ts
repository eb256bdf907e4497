import assert from 'node:assert/strict'
import { mintKey } from '../../src/keys/key-format.ts'
import { bodyOf } from './gated-bench.ts'
import type { Visitor } from './visitor.ts'

/** Served, failed upstream, refused and malformed calls, with the key in its header and elsewhere. */
export async function makeCalls(
  visitor: Visitor,
  key: string,
  other: string,
  adminKey: string,
): Promise<void> {
  const host = 'Host: gateway\r\nanthropic-version: 2023-06-01'
  const auth = `x-api-key: ${key}`
  const post = 'POST /v1/messages HTTP/1.1'
  const body = bodyOf('messages', 50)
  const messages = (what: string, ...lines: string[]) => visitor.raw(what, [post, host, ...lines], body)
  const withKeyIn = (content: string) => body.replace('May I pass?', content)

  assert.equal(await messages('a call', auth), 200)
  assert.equal(await visitor.raw('a stream', [post, host, auth], bodyOf('messages', 50, true)), 200)
  assert.equal(
    await visitor.raw('a call of a dead upstream', [
      'GET /v1/models HTTP/1.1',
      'Host: gateway',
      `Authorization: Bearer ${key}`,
    ]),
    502,
  )
  for (const behaviour of ['status=401', 'status=529', 'reset', 'cut=byte:10']) {
    await messages(behaviour, auth, `x-simulator: ${behaviour}`)
  }

  const unknown = mintKey('svc', 'live').reveal()
  visitor.keys.push({ name: 'a key of nobody', value: unknown })
  for (const [what, lines, status] of [
    ['no key', [], 401],
    ['an unknown key', [`x-api-key: ${unknown}`], 401],
    ['a mistyped key', [`x-api-key: ${key.slice(0, -1)}`], 401],
    ['a key with a tail', [`Authorization: Bearer ${key}AAAA`], 401],
    ['a key in the wrong scheme', [`Authorization: Basic ${Buffer.from(`:${key}`).toString('base64')}`], 401],
    ['a key in the wrong header', [`x-goog-api-key: ${key}`], 401],
    ['a key in a cookie', [`Cookie: key=${key}`], 401],
    ['an admin key', [`x-api-key: ${adminKey}`], 401],
    ['two keys', [auth, `Authorization: Bearer ${other}`], 400],
    ['the header twice', [auth, `x-api-key: ${other}`], 400],
    ['a key in the user agent', [auth, `User-Agent: app/1.0 (${key})`], 200],
    ['a key in the host', [auth, `X-Forwarded-Host: ${key}`], 200],
    ['a key as request id', [auth, `x-svc-request-id: ${key}`, `x-request-id: ${key}`], 200],
    ['an Idempotency-Key', [auth, 'Idempotency-Key: once'], 200],
    ['a WebSocket', [auth, 'Connection: Upgrade', 'Upgrade: websocket'], 200],
  ] as const) {
    assert.equal(await messages(what, ...lines), status, what)
  }
  for (const [what, target] of [
    ['the query', `/v1/models?api_key=${key}&x=${other}`],
    ['the path', `/v1/models/${key}`],
    ['a path of nobody', `/v1/${key}/${other}`],
    ['a bad target', `/v1/../${key}`],
    ['a long path', `/v1/models/${'x'.repeat(1_020)}${key}`],
    ['a path of ours', `/v1/keys/${key}`],
    ['a query of ours', `/v1/keys?search=${key}`],
  ] as const) {
    await visitor.raw(`a key in ${what}`, [`GET ${target} HTTP/1.1`, host, auth])
  }
  await visitor.raw('a key in the prompt', [post, host, auth], withKeyIn(key))
  await visitor.raw('a key as model', [post, host, auth], body.replace('claude-haiku-5-5', key))
  await visitor.raw(
    'a key as model of a capped key',
    [post, host, `x-api-key: ${other}`],
    body.replace('claude-haiku-5-5', key),
  )
  await visitor.raw('a key as tier', [post, host, auth], body.replace('{', `{"service_tier":"${key}",`))
  await messages('a key as model served', auth, `x-simulator: model=${key}`)
  await messages('a key as tier served', auth, `x-simulator: tier=${key}`)
  await visitor.raw('a key in no JSON', [post, host, auth], `{"model": ${key}`)
  await visitor.raw('a key as method', [`${key.slice(0, 30)} /v1/messages HTTP/1.1`, host, auth])
  await visitor.raw('a key for a version', [`GET /v1/models HTTP/${key}`, host, auth])
}
