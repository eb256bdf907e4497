import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { mintKey } from '../../src/keys/key-format.ts'
import { findRoute, routes } from '../../src/management/router.ts'
import { startGateway } from '../support/gateway.ts'
import { exchange } from '../support/raw-client.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { message } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'

/** The access of each kind of key to every endpoint: the tests are made from the table of routes. */

let passedMs = 0
const clock = { nowMs: () => Date.now() + passedMs, monotonicMs: () => performance.now() }
const upstream = await ScriptedUpstream.start()
const gateway = await startGateway({ chatUrl: `${upstream.url}/v1`, chatKey: 'pc', clock })
after(async () => {
  await gateway.close()
  await upstream.close()
})

async function call(method: string, path: string, lines: readonly string[], body = '') {
  const length = body === '' ? [] : [`Content-Length: ${body.length}`]
  const bytes = message(`${method} ${path} HTTP/1.1`, ['Host: h', ...lines, ...length], body)
  const { status, headerLines, body: answer } = await exchange(gateway, bytes, { method })
  if (method === 'HEAD') assert.equal(answer.length, 0)
  const isJson = headerValues(headerLines, 'content-type')[0] === 'application/json'
  const json = JSON.parse(method === 'HEAD' || !isJson ? '{}' : answer.toString()) as {
    error?: { code?: string }
  }
  return { status, headerLines, code: json.error?.code }
}

const bearer = (key: string): string[] => [`Authorization: Bearer ${key}`]

async function expiredKey(): Promise<string> {
  const expires_at = new Date(clock.nowMs() + 60_000).toISOString()
  const response = await fetch(`${gateway.url}/v1/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.adminKey}` },
    body: JSON.stringify({ name: 'soon over', expires_at }),
  })
  const { key } = (await response.json()) as { key: string }
  passedMs += 60_000
  return key
}

async function revokedKey(): Promise<string> {
  const { id, key } = await gateway.createKey('to be revoked')
  await gateway.revokeKey(id)
  return key
}

const wellFormed = gateway.apiKey
const lastChanged = wellFormed.slice(0, -1) + (wellFormed.endsWith('0') ? '1' : '0')

const strangers: readonly [who: string, lines: readonly string[]][] = [
  ['without a key', []],
  ['with an empty key', ['Authorization: Bearer ']],
  ['with a key of somebody else', bearer('sk-ant-api03-x')],
  ['with a malformed API key', bearer('svc_live_nonsense')],
  ['with a malformed admin key', bearer('svc_admin_nonsense')],
  ['with an API key that has one wrong character', bearer(lastChanged)],
  ['with an unknown API key', bearer(mintKey('svc', 'live').reveal())],
  ['with an unknown admin key', bearer(mintKey('svc', 'admin').reveal())],
  ['with a revoked API key', bearer(await revokedKey())],
  ['with an expired API key', bearer(await expiredKey())],
]

/** A call of our key, for the endpoint that shows it. */
const called = await fetch(`${gateway.url}/v1/models`, {
  headers: { authorization: `Bearer ${gateway.apiKey}` },
})
assert.equal(called.status, 200)
await called.arrayBuffer()

/** Paths at which an API key finds something of its own. */
const ownPaths: Readonly<Record<string, string>> = {
  '/gateway/v1/requests/{id}': `/gateway/v1/requests/${called.headers.get('x-svc-request-id')}`,
}

const forwardedBefore = upstream.requestCount

/** Routes that take a key; sessions.test.ts tests the routes of sessions. */
const withKeys = routes.filter(({ template }) => !template.endsWith('/session'))

for (const { method, template, access, success } of withKeys) {
  const path = template.replaceAll(/\{\w+\}/g, 'none')

  for (const [who, lines] of strangers) {
    test(`${method} ${template} 401: ${who}`, async () => {
      const { status, code } = await call(method, path, lines)
      assert.deepEqual([status, code], [401, 'invalid_api_key'])
    })
  }

  test(`${method} ${template} 400: with two different keys`, async () => {
    const lines = [...bearer(gateway.adminKey), `x-api-key: ${gateway.apiKey}`]
    const { status, code } = await call(method, path, lines)
    assert.deepEqual([status, code], [400, 'bad_request'])
  })

  if (access === 'admin') {
    test(`${method} ${template} 403: with an API key`, async () => {
      const { status, code } = await call(method, path, bearer(gateway.apiKey))
      assert.deepEqual([status, code], [403, 'admin_key_required'])
    })

    test(`${method} ${template} 403: with an API key, whatever else is wrong`, async () => {
      const { status } = await call(method, `${path}?no=1`, bearer(gateway.apiKey), '{')
      assert.equal(status, 403)
    })
  } else {
    test(`${method} ${template} ${success.status}: with an API key, for what is its own`, async () => {
      const own = ownPaths[template] ?? template
      assert.ok(!own.includes('{'), 'say in this test where an API key finds something of its own')
      assert.equal((await call(method, own, bearer(gateway.apiKey))).status, success.status)
    })
  }

  test(`${method} ${template} neither 401 nor 403: with an admin key`, async () => {
    const { status } = await call(method, path, bearer(gateway.adminKey))
    assert.ok(status !== 401 && status !== 403 && status < 500, String(status))
  })
}

for (const { template } of withKeys.filter(({ method }) => method === 'GET')) {
  test(`HEAD ${template}: whoever asks, the head is that of GET, and no cache keeps either`, async () => {
    const path = ownPaths[template] ?? template.replaceAll(/\{\w+\}/g, 'none')
    const keys = [[], bearer('svc_live_nonsense'), bearer(gateway.apiKey), bearer(gateway.adminKey)]
    for (const lines of keys) {
      const get = await call('GET', path, lines)
      const head = await call('HEAD', path, lines)
      assert.equal(head.status, get.status)
      // Metrics change between two requests, and their length with them.
      const lengths = template === '/metrics' ? [] : ['content-length']
      for (const name of ['content-type', 'cache-control', ...lengths]) {
        assert.deepEqual(headerValues(head.headerLines, name), headerValues(get.headerLines, name), name)
      }
      assert.deepEqual(headerValues(get.headerLines, 'cache-control'), ['no-store'], String(get.status))
    }
  })
}

test('an API key may call these endpoints and no others', () => {
  const open = routes.filter(({ access }) => access === 'any_key')
  assert.deepEqual(open.map(({ method, template }) => `${method} ${template}`).sort(), [
    'GET /gateway/v1/requests/{id}',
    'GET /v1/keys/me',
    'GET /v1/usage',
  ])
})

const templates = [...new Set(routes.map(({ template }) => template))]

for (const template of templates) {
  const path = template.replaceAll(/\{\w+\}/g, 'none')

  test(`PUT ${template} 401, 403, 405: a method that it does not have`, async () => {
    assert.equal((await call('PUT', path, [])).status, 401)
    assert.equal((await call('PUT', path, bearer(gateway.apiKey))).status, 403)
    const { status, headerLines } = await call('PUT', path, bearer(gateway.adminKey))
    assert.equal(status, 405)
    const has = ['GET', 'HEAD', 'POST', 'PATCH', 'DELETE'].filter(
      (each) => findRoute(each, path).kind === 'route',
    )
    assert.deepEqual(headerValues(headerLines, 'allow').join().split(', ').sort(), has.sort())
  })
}

/** Paths of the gateway's own that have no endpoint, or not yet. */
const empty = [
  '/gateway',
  '/gateway/',
  '/gateway/v1',
  '/gateway/v1/anything',
  '/gateway/v1/balance/',
  '/gateway/openapi',
  '/v1/usage',
  '/v1/keys/',
  '/v1/keys/none/nothing',
  '/v1/keys/none/revoke/again',
].filter((path) => findRoute('GET', path).kind === 'none')

for (const path of empty) {
  test(`GET ${path} 401, 403, 404: is ours and no endpoint`, async () => {
    for (const [who, lines] of strangers) assert.equal((await call('GET', path, lines)).status, 401, who)
    assert.equal((await call('GET', path, bearer(gateway.apiKey))).status, 403)
    assert.equal((await call('GET', path, bearer(gateway.adminKey))).status, 404)
  })
}

for (const template of [...templates, ...empty]) {
  test(`OPTIONS ${template} 401: a preflight, with no word on other origins`, async () => {
    const path = template.replaceAll(/\{\w+\}/g, 'none')
    const lines = [
      'Origin: https://app.test',
      'Access-Control-Request-Method: GET',
      'Access-Control-Request-Headers: authorization',
    ]
    const { status, headerLines } = await call('OPTIONS', path, lines)
    assert.equal(status, 401)
    assert.deepEqual(
      headerLines.filter((line) => /^access-control-/i.test(line)),
      [],
    )
  })
}

test('of all this nothing went upstream', () => {
  assert.equal(upstream.requestCount, forwardedBefore)
})
