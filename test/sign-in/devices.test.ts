import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { movableClock } from '../management/movable-clock.ts'
import { startGateway } from '../support/gateway.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'
import { DASHBOARD_URL, PersonBrowser } from './person-browser.ts'
import { decide, postForm, settingsOf, signInDevice, TestDevice, visit } from './played-people.ts'
import { type Part, PlayedProvider } from './played-provider.ts'

const HOUR_MS = 3_600_000
const managedSettings = { env: { B: '1', A: '2' }, availableModels: ['claude-sonnet-5-5'] }
const provider = await PlayedProvider.start()
const upstream = await ScriptedUpstream.start()
const clock = movableClock()
const gateway = await startGateway({
  clock,
  chatUrl: `${upstream.url}/v1`,
  chatKey: 'pc',
  settings: { signIn: { ...settingsOf(provider), managedSettings } },
})
closeAfter(gateway, provider, upstream)

/** Limits of addresses and people count anew. */
const nextWindow = () => clock.advance(600_000)

async function person(sub: string, part: Part = {}): Promise<PersonBrowser> {
  nextWindow()
  const browser = new PersonBrowser(gateway)
  const { status, text } = await visit(
    { provider, browser },
    { ...part, claims: { sub, email: `${sub}@example.com`, ...part.claims } },
  )
  assert.equal(status, 302, text)
  return browser
}

async function personId(browser: PersonBrowser): Promise<string> {
  const session = (await browser.session()) ?? assert.fail()
  return (session['person'] as { id: string }).id
}

const get = async (path: string, headers: Readonly<Record<string, string>> = {}) => {
  const response = await fetch(gateway.url + path, { headers })
  const text = await response.text()
  const json = text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {}
  return { status: response.status, headers: response.headers, json }
}

/** A free call, which tells whether the key works. */
const call = async ({ headers }: TestDevice) => (await get('/v1/models', headers)).status

test('a client finds the endpoints at the address that it was told', async () => {
  const path = '/.well-known/oauth-authorization-server'
  const { status, json } = await get(path)
  assert.equal(status, 200)
  assert.partialDeepStrictEqual(json, {
    issuer: DASHBOARD_URL,
    device_authorization_endpoint: `${gateway.url}/gateway/oauth/device_authorization`,
    token_endpoint: `${gateway.url}/gateway/oauth/token`,
    revocation_endpoint: `${gateway.url}/gateway/oauth/revoke`,
    token_endpoint_auth_methods_supported: ['none'],
    gateway_protocol_version: 1,
  })
})

test('a device signs in with a code that the person approves, and is a key of the person', async () => {
  const browser = await person('ada')
  const { status, headers, json } = await postForm(gateway, 'device_authorization', {
    surface: 'claude_code',
  })
  assert.equal(status, 200)
  assert.equal(headers.get('cache-control'), 'no-store')
  assert.partialDeepStrictEqual(json, {
    verification_uri: `${DASHBOARD_URL}/dashboard/device`,
    verification_uri_complete: `${DASHBOARD_URL}/dashboard/device?user_code=${json['user_code']}`,
    expires_in: 600,
    interval: 5,
  })
  assert.match(String(json['user_code']), /^[B-DF-HJ-NP-TV-Z]{4}-[B-DF-HJ-NP-TV-Z]{4}$/)
  const device = await TestDevice.begin(gateway)
  assert.deepEqual(
    [await device.poll(gateway), await device.poll(gateway)].map((answer) => [answer.status, answer.error]),
    [
      [400, 'authorization_pending'],
      [429, 'slow_down'],
    ],
  )
  const decided = await decide(browser, device.userCode.toLowerCase().replace('-', ' '))
  assert.deepEqual(decided.json, {
    object: 'device_approval',
    status: 'approved',
    client: 'claude-code/2.1.328',
  })
  const signedIn = await device.poll(gateway)
  assert.deepEqual(signedIn.json, {
    access_token: device.token,
    refresh_token: device.token,
    token_type: 'Bearer',
    expires_in: 3600,
    email: 'ada@example.com',
  })
  assert.equal(await call(device), 200)
  const { json: key } = await get('/v1/keys/me', device.headers)
  assert.partialDeepStrictEqual(key, { name: 'claude-code/2.1.328', person_id: await personId(browser) })
})

const refused: readonly [what: string, endpoint: string, form: Record<string, string>, error: string][] = [
  ['no grant type', 'token', {}, 'invalid_request'],
  ['another grant', 'token', { grant_type: 'password' }, 'unsupported_grant_type'],
  ['no refresh token', 'token', { grant_type: 'refresh_token' }, 'invalid_request'],
  ['something else as token', 'token', { grant_type: 'refresh_token', refresh_token: 'x' }, 'invalid_grant'],
  [
    'an unknown code',
    'token',
    { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', device_code: 'x' },
    'expired_token',
  ],
]

for (const [what, endpoint, form, error] of refused)
  test(`refused: ${what}`, async () => {
    const answer = await postForm(gateway, endpoint, form)
    assert.deepEqual([answer.status, answer.error], [400, error])
  })

test('a key of a service is no refresh token', async () => {
  const form = { grant_type: 'refresh_token', refresh_token: gateway.apiKey }
  assert.equal((await postForm(gateway, 'token', form)).error, 'invalid_grant')
  assert.equal((await postForm(gateway, 'revoke', { token: gateway.apiKey })).status, 200)
  assert.equal((await postForm(gateway, 'revoke', {})).status, 200)
  assert.equal((await get('/v1/keys/me', { authorization: `Bearer ${gateway.apiKey}` })).status, 200)
})

test('a denied device is told, a code is decided once, and only by the page of a person', async () => {
  const [ada, bob] = [await person('ada'), await person('bob')]
  const device = await TestDevice.begin(gateway)
  const body = { user_code: device.userCode, approve: true }
  const fromElsewhere = await ada.open('/gateway/v1/device', 'POST', { 'sec-fetch-site': 'cross-site' }, body)
  assert.equal(fromElsewhere.status, 401)
  const withKey = { authorization: `Bearer ${gateway.adminKey}` }
  assert.equal(
    (await new PersonBrowser(gateway).open('/gateway/v1/device', 'POST', withKey, body)).status,
    403,
  )
  assert.equal((await device.poll(gateway)).error, 'authorization_pending')
  assert.equal((await decide(bob, device.userCode, false)).json['status'], 'denied')
  assert.equal((await decide(ada, device.userCode)).status, 404)
  assert.equal((await device.poll(gateway)).error, 'access_denied')
  assert.equal((await device.poll(gateway)).error, 'expired_token')
})

test('a code ends after ten minutes', async () => {
  const browser = await person('ada')
  const device = await TestDevice.begin(gateway)
  nextWindow()
  assert.equal((await decide(browser, device.userCode)).status, 404)
  assert.equal((await device.poll(gateway)).error, 'expired_token')
})

test('codes cannot be guessed: after ten wrong ones, the person and the address must wait', async () => {
  const [ada, bob] = [await person('ada'), await person('bob')]
  const device = await TestDevice.begin(gateway)
  for (let n = 0; n < 10; n += 1) assert.equal((await decide(ada, `BBBB-BBB${'BCDFGHJKLM'[n]}`)).status, 404)
  for (const browser of [ada, bob]) assert.equal((await decide(browser, device.userCode)).status, 429)
  assert.equal((await device.poll(gateway)).error, 'authorization_pending')
  nextWindow()
  const another = await TestDevice.begin(gateway)
  assert.equal((await decide(ada, another.userCode)).status, 200)
})

test('an address begins at most 30 sign-ins in ten minutes', async () => {
  nextWindow()
  for (let n = 0; n < 30; n += 1) await TestDevice.begin(gateway)
  const { status, error, headers } = await postForm(gateway, 'device_authorization', {})
  assert.deepEqual([status, error], [429, 'slow_down'])
  assert.match(headers.get('retry-after') ?? '', /^\d+$/)
  nextWindow()
  await TestDevice.begin(gateway)
})

test('a refresh revives the key, and a device that signed out stays out', async () => {
  const browser = await person('ada')
  const [device, other] = [await signInDevice(gateway, browser), await signInDevice(gateway, browser)]
  clock.advance(HOUR_MS)
  assert.equal(await call(device), 401)
  const { status, json } = await device.refresh(gateway)
  assert.deepEqual([status, json['access_token'], json['expires_in']], [200, device.token, 3600])
  assert.equal(await call(device), 200)
  assert.equal((await postForm(gateway, 'revoke', { token: device.token })).status, 200)
  assert.equal(await call(device), 401)
  assert.equal((await device.refresh(gateway)).error, 'invalid_grant')
  assert.equal((await device.refresh(gateway, other.token)).json['access_token'], other.token)
})

const leavers: readonly [what: string, part: Part, refreshes: boolean][] = [
  ['confirms the person', { refreshToken: 'next' }, true],
  ['does not know the person any more', { refreshError: 'invalid_grant' }, false],
  ['gives no group of a rule', { claims: { groups: ['others'] } }, false],
  ['gives another domain', { claims: { email: 'ada@example.org' } }, false],
  ['does not say the address', { claims: { email_verified: undefined } }, true],
  ['does not say which groups', { claims: { groups: undefined } }, true],
  ['fails', { broken: '/token' }, true],
  ['refuses the client', { refreshError: 'invalid_client' }, true],
  ['answers about somebody else', { claims: { sub: 'somebody', groups: [] } }, true],
]

for (const [n, [what, part, refreshes]] of leavers.entries())
  test(`after an hour, a refresh asks the provider, which ${what}`, async () => {
    const sub = `leaver${n}`
    const browser = await person(sub, { refreshToken: `of ${sub}` })
    const [device, key] = [await signInDevice(gateway, browser), await createKey(browser)]
    provider.part = { refreshError: 'invalid_grant' }
    assert.equal((await device.refresh(gateway)).status, 200, 'the provider was asked at the sign-in')
    clock.advance(HOUR_MS)
    provider.part = { ...part, claims: { sub, ...part.claims } }
    const { status, error } = await device.refresh(gateway)
    provider.part = {}
    const shown = await gateway.manage('GET', `/gateway/v1/people/${key.person_id}`)
    const works = (await get('/v1/models', { authorization: `Bearer ${key.key}` })).status
    if (refreshes) assert.deepEqual([status, shown['status'], works], [200, 'active', 200])
    else assert.deepEqual([status, error, shown['status'], works], [400, 'invalid_grant', 'blocked', 401])
  })

test('a refresh stores the role of the rule that fits now', async () => {
  const browser = await person('boss', { refreshToken: 'of boss', claims: { groups: ['platform'] } })
  const [id, device] = [await personId(browser), await signInDevice(gateway, browser)]
  clock.advance(HOUR_MS)
  provider.part = { claims: { sub: 'boss' } }
  assert.equal((await device.refresh(gateway)).status, 200)
  provider.part = {}
  assert.equal((await gateway.manage('GET', `/gateway/v1/people/${id}`))['role'], 'member')
})

test('a provider that hangs keeps no device waiting for long, and blocks nobody', async () => {
  const browser = await person('patient', { refreshToken: 'of patient' })
  const device = await signInDevice(gateway, browser)
  clock.advance(HOUR_MS)
  provider.part = { silent: '/token' }
  assert.equal((await device.refresh(gateway)).status, 200)
  provider.part = {}
  assert.equal(await call(device), 200)
})

async function createKey(browser: PersonBrowser) {
  const headers = { 'sec-fetch-site': 'same-origin' }
  const { text } = await browser.open('/v1/keys', 'POST', headers, { name: 'key', person: 'me' })
  return JSON.parse(text) as { key: string; person_id: string }
}

test('settings are for devices, have a checksum, and are not sent twice', async () => {
  const browser = await person('ada')
  const device = await signInDevice(gateway, browser)
  const settings = await get('/managed/settings', device.headers)
  const canonical = '{"availableModels":["claude-sonnet-5-5"],"env":{"A":"2","B":"1"}}'
  const checksum = `sha256:${createHash('sha256').update(canonical).digest('hex')}`
  assert.equal(settings.status, 200)
  assert.equal(settings.headers.get('etag'), `"${checksum}"`)
  assert.deepEqual(settings.json, { uuid: checksum, checksum, settings: managedSettings })
  const again = { ...device.headers, 'if-none-match': `"x", "${checksum}"` }
  assert.equal((await get('/managed/settings', again)).status, 304)
  assert.equal((await get('/managed/settings', { ...again, 'if-none-match': '*' })).status, 200)
  assert.equal((await get('/managed/settings')).status, 401)
  assert.equal((await get('/managed/settings', { authorization: `Bearer ${gateway.apiKey}` })).status, 404)
  clock.advance(HOUR_MS)
  assert.equal((await get('/managed/settings', device.headers)).status, 401, 'not refreshed')
})

test('what is left is shown in cents, of the ceiling with the least money left', async () => {
  const browser = await person('ada')
  const device = await signInDevice(gateway, browser)
  const usage = async () => (await get('/api/oauth/usage', device.headers)).json
  assert.deepEqual(await usage(), {
    extra_usage: {
      is_enabled: true,
      monthly_limit: null,
      used_credits: 0,
      utilization: null,
      currency: 'USD',
    },
    limits: [],
  })
  const limits = { monthly_budget_usd: 100, daily_budget_usd: 8 }
  await gateway.manage('PATCH', `/gateway/v1/people/${await personId(browser)}`, limits)
  assert.partialDeepStrictEqual(await usage(), {
    extra_usage: { monthly_limit: 800, used_credits: 0, utilization: 0 },
    limits: [{ kind: 'spend', group: 'daily', percent: 0, severity: 'normal', is_active: true }],
  })
  assert.equal((await get('/api/oauth/usage', { authorization: `Bearer ${gateway.apiKey}` })).status, 404)
})

test('without sign_in, the paths of agents are upstream’s', async () => {
  await using plain = await startGateway({ ...upstream.urls, messagesKey: 'pm', chatKey: 'pc' })
  const before = upstream.requestCount
  for (const path of ['/managed/settings', '/api/oauth/usage', '/.well-known/oauth-authorization-server']) {
    const headers = { authorization: `Bearer ${plain.apiKey}` }
    await (await fetch(plain.url + path, { headers })).arrayBuffer()
  }
  assert.equal(upstream.requestCount, before + 3)
  const device = await fetch(`${plain.url}/gateway/oauth/device_authorization`, { method: 'POST' })
  assert.equal(device.status, 401)
})
