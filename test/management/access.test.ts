import assert from 'node:assert/strict'
import { mintKey } from '../../src/keys/key-format.ts'
import { routes } from '../../src/management/endpoints.ts'
import { findRoute } from '../../src/management/router.ts'
import { startGateway } from '../support/gateway.ts'
import { exchange } from '../support/raw-client.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'
import { message } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'

/** The access of each kind of key to every endpoint, generated from the route table. */

const upstream = await ScriptedUpstream.start()
const gateway = await startGateway({ chatUrl: `${upstream.url}/v1`, chatKey: 'pc' })
closeAfter(gateway, upstream)

async function call(method: string, path: string, lines: readonly string[], body = '') {
  const length = body === '' ? [] : [`Content-Length: ${body.length}`]
  const bytes = message(`${method} ${path} HTTP/1.1`, ['Host: h', ...lines, ...length], body)
  const { status, headerLines, body: answer } = await exchange(gateway, bytes, { method })
  if (method === 'HEAD') assert.equal(answer.length, 0)
  const isJson = headerValues(headerLines, 'content-type')[0] === 'application/json'
  const json = JSON.parse(method === 'HEAD' || !isJson ? '{}' : answer.toString()) as {
    error?: { code?: string; message?: string }
  }
  return { status, headerLines, ...json.error }
}

const bearer = (key: string): string[] => [`Authorization: Bearer ${key}`]

async function revokedKey(): Promise<string> {
  const { id, key } = await gateway.createKey('to be revoked')
  await gateway.revokeKey(id)
  return key
}

/** Three requests without a valid key; test/hostile and the credential tests have others. */
const strangers: readonly [who: string, lines: readonly string[]][] = [
  ['without a key', []],
  ['with an unknown admin key', bearer(mintKey('svc', 'admin').reveal())],
  ['with a revoked API key', bearer(await revokedKey())],
]

/** A call of our key, for the endpoint that reads it. */
const called = await fetch(`${gateway.url}/v1/models`, {
  headers: { authorization: `Bearer ${gateway.apiKey}` },
})
assert.equal(called.status, 200)
await called.arrayBuffer()

/** Paths where an API key reads something of its own. */
const ownPaths: Readonly<Record<string, string>> = {
  '/gateway/v1/requests/{id}': `/gateway/v1/requests/${called.headers.get('x-svc-request-id')}`,
}

const forwardedBefore = upstream.requestCount

/** Routes that take a key; sessions.test.ts tests the routes of sessions. */
const withKeys = routes.filter(
  ({ template, requiredRole }) => !template.endsWith('/session') && requiredRole !== 'anyone',
)

for (const { method, template, requiredRole, status: done } of withKeys) {
  const path = template.replaceAll(/\{\w+\}/g, 'none')

  test(`${method} ${template}: 401 without a valid key, 400 with two keys, 403 with an API key unless permitted`, async () => {
    for (const [who, lines] of strangers) {
      const { status, code } = await call(method, path, lines)
      assert.deepEqual([status, code], [401, 'invalid_api_key'], who)
    }
    const two = [...bearer(gateway.adminKey), `x-api-key: ${gateway.apiKey}`]
    assert.equal((await call(method, path, two)).status, 400)
    if (requiredRole !== 'api_key') {
      const { status, code } = await call(method, `${path}?no=1`, bearer(gateway.apiKey), '{')
      assert.deepEqual([status, code], [403, 'admin_key_required'])
    } else {
      const own = ownPaths[template] ?? template
      assert.ok(!own.includes('{'), 'add to this test a path with which an API key reads its own records')
      assert.equal((await call(method, own, bearer(gateway.apiKey))).status, done)
    }
    const { status } = await call(method, path, bearer(gateway.adminKey))
    assert.ok(status !== 401 && status !== 403 && status < 500, String(status))
  })
}

for (const { template } of withKeys.filter(({ method }) => method === 'GET')) {
  test(`HEAD ${template}: the headers equal those of GET with any key, with cache-control: no-store`, async () => {
    const path = ownPaths[template] ?? template.replaceAll(/\{\w+\}/g, 'none')
    const keys = [[], bearer('svc_live_nonsense'), bearer(gateway.apiKey), bearer(gateway.adminKey)]
    for (const lines of keys) {
      const get = await call('GET', path, lines)
      const head = await call('HEAD', path, lines)
      assert.equal(head.status, get.status)
      // Metrics, and so their length, change between two requests.
      const lengths = template === '/metrics' ? [] : ['content-length']
      for (const name of ['content-type', 'cache-control', ...lengths]) {
        assert.deepEqual(headerValues(head.headerLines, name), headerValues(get.headerLines, name), name)
      }
      assert.deepEqual(headerValues(get.headerLines, 'cache-control'), ['no-store'], String(get.status))
    }
  })
}

test('viewers cannot change anything, and only operators may call the operator endpoints', () => {
  const named = (some: typeof routes) => some.map(({ method, template }) => `${method} ${template}`)
  const changes = withKeys.filter(({ method }) => method !== 'GET')
  assert.deepEqual(
    named(changes.filter(({ requiredRole }) => requiredRole !== 'admin' && requiredRole !== 'operator')),
    [],
  )
  assert.deepEqual(named(routes.filter(({ requiredRole }) => requiredRole === 'operator')).sort(), [
    'DELETE /gateway/v1/prices/{model}',
    ...['GET /gateway/v1/accounts', 'GET /gateway/v1/accounts/{id}'],
    ...['GET /gateway/v1/prices/missing', 'GET /metrics'],
    ...['PATCH /gateway/v1/accounts/{id}', 'POST /gateway/v1/accounts'],
    ...['POST /gateway/v1/accounts/{id}/resume', 'POST /gateway/v1/accounts/{id}/suspend'],
    ...['POST /gateway/v1/credits', 'POST /gateway/v1/people/{id}/move'],
    ...['POST /gateway/v1/prices/push', 'PUT /gateway/v1/prices/{model}'],
  ])
})

test('the OpenAPI document needs no key', async () => {
  for (const lines of [[], bearer(gateway.apiKey), bearer(gateway.adminKey)])
    assert.equal((await call('GET', '/gateway/openapi.json', lines)).status, 200)
})

test('an API key may call only these endpoints', () => {
  const open = routes.filter(({ requiredRole }) => requiredRole === 'api_key')
  assert.deepEqual(open.map(({ method, template }) => `${method} ${template}`).sort(), [
    'GET /gateway/v1/requests',
    'GET /gateway/v1/requests/{id}',
    'GET /v1/keys/me',
    'GET /v1/usage',
  ])
})

const templates = [...new Set(routes.map(({ template }) => template))]

test('an unsupported method answers 401, 403, then 405 with the allowed methods', async () => {
  for (const template of templates) {
    const path = template.replaceAll(/\{\w+\}/g, 'none')
    const method = findRoute('PUT', path).kind === 'route' ? 'PATCH' : 'PUT'
    assert.equal((await call(method, path, [])).status, 401)
    const { code, message = '' } = await call(method, path, bearer(gateway.apiKey))
    const isOpen = routes.some((each) => each.template === template && each.requiredRole === 'api_key')
    assert.deepEqual([code, /use GET or HEAD/.test(message)], ['admin_key_required', isOpen])
    const { status, headerLines } = await call(method, path, bearer(gateway.adminKey))
    assert.equal(status, 405)
    const has = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'].filter(
      (each) => findRoute(each, path).kind === 'route',
    )
    assert.deepEqual(headerValues(headerLines, 'allow').join().split(', ').sort(), has.sort())
  }
})

const empty = ['/gateway', '/gateway/v1/anything', '/gateway/v1/balance/', '/gateway/v1/audit', '/v1/keys/']

test('an unknown own path answers 401, 403, then 404', async () => {
  for (const path of empty) {
    for (const [who, lines] of strangers) assert.equal((await call('GET', path, lines)).status, 401, who)
    assert.equal((await call('GET', path, bearer(gateway.apiKey))).status, 403)
    assert.equal((await call('GET', path, bearer(gateway.adminKey))).status, 404)
  }
})

test('a CORS preflight of an own path is 401, without CORS headers', async () => {
  for (const template of [...templates, ...empty]) {
    const lines = [
      'Origin: https://app.test',
      'Access-Control-Request-Method: GET',
      'Access-Control-Request-Headers: authorization',
    ]
    const path = template.replaceAll(/\{\w+\}/g, 'none')
    const { status, headerLines, message: sentence = '' } = await call('OPTIONS', path, lines)
    assert.equal(status, 401)
    assert.match(sentence, /has no key/)
    assert.ok(!headerLines.some((line) => /^access-control-/i.test(line)))
  }
})

test('none of these requests reached upstream', () => assert.equal(upstream.requestCount, forwardedBefore))
