import assert from 'node:assert/strict'
import { compare } from '../support/compare.ts'
import { assertOwnError } from '../support/own-error.ts'
import { startPair } from '../support/pair.ts'
import { after, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { message, sized } from '../support/wire-bytes.ts'

const pair = await startPair()
after(() => pair.close())

const asked = {
  messages: 'content-type,anthropic-version,x-api-key',
  chat: 'authorization,content-type',
} as const

const allowed = message('HTTP/1.1 204 No Content', [
  'Access-Control-Allow-Origin: https://app.test',
  'access-control-allow-headers: *',
  'Vary: Origin',
])

for (const surface of surfaces) {
  for (const target of [surface.readEndpoint, '/v1/models', '/v1/unknown?x=%zz']) {
    test(`${surface.name}: the preflight of ${target} goes upstream without a credential`, async () => {
      const request = message(`OPTIONS ${target} HTTP/1.1`, [
        'Host: api.example.test',
        'Origin: https://app.test',
        'Access-Control-Request-Method: POST',
        `Access-Control-Request-Headers: ${asked[surface.name]}`,
        'User-Agent: Browser/1',
        'Cookie: a=b',
      ])
      const { upstream, gateway } = pair
      const { through } = await compare({ upstream, gateway, request, script: () => [{ send: allowed }] })
      assert.deepEqual(
        through.received.headerLines.filter((line) => /provider-key|a=b/.test(line)),
        [],
      )
      assert.equal(through.received.body.length, 0)
    })
  }

  test(`${surface.name}: a preflight with a body loses it on the way`, async () => {
    const lines = ['Host: h', 'Origin: https://app.test', 'Access-Control-Request-Method: POST']
    const version = surface.name === 'messages' ? ['Access-Control-Request-Headers: anthropic-version'] : []
    const arrival = pair.upstream.nextRequest()
    pair.upstream.queue([{ send: allowed }])
    const reply = await pair.exchange(
      sized(`OPTIONS ${surface.readEndpoint} HTTP/1.1`, [...lines, ...version], 'body'),
    )
    assert.equal(reply.status, 204)
    const received = await arrival
    assert.equal(received.body.length, 0)
  })

  test(`${surface.name}: an OPTIONS that is no preflight needs a key like any other call`, async () => {
    const count = pair.upstream.requestCount
    const version = surface.name === 'messages' ? ['anthropic-version: 2023-06-01'] : []
    for (const lines of [[], ['Origin: https://app.test'], ['Access-Control-Request-Method: POST']]) {
      const request = message(`OPTIONS ${surface.readEndpoint} HTTP/1.1`, ['Host: h', ...version, ...lines])
      assertOwnError(await pair.exchange(request), surface, 401, 'invalid_api_key')
    }
    assert.equal(pair.upstream.requestCount, count)
  })

  test(`${surface.name}: a preflight that carries a wrong key is judged by it`, async () => {
    const count = pair.upstream.requestCount
    const lines = ['Host: h', 'Origin: https://app.test', 'Access-Control-Request-Method: POST']
    const request = message(`OPTIONS ${surface.readEndpoint} HTTP/1.1`, [
      ...lines,
      ...surface.lines('svc_live_none'),
    ])
    assertOwnError(await pair.exchange(request), surface, 401, 'invalid_api_key')
    assert.equal(pair.upstream.requestCount, count)
  })
}

test('a preflight for one of our own paths is never forwarded', async () => {
  const count = pair.upstream.requestCount
  const lines = ['Host: h', 'Origin: https://app.test', 'Access-Control-Request-Method: POST']
  for (const path of ['/v1/keys', '/v1/keys/key_1', '/v1/usage', '/gateway/v1/requests', '/healthz']) {
    const reply = await pair.exchange(message(`OPTIONS ${path} HTTP/1.1`, lines))
    assert.ok(reply.status >= 200, path)
  }
  assert.equal(pair.upstream.requestCount, count)
})
