import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { mintKey } from '../../src/keys/key-format.ts'
import { startGateway, type TestGateway } from '../support/gateway.ts'
import { openStoreBeside } from '../support/open-store-beside.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { movableClock } from './movable-clock.ts'

const HOURS_12_MS = 12 * 3_600_000

const clock = movableClock()
const upstream = await ScriptedUpstream.start()
const gateway = await startGateway({
  chatUrl: `${upstream.url}/v1`,
  clock,
  settings: { trustedProxies: ['127.0.0.1'] },
})
after(async () => {
  await gateway.close()
  await upstream.close()
})

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

let addresses = 0
/** Each sign-in has an address of its own, told by a trusted proxy, so that failures of one test do not count in another. */
const signIn = (adminKey: string, headers: Headers = {}) =>
  send(
    'POST',
    '/gateway/v1/session',
    { 'x-forwarded-for': `203.0.113.${++addresses % 250}`, ...headers },
    { admin_key: adminKey },
  )

async function openSession(adminKey = gateway.adminKey) {
  const { status, headers, json } = await signIn(adminKey)
  assert.equal(status, 201)
  const cookie = (headers.get('set-cookie') ?? '').split(';')[0] ?? ''
  return { cookie, csrf: { 'x-csrf-token': String(json['csrf_token']) }, json }
}

const statusWith = async (headers: Headers, method = 'GET', path = '/v1/keys?limit=1', body?: unknown) =>
  (await send(method, path, headers, body)).status

test('an admin key is exchanged for a cookie that scripts and other sites do not get', async () => {
  const beforeMs = clock.nowMs()
  const { status, headers, json } = await signIn(gateway.adminKey)
  assert.equal(status, 201)
  const [cookie = '', ...flags] = (headers.get('set-cookie') ?? '').split('; ')
  assert.match(cookie, /^tollgate_session=[\w-]{43}$/)
  assert.deepEqual(flags, ['Path=/', 'Max-Age=43200', 'HttpOnly', 'SameSite=Strict'])
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.deepEqual(Object.keys(json), ['object', 'expires_at', 'csrf_token'])
  const lastsMs = Date.parse(String(json['expires_at'])) - beforeMs
  assert.ok(lastsMs >= HOURS_12_MS && lastsMs < HOURS_12_MS + 60_000, String(lastsMs))
})

test('the cookie is Secure where a trusted proxy says that the client speaks TLS', async () => {
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

test('GET tells the session again, and DELETE ends it and takes the cookie back', async () => {
  const { cookie, csrf, json } = await openSession()
  const told = await send('GET', '/gateway/v1/session', { cookie })
  assert.equal(told.status, 200)
  assert.deepEqual(told.json, json)
  assert.equal(told.headers.get('cache-control'), 'no-store')
  const ended = await send('DELETE', '/gateway/v1/session', { cookie, ...csrf })
  assert.equal(ended.status, 204)
  assert.match(ended.headers.get('set-cookie') ?? '', /^tollgate_session=; Path=\/; Max-Age=0;/)
  assert.equal((await send('GET', '/gateway/v1/session', { cookie })).status, 401)
  assert.equal(await statusWith({ cookie }), 401)
})

test('a key is no session: neither GET nor DELETE answers it', async () => {
  for (const method of ['GET', 'DELETE']) {
    const asked = (key: string) =>
      statusWith({ authorization: `Bearer ${key}` }, method, '/gateway/v1/session')
    assert.equal(await asked(gateway.adminKey), 401)
    assert.equal(await asked(gateway.apiKey), 403)
    assert.equal(await statusWith({}, method, '/gateway/v1/session'), 401)
  }
})

test('a session stands in for its admin key, for changes only together with its token', async () => {
  const { cookie, csrf } = await openSession()
  assert.equal(await statusWith({ cookie }), 200)
  assert.equal(await statusWith({ cookie }, 'HEAD'), 200)
  assert.equal(await statusWith({ cookie: `theme=dark; ${cookie}; other=1` }), 200)
  const body = { name: 'made in the dashboard' }
  const other = (await openSession()).csrf
  const wrong: readonly Headers[] = [
    {},
    { 'x-csrf-token': '' },
    { 'x-csrf-token': `${csrf['x-csrf-token']}x` },
    { 'x-csrf-token': csrf['x-csrf-token'].toUpperCase() },
    { 'x-csrf-token': cookie.split('=')[1] ?? '' },
    other,
  ]
  for (const token of wrong) {
    const { status, code } = await send('POST', '/v1/keys', { cookie, ...token }, body)
    assert.deepEqual([status, code], [403, 'csrf_token_required'])
    assert.equal(await statusWith({ cookie, ...token }, 'DELETE', '/gateway/v1/session'), 403)
  }
  const made = await send('POST', '/v1/keys', { cookie, ...csrf }, body)
  assert.equal(made.status, 201)
  const path = `/v1/keys/${made.json['id']}`
  assert.equal(await statusWith({ cookie }, 'PATCH', path, { name: 'x' }), 403)
  assert.equal(await statusWith({ cookie, ...csrf }, 'PATCH', path, { name: 'x' }), 200)
  assert.equal(await statusWith({ cookie, ...csrf }, 'DELETE', path), 200)
})

test('a request that another site made counts as one without a cookie', async () => {
  const { cookie, csrf } = await openSession()
  for (const site of ['same-origin', 'none']) {
    assert.equal(await statusWith({ cookie, 'sec-fetch-site': site }), 200, site)
    const headers = { cookie, ...csrf, 'sec-fetch-site': site }
    assert.equal(await statusWith(headers, 'POST', '/v1/keys', { name: site }), 201, site)
  }
  for (const site of ['cross-site', 'same-site', 'Same-Origin', 'nonsense', '']) {
    const { status, code } = await send('GET', '/v1/keys', { cookie, 'sec-fetch-site': site })
    assert.deepEqual([status, code], [401, 'invalid_api_key'], site)
    const headers = { cookie, ...csrf, 'sec-fetch-site': site }
    assert.equal(await statusWith(headers, 'POST', '/v1/keys', { name: site }), 401, site)
  }
})

test('a cookie that is no session of ours is refused, and so are two different ones', async () => {
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
  assert.equal(await statusWith({ cookie, 'x-api-key': 'not ours' }), 401)
})

test('on proxied paths a cookie is nothing, and upstream does not see it', async () => {
  const { cookie, csrf } = await openSession()
  const received = upstream.requestCount
  assert.equal(await statusWith({ cookie, ...csrf }, 'GET', '/v1/models'), 401)
  assert.equal(await statusWith({ cookie, ...csrf }, 'POST', '/v1/chat/completions', {}), 401)
  assert.equal(upstream.requestCount, received)
  const asked = upstream.nextRequest()
  await statusWith({ cookie, authorization: `Bearer ${gateway.apiKey}` }, 'GET', '/v1/models')
  assert.deepEqual(
    (await asked).headerLines.filter((line) => /^cookie:/i.test(line)),
    [],
  )
})

test('wrong keys, API keys and revoked admin keys open no session', async () => {
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
  // A key in the header does not sign in: only the key in the body counts.
  const lines = { authorization: `Bearer ${gateway.adminKey}` }
  assert.equal(await statusWith(lines, 'POST', path, { admin_key: 'nonsense' }), 401)
})

test('a session is over when its twelve hours are', async () => {
  const { cookie } = await openSession()
  clock.advance(HOURS_12_MS - 60_000)
  assert.equal(await statusWith({ cookie }), 200)
  clock.advance(60_000)
  const { status, json } = await send('GET', '/v1/keys', { cookie })
  assert.equal(status, 401)
  assert.match(JSON.stringify(json), /The session has ended/)
})

test('after ten failures from one address no key is looked at, and other addresses go on', async () => {
  const from = { 'x-forwarded-for': '198.51.100.7' }
  // The sign-ins come at once: none may slip by because the others are still being looked up.
  const all = await Promise.all(Array.from({ length: 15 }, () => signIn('nonsense', from)))
  assert.equal(all.filter(({ status }) => status === 401).length, 10)
  assert.equal(all.filter(({ status }) => status === 429).length, 5)
  const { status, code, headers } = await signIn(gateway.adminKey, from)
  assert.deepEqual([status, code], [429, 'too_many_sign_ins'])
  assert.equal(headers.get('retry-after'), '60')
  assert.equal((await signIn(gateway.adminKey, { 'x-forwarded-for': '198.51.100.8' })).status, 201)
})

test('sign-ins that succeed are no failures', async () => {
  const from = { 'x-forwarded-for': '198.51.100.9' }
  for (let i = 0; i < 12; i += 1) assert.equal((await signIn(gateway.adminKey, from)).status, 201)
})

test('a session ends with its admin key at the next request, though another process revoked it', async () => {
  const { cookie, csrf } = await openSession()
  const store = await openStoreBeside(gateway)
  try {
    assert.equal(await statusWith({ cookie }), 200)
    for (const { id } of await store.listAdminKeys()) await store.revokeAdminKey(id, clock.nowMs())
    assert.equal(await statusWith({ cookie }), 401)
    assert.equal(await statusWith({ cookie, ...csrf }, 'DELETE', '/gateway/v1/session'), 401)
    assert.equal((await signIn(gateway.adminKey)).status, 401)
  } finally {
    await store.close()
  }
})
