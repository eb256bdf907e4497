import assert from 'node:assert/strict'
import { Secret } from '../../src/kernel/secret.ts'
import { startGateway } from '../support/gateway.ts'
import { closeAfter, test } from '../support/suite.ts'
import { CertifiedProvider, CLIENT } from './certified-provider.ts'
import { DASHBOARD_URL, PersonBrowser } from './person-browser.ts'

const provider = await CertifiedProvider.start()
provider.employees.set('ada', {
  ...{ name: 'Ada Lovelace', email: 'ada@example.com', email_verified: true },
  groups: ['everyone', 'developers'],
})
const gateway = await startGateway({
  settings: {
    signIn: {
      issuer: provider.issuer,
      clientId: CLIENT.id,
      clientSecret: new Secret(CLIENT.secret),
      dashboardUrl: DASHBOARD_URL,
      scopes: ['openid', 'email', 'profile'],
      groupsClaim: 'groups',
      emailClaim: 'email',
      allowedDomains: ['example.com'],
      rules: [{ group: 'developers', role: 'admin', account: 'default' }],
      sessionMs: 3_600_000,
      deviceMs: 30 * 86_400_000,
      managedSettings: null,
    },
  },
})
closeAfter(gateway, provider)

test('a person signs in at a certified provider, whose ID token has no claims but the subject and the groups', async () => {
  provider.person = 'ada'
  const browser = new PersonBrowser(gateway)
  const callback = await provider.visit(await browser.begin('/dashboard/keys'))
  const { status, headers, text } = await browser.open(callback)
  assert.equal(status, 302, text)
  assert.equal(headers.get('location'), '/dashboard/keys')
  const session = await browser.session()
  assert.equal(session?.['role'], 'admin')
  const person = session?.['person'] as Record<string, unknown>
  assert.deepEqual([person['name'], person['email']], ['Ada Lovelace', 'ada@example.com'])
  assert.equal((await browser.open('/v1/keys')).status, 200)
})

test('its code works once, also with the cookie of the browser that began', async () => {
  const browser = new PersonBrowser(gateway)
  const callback = await provider.visit(await browser.begin())
  const begun = browser.cookies.get('tollgate_sign_in') ?? ''
  assert.equal((await browser.open(callback)).status, 302)
  browser.cookies.set('tollgate_sign_in', begun)
  assert.equal((await browser.open(callback)).status, 400)
})

test('what the provider refuses is a page too', async () => {
  const browser = new PersonBrowser(gateway)
  const asked = new URL(await browser.begin())
  const state = asked.searchParams.get('state') ?? ''
  const denied = await browser.open(
    `/gateway/sign-in/callback?${new URLSearchParams({ error: 'access_denied', state, iss: provider.issuer })}`,
  )
  assert.equal(denied.status, 403)
  assert.match(denied.text, /did not let you in/)
})
