import assert from 'node:assert/strict'
import { mintKey } from '../../src/keys/key-format.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'
import { movableClock } from './movable-clock.ts'

const HOURS_12_MS = 12 * 3_600_000

const clock = movableClock()
const upstream = await ScriptedUpstream.start()
const gateway = await startGateway({
  chatUrl: `${upstream.url}/v1`,
  clock,
  settings: { trustedProxies: ['127.0.0.1'] },
})
closeAfter(gateway, upstream)

type Headers = Readonly<Record<string, string>>

async function send(
  method: string,
  path: string,
  headers: Headers = {},
  body?: unknown,
  to: TestGateway = gateway,
) {
  const response = await fetch(to.url + path, {
    method,
    headers,
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  const json = (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>
  const code = (json['error'] as { code?: string } | undefined)?.code
  return { status: response.status, headers: response.headers, json, code }
}

const signIn = (adminKey: string, headers: Headers = {}) =>
  send('POST', '/gateway/v1/session', headers, { admin_key: adminKey })

async function openSession(adminKey = gateway.adminKey) {
  const { status, headers, json } = await signIn(adminKey)
  assert.equal(status, 201)
  return { cookie: (headers.get('set-cookie') ?? '').split(';')[0] ?? '', json }
}

const ours = { 'sec-fetch-site': 'same-origin' }

const statusWith = async (headers: Headers, method = 'GET', path = '/v1/keys?limit=1', body?: unknown) =>
  (await send(method, path, headers, body)).status

test('an admin key is exchanged for a cookie that scripts and other sites cannot read', async () => {
  const beforeMs = clock.nowMs()
  const { status, headers, json } = await signIn(gateway.adminKey)
  assert.equal(status, 201)
  const [cookie = '', ...flags] = (headers.get('set-cookie') ?? '').split('; ')
  assert.match(cookie, /^tollgate_session=[\w-]{43}$/)
  assert.deepEqual(flags, ['Path=/', 'Max-Age=43200', 'HttpOnly', 'SameSite=Strict'])
  assert.equal(headers.get('cache-control'), 'no-store')
  const { expires_at, ...rest } = json
  assert.deepEqual(rest, { object: 'session', role: 'operator', account_id: null, person: null })
  const lastsMs = Date.parse(String(expires_at)) - beforeMs
  assert.ok(lastsMs >= HOURS_12_MS && lastsMs < HOURS_12_MS + 60_000, String(lastsMs))
})

test('the cookie is Secure if a trusted proxy says that the client speaks TLS', async () => {
  const flagsWith = async (headers: Headers) =>
    (await signIn(gateway.adminKey, headers)).headers.get('set-cookie') ?? ''
  assert.match(await flagsWith({ 'x-forwarded-proto': 'https' }), /; Secure$/)
  assert.doesNotMatch(await flagsWith({ 'x-forwarded-proto': 'http' }), /Secure/)
  const direct = await startGateway()
  try {
    const body = { admin_key: direct.adminKey }
    const proto = { 'x-forwarded-proto': 'https' }
    const { headers } = await send('POST', '/gateway/v1/session', proto, body, direct)
    assert.doesNotMatch(headers.get('set-cookie') ?? '', /Secure/)
  } finally {
    await direct.close()
  }
})

/** Requests with the cookie, and whether reads and changes are accepted. */
const requests: readonly [headers: Headers, read: boolean, change: boolean][] = [
  [{}, true, false],
  [{ authorization: 'Basic dXNlcjpwYXNz' }, true, false],
  [{ 'sec-fetch-site': 'same-origin' }, true, true],
  [{ 'sec-fetch-site': 'none' }, true, false],
  [{ 'sec-fetch-site': 'same-site' }, false, false],
  [{ 'sec-fetch-site': 'cross-site' }, false, false],
  [{ 'sec-fetch-site': 'Same-Origin' }, false, false],
  [{ 'sec-fetch-site': '' }, false, false],
  [{ origin: gateway.url }, true, true],
  [{ origin: 'https://evil.test' }, true, false],
  [{ origin: 'null' }, true, false],
  [{ origin: `${gateway.url}.evil.test` }, true, false],
  [{ origin: gateway.url, 'sec-fetch-site': 'cross-site' }, false, false],
  [{ origin: 'https://evil.test', 'sec-fetch-site': 'same-origin' }, true, true],
]

test('the cookie replaces the admin key only on requests from our own pages', async () => {
  const { cookie } = await openSession()
  for (const [lines, read, change] of requests) {
    const headers = { cookie, ...lines }
    const what = JSON.stringify(lines)
    for (const method of ['GET', 'HEAD'])
      assert.equal(await statusWith(headers, method), read ? 200 : 401, what)
    const { status, json, code } = await send('POST', '/v1/keys', headers, { name: 'by the dashboard' })
    assert.equal(status, change ? 201 : 401, what)
    if (!change) {
      assert.equal(code, 'invalid_api_key')
      assert.equal(await statusWith(headers, 'DELETE', '/gateway/v1/session'), 401)
      continue
    }
    assert.equal(await statusWith(headers, 'PATCH', `/v1/keys/${json['id']}`, { name: 'x' }), 200)
    assert.equal(await statusWith(headers, 'DELETE', `/v1/keys/${json['id']}`), 200)
  }
  assert.equal(await statusWith({ cookie: `theme=dark; ${cookie}; other=1` }), 200)
})

test('another site cannot sign a browser in', async () => {
  const foreign: readonly Headers[] = [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'cross-site', origin: gateway.url },
    { origin: 'https://evil.test' },
    { origin: 'null' },
  ]
  for (const headers of foreign) {
    const answer = await signIn(gateway.adminKey, headers)
    assert.deepEqual([answer.status, answer.code], [400, 'bad_request'], JSON.stringify(headers))
    assert.equal(answer.headers.get('set-cookie'), null)
  }
  for (const headers of [{}, ours, { 'sec-fetch-site': 'none' }, { origin: gateway.url }])
    assert.equal((await signIn(gateway.adminKey, headers)).status, 201, JSON.stringify(headers))
})

test('an invalid cookie is refused, as are two different ones', async () => {
  const { cookie } = await openSession()
  const another = (await openSession()).cookie
  const cookies = [
    'tollgate_session=',
    `tollgate_session=${'A'.repeat(43)}`,
    `${cookie}x`,
    cookie.replace('tollgate', 'Tollgate'),
    `${cookie}; ${another}`,
    `x${cookie}`,
  ]
  for (const each of cookies) assert.equal(await statusWith({ cookie: each }), 401, each)
  assert.equal(await statusWith({ cookie: `${cookie}; ${cookie}` }), 200)
})

test('a request with a key and a cookie uses the key', async () => {
  const { cookie } = await openSession()
  const withKey = (key: string) => ({ cookie, authorization: `Bearer ${key}` })
  assert.equal(await statusWith(withKey(gateway.apiKey)), 403)
  assert.equal(await statusWith(withKey('svc_live_nonsense')), 401)
  assert.equal(await statusWith(withKey(gateway.adminKey), 'POST', '/v1/keys', { name: 'by key' }), 201)
  assert.equal(await statusWith({ cookie, 'x-api-key': 'svc_admin_nonsense' }), 401)
})

test('the cookie has no effect on proxied paths, and upstream does not see it', async () => {
  const { cookie } = await openSession()
  const received = upstream.requestCount
  assert.equal(await statusWith({ cookie, ...ours }, 'GET', '/v1/models'), 401)
  assert.equal(await statusWith({ cookie, ...ours }, 'POST', '/v1/chat/completions', {}), 401)
  assert.equal(upstream.requestCount, received)
  const asked = upstream.nextRequest()
  await statusWith({ cookie, authorization: `Bearer ${gateway.apiKey}` }, 'GET', '/v1/models')
  assert.deepEqual(
    (await asked).headerLines.filter((line) => /^cookie:/i.test(line)),
    [],
  )
})

test('wrong keys, API keys and revoked admin keys cannot open a session', async () => {
  const used = async () => (await gateway.manage('GET', '/v1/keys?search=not+used'))['data']
  const { key } = await gateway.createKey('not used')
  const before = await used()
  for (const wrong of [key, 'nonsense', mintKey('svc', 'admin').reveal(), mintKey('svc', 'live').reveal()]) {
    const { status, code, headers } = await signIn(wrong)
    assert.deepEqual([status, code], [401, 'invalid_api_key'])
    assert.equal(headers.get('set-cookie'), null)
  }
  assert.deepEqual(await used(), before, 'an API key was not used by that')
  const path = '/gateway/v1/session'
  assert.equal(await statusWith({}, 'POST', path), 400)
  assert.equal(await statusWith({}, 'POST', path, { admin_key: '' }), 400)
  assert.equal(await statusWith({}, 'POST', path, { admin_key: gateway.adminKey, more: 1 }), 400)
  assert.equal(await statusWith({}, 'POST', path, '{'), 400)
  // Only the key in the body signs in, not a key in the header.
  const lines = { authorization: `Bearer ${gateway.adminKey}` }
  assert.equal(await statusWith(lines, 'POST', path, { admin_key: 'nonsense' }), 401)
})
