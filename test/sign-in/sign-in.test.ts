import assert from 'node:assert/strict'
import { createLog, type Log } from '../../src/kernel/log.ts'
import { movableClock } from '../management/movable-clock.ts'
import { startGateway } from '../support/gateway.ts'
import { closeAfter, test } from '../support/suite.ts'
import { DASHBOARD_URL, PersonBrowser, type Seen } from './person-browser.ts'
import { settingsOf, visit } from './played-people.ts'
import { type Part, PlayedProvider } from './played-provider.ts'

const provider = await PlayedProvider.start()
const settings = settingsOf(provider)
const clock = movableClock()
const refusedSignIns: unknown[] = []
const log: Log = {
  ...createLog('silent'),
  info: (fields: unknown, message?: string) => {
    if (message === 'a sign-in was refused') refusedSignIns.push(fields)
  },
}
const gateway = await startGateway({ clock, log, settings: { signIn: settings } })
closeAfter(gateway, provider)

const signIn = (part: Part = {}, browser = new PersonBrowser(gateway), returnTo?: string) =>
  visit({ provider, browser, ...(returnTo === undefined ? {} : { returnTo }) }, part)

function assertPage({ status, headers, text }: Seen, wanted: number): void {
  assert.equal(status, wanted, text)
  assert.equal(headers.get('content-type'), 'text/html; charset=utf-8')
  assert.match(headers.get('content-security-policy') ?? '', /^default-src 'none'/)
  assert.ok(text.includes(headers.get('x-svc-request-id') ?? 'none'))
}

test('a person signs in at the provider, and gets a session with the role of the first rule that fits', async () => {
  const { browser, status, headers } = await signIn({}, undefined, '/dashboard/usage?range=week')
  assert.equal(status, 302)
  assert.equal(headers.get('location'), '/dashboard/usage?range=week')
  assert.deepEqual([...browser.cookies.keys()], ['tollgate_session'])
  const session = await browser.session()
  assert.equal(session?.['role'], 'member')
  assert.equal(session?.['account_id'], 'default')
  const person = session?.['person'] as Record<string, unknown>
  assert.deepEqual([person['email'], person['name'], person['role']], ['ada@example.com', 'Ada', 'member'])
})

test('the request to the provider has PKCE, and the cookies have their flags', async () => {
  const browser = new PersonBrowser(gateway)
  const { headers } = await browser.open('/gateway/sign-in')
  const asked = new URL(headers.get('location') ?? '')
  assert.equal(asked.origin, provider.issuer)
  assert.equal(asked.searchParams.get('code_challenge_method'), 'S256')
  assert.equal(asked.searchParams.get('redirect_uri'), `${DASHBOARD_URL}/gateway/sign-in/callback`)
  const [begun = ''] = headers.getSetCookie()
  assert.match(
    begun,
    /^tollgate_sign_in=[\w-]+; Path=\/gateway\/sign-in; Max-Age=600; HttpOnly; SameSite=Lax$/,
  )
  const answer = await browser.open(provider.approve(asked.href))
  const [cleared, session] = answer.headers.getSetCookie()
  assert.match(cleared ?? '', /^tollgate_sign_in=; .*Max-Age=0/)
  assert.match(
    session ?? '',
    /^tollgate_session=[\w-]{43}; Path=\/; Max-Age=3600; HttpOnly; SameSite=Strict$/,
  )
})

test('a person is known by issuer and subject: role, name and email follow each sign-in', async () => {
  const idOf = async (part: Part) => {
    const session = await (await signIn(part)).browser.session()
    return { role: session?.['role'], person: session?.['person'] as Record<string, unknown> }
  }
  const before = await idOf({ claims: { sub: 'grace' } })
  const after = await idOf({
    claims: { sub: 'grace', email: 'hopper@example.com', name: 'Hopper', groups: ['x', 'platform'] },
  })
  assert.equal(after.person['id'], before.person['id'])
  assert.equal(after.role, 'operator')
  assert.equal(after.person['email'], 'hopper@example.com')
  const sameEmail = await idOf({ claims: { sub: 'another', email: 'hopper@example.com' } })
  assert.notEqual(sameEmail.person['id'], after.person['id'])
})

test('sessions have the current role: a demoted operator loses it at once', async () => {
  const first = await signIn({ claims: { sub: 'boss', groups: ['platform'] } })
  assert.equal((await first.browser.open('/gateway/v1/accounts')).status, 200)
  await signIn({ claims: { sub: 'boss', groups: ['developers'] } })
  assert.equal((await first.browser.open('/gateway/v1/accounts')).status, 403)
})

const personIn = async (browser: PersonBrowser) =>
  ((await browser.session())?.['person'] as Record<string, unknown> | undefined)?.['id']

test('a blocked person is out at once, and cannot sign in', async () => {
  const part = { claims: { sub: 'mallory' } }
  const { browser } = await signIn(part)
  const id = await personIn(browser)
  await gateway.manage('POST', `/gateway/v1/people/${id}/block`)
  assert.equal(await browser.session(), null)
  const refused = await signIn(part)
  assertPage(refused, 403)
  assert.match(refused.text, /You are blocked/)
  await gateway.manage('POST', `/gateway/v1/people/${id}/unblock`)
  assert.equal(await personIn((await signIn(part)).browser), id)
})

test('a rule that names another account than the person has lets nobody in, and changes nothing', async () => {
  const part = { claims: { sub: 'moved' } }
  const { browser } = await signIn(part)
  const id = await personIn(browser)
  const account = await gateway.manage('POST', '/gateway/v1/accounts', { name: 'Search' })
  await gateway.manage('POST', `/gateway/v1/people/${id}/move`, { account: account['id'] })
  assert.equal(await browser.session(), null)
  const refused = await signIn(part)
  assertPage(refused, 403)
  assert.match(refused.text, /another account/)
  const moved = await gateway.manage('GET', `/gateway/v1/people/${id}`)
  assert.equal(moved['account_id'], account['id'])
})

test('claims that are not in the token are read at the user info endpoint', async () => {
  const { status } = await signIn({
    claims: { sub: 'ines', groups: undefined },
    userInfo: { sub: 'ines', groups: ['developers'] },
  })
  assert.equal(status, 302)
  const lies = { claims: { sub: 'ines', groups: undefined }, userInfo: { sub: 'eve', groups: ['platform'] } }
  assertPage(await signIn(lies), 502)
})

const refusals: readonly [what: string, part: Part, status: number, says: RegExp][] = [
  ['no group of a rule', { claims: { groups: ['Developers', 'others'] } }, 403, /None of your groups/],
  [
    'no groups at all',
    { claims: { groups: undefined }, userInfo: { sub: 'ada' } },
    403,
    /did not say which groups/,
  ],
  ['another domain', { claims: { email: 'ada@example.com.evil.test' } }, 403, /no verified email/],
  ['an email with two signs', { claims: { email: 'ada@example.com@evil.test' } }, 403, /no verified email/],
  ['an email that is not verified', { claims: { email_verified: false } }, 403, /no verified email/],
  ['another nonce', { claims: { nonce: 'of another attempt' } }, 400, /expired/],
  ['no nonce', { claims: { nonce: undefined } }, 502, /did not answer as expected/],
  ['an ID token of another provider', { claims: { iss: 'https://evil.test' } }, 502, /did not answer/],
  ['an ID token for another client', { claims: { aud: 'another' } }, 502, /did not answer/],
  ['an ID token that has expired', { claims: { iat: 1, exp: 2 } }, 502, /did not answer/],
  ['a foreign signature', { signature: 'foreign' }, 502, /did not answer/],
  ['no signature', { signature: 'none' }, 502, /did not answer/],
  ['a failing token endpoint', { broken: '/token' }, 502, /did not answer/],
]

for (const [what, part, status, says] of refusals)
  test(`refused: ${what}`, async () => {
    const answer = await signIn(part)
    assertPage(answer, status)
    assert.match(answer.text, says)
    assert.equal(answer.browser.cookies.size, 0)
  })

test('the log has the reason of each refusal with status 403, and the groups that the provider sent', async () => {
  refusedSignIns.length = 0
  await signIn({ claims: { groups: ['Developers', 'others'] } })
  await signIn({ claims: { email_verified: false } })
  await signIn({ broken: '/token' })
  assert.deepEqual(refusedSignIns, [
    { subject: 'ada', reason: 'no_rule', groups: ['Developers', 'others'] },
    { subject: 'ada', reason: 'wrong_domain', groups: ['developers'] },
  ])
})

test('a callback counts once, and only in the browser that began', async () => {
  const browser = new PersonBrowser(gateway)
  const callback = provider.approve(await browser.begin())
  const cookie = browser.cookies.get('tollgate_sign_in') ?? ''
  assertPage(await new PersonBrowser(gateway).open(callback), 400)
  const attacker = new PersonBrowser(gateway)
  await attacker.begin()
  assertPage(await attacker.open(callback), 400)
  assert.equal((await browser.open(callback)).status, 302)
  const replay = new PersonBrowser(gateway)
  assertPage(await replay.open(callback), 400)
  replay.cookies.set('tollgate_sign_in', cookie)
  assertPage(await replay.open(callback), 400)
  assert.equal(replay.cookies.size, 0)
})

test('an attempt ends after ten minutes', async () => {
  const browser = new PersonBrowser(gateway)
  const callback = provider.approve(await browser.begin())
  clock.advance(600_001)
  assertPage(await browser.open(callback), 400)
})

test('a session cookie that was planted before the sign-in is worth nothing', async () => {
  const planted = 'A'.repeat(43)
  const browser = new PersonBrowser(gateway)
  browser.cookies.set('tollgate_session', planted)
  await signIn({}, browser)
  assert.notEqual(browser.cookies.get('tollgate_session'), planted)
  const other = new PersonBrowser(gateway)
  other.cookies.set('tollgate_session', planted)
  assert.equal(await other.session(), null)
})

const elsewhere = [
  ...['https://evil.test', '//evil.test', '/\\evil.test', '\\\\evil.test', '/dashboard\\@evil.test'],
  ...['/dashboard.evil.test', '/dashboard@evil.test', 'dashboard', '/Dashboard', '/', '', ' /dashboard'],
  ...['/dashboard#x', '/dashboard?a=#x', '/dashboard?a=\\x', '/dashboard/..%2f', '/dashboard/../x'],
  ...['/dashboard\r\nset-cookie: a=b', '/dashboard?\r\nx: y', '/dashboard?a=\u0000', '/v1/keys'],
  ...['javascript:alert(1)', 'data:text/html,x', '/dashboard/%0d%0a'],
]

test('a sign-in returns to a page of the dashboard only', async () => {
  for (const returnTo of elsewhere) {
    const { headers } = await signIn({}, undefined, returnTo)
    assert.equal(headers.get('location'), '/dashboard', JSON.stringify(returnTo))
  }
  const { headers } = await signIn({}, undefined, '/dashboard/keys?search=zoë lab&x=%20')
  assert.equal(headers.get('location'), '/dashboard/keys?search=zo%C3%AB%20lab&x=%20')
})

test('signing out ends the session, and names the page of the provider that ends its session', async () => {
  const { browser } = await signIn()
  const { status, text } = await browser.open('/gateway/v1/session', 'DELETE', {
    'sec-fetch-site': 'same-origin',
  })
  assert.equal(status, 200)
  const { end_session_url } = JSON.parse(text) as { end_session_url: string }
  assert.ok(end_session_url.startsWith(`${provider.issuer}/end?`))
  assert.equal(await browser.session(), null)
})

test('only GET signs in', async () => {
  for (const path of ['/gateway/sign-in', '/gateway/sign-in/callback'])
    assertPage(await new PersonBrowser(gateway).open(path, 'POST'), 405)
})

test('a provider that lies about itself, fails or hangs affects sign-ins only, and is asked again', async () => {
  await using alone = await startGateway({ settings: { signIn: settings } })
  const troubles: readonly Part[] = [
    { discovery: { issuer: 'https://evil.test' } },
    { broken: '/.well-known/openid-configuration' },
    { discovery: { token_endpoint: undefined, authorization_endpoint: undefined } },
  ]
  for (const part of troubles) {
    provider.part = part
    assertPage(await new PersonBrowser(alone).open('/gateway/sign-in'), 502)
  }
  provider.part = { silent: '/.well-known/openid-configuration' }
  const hanging = new AbortController()
  const asked = fetch(`${alone.url}/gateway/sign-in`, { signal: hanging.signal }).catch(() => null)
  assert.equal((await fetch(`${alone.url}/readyz`)).status, 503, 'no upstream is configured')
  await alone.manage('GET', '/v1/keys')
  hanging.abort()
  await asked
  provider.part = {}
})

test('without sign_in, the addresses do not exist', async () => {
  await using plain = await startGateway()
  const { status } = await new PersonBrowser(plain).open('/gateway/sign-in')
  assert.equal(status, 401)
})
