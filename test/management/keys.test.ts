import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startGateway } from '../support/gateway.ts'

const gateway = await startGateway({ messagesUrl: 'http://127.0.0.1:9' })
after(() => gateway.close())

interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Record<string, unknown> & { error?: { code: string; message: string; param: string | null } }
}

async function call(method: string, path: string, key: string | null, body?: string): Promise<Answer> {
  const response = await fetch(gateway.url + path, {
    method,
    headers: key === null ? {} : { authorization: `Bearer ${key}` },
    ...(body === undefined ? {} : { body }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, body: text === '' ? {} : JSON.parse(text) }
}

const asAdmin = (method: string, path: string, body?: unknown) =>
  call(method, path, gateway.adminKey, body === undefined ? undefined : JSON.stringify(body))

test('POST /v1/keys 201: answers the record and, once, the secret', async () => {
  const { status, headers, body } = await asAdmin('POST', '/v1/keys', { name: 'billing service' })
  assert.equal(status, 201)
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.match(String(headers.get('x-svc-request-id')), /^req_[0-9A-Z]{26}$/)
  const { key, id, created_at, ...rest } = body
  assert.match(String(id), /^key_[0-9A-Z]{26}$/)
  assert.match(String(key), /^svc_live_[0-9A-Za-z]{49}$/)
  assert.match(String(created_at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.deepEqual(rest, {
    object: 'key',
    name: 'billing service',
    prefix: String(key).slice(0, 16),
    last4: String(key).slice(-4),
    status: 'usable',
    expires_at: null,
    revoked_at: null,
    last_used_at: null,
  })
})

const badBodies: readonly [what: string, body: string, param: string | null, message: RegExp][] = [
  ['a body that is no JSON', '{', null, /not JSON/],
  ['a body that is no object', '[]', null, /JSON object/],
  ['no name', '{}', 'name', /name is required/],
  ['an empty body', '', 'name', /name is required/],
  ['an empty name', '{"name":""}', 'name', /must not be empty/],
  ['a name of 121 characters', JSON.stringify({ name: 'x'.repeat(121) }), 'name', /at most 120/],
  ['a name that is no text', '{"name":7}', 'name', /must be a text/],
  ['a field that does not exist', '{"name":"x","monthly_budget":5}', 'monthly_budget', /not a field/],
  ['__proto__', '{"name":"x","__proto__":{}}', '__proto__', /not a field/],
]
for (const [what, text, param, message] of badBodies) {
  test(`POST /v1/keys 400: ${what}`, async () => {
    const { status, body } = await call('POST', '/v1/keys', gateway.adminKey, text)
    assert.equal(status, 400)
    assert.equal(body.error?.code, 'bad_request')
    assert.equal(body.error?.param, param)
    assert.match(body.error?.message ?? '', message)
    assert.match(String(body['request_id']), /^req_/)
  })
}

test('POST /v1/keys 413: a body beyond 64 KiB', async () => {
  const { status, body } = await asAdmin('POST', '/v1/keys', { name: 'x'.repeat(70_000) })
  assert.equal(status, 413)
  assert.equal(body.error?.code, 'body_too_large')
})

const guarded: readonly [method: string, path: string][] = [
  ['POST', '/v1/keys'],
  ['POST', '/v1/keys/key_x/revoke'],
  ['DELETE', '/v1/keys/key_x'],
  ['GET', '/gateway/v1/anything'],
  ['GET', '/dashboard'],
  ['GET', '/v1/usage'],
  ['GET', '/metrics'],
]
for (const [method, path] of guarded) {
  test(`${method} ${path} 401: without a key, with a wrong one`, async () => {
    for (const key of [null, 'svc_admin_nonsense', 'sk-ant-x']) {
      const { status, body } = await call(method, path, key)
      assert.equal(status, 401)
      assert.equal(body.error?.code, 'invalid_api_key')
    }
  })

  test(`${method} ${path} 403: with an API key`, async () => {
    const { status, body } = await call(method, path, gateway.apiKey)
    assert.equal(status, 403)
    assert.equal(body.error?.code, 'admin_key_required')
  })
}

test('an owned path that is no endpoint is 404 for an admin, and never goes upstream', async () => {
  for (const path of ['/gateway/v1/anything', '/v1/keys/a/b/c', '/dashboard']) {
    assert.equal((await asAdmin('GET', path)).status, 404, path)
  }
})

test('a method that an endpoint does not have is 405 and names those it has', async () => {
  const { status, body } = await asAdmin('PUT', '/v1/keys')
  assert.equal(status, 405)
  assert.match(body.error?.message ?? '', /has POST, not PUT/)
})

for (const [method, path] of [
  ['POST', (id: string) => `/v1/keys/${id}/revoke`],
  ['DELETE', (id: string) => `/v1/keys/${id}`],
] as const) {
  test(`${method} ${path('{id}')} 200: revokes at once, and again answers the same`, async () => {
    const { id, key } = await gateway.createKey('to be revoked')
    const first = await asAdmin(method, path(id))
    assert.equal(first.status, 200)
    assert.equal(first.body['status'], 'revoked')
    assert.equal(first.body['key'], undefined)
    assert.deepEqual((await asAdmin(method, path(id))).body, first.body)

    const call401 = await call('GET', '/v1/models', key)
    assert.equal(call401.status, 401)
    assert.match(call401.body.error?.message ?? '', /was revoked/)
  })

  test(`${method} ${path('{id}')} 404: there is no such key`, async () => {
    const { status, body } = await asAdmin(method, path('key_none'))
    assert.equal(status, 404)
    assert.equal(body.error?.code, 'not_found')
  })
}

test('GET /healthz and /readyz 200: without a key', async () => {
  for (const path of ['/healthz', '/readyz']) {
    const { status, body, headers } = await call('GET', path, null)
    assert.equal(status, 200)
    assert.deepEqual(body, { status: 'ok' })
    assert.match(String(headers.get('x-svc-request-id')), /^req_/)
  }
})

test('an admin key cannot call models, and is told so', async () => {
  const { status, body } = await asAdmin('GET', '/v1/models')
  assert.equal(status, 401)
  assert.match(body.error?.message ?? '', /admin key/)
})
