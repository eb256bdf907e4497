import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ConfigError, readConfig } from '../../src/config/read-config.ts'
import { startGateway } from '../support/gateway.ts'
import { after, test } from '../support/suite.ts'

const dir = mkdtempSync(join(tmpdir(), 'tollgate-sign-in-config-'))
after(() => rmSync(dir, { recursive: true }))

const RIGHT = {
  issuer: 'https://login.example.com',
  client_id: 'tollgate',
  rules: [{ group: '*', role: 'member', account: 'default' }],
}

function read(signIn: object, rest: object = { dashboard_url: 'https://gate.example.com/' }, secret = 'x') {
  const file = join(dir, 'settings.json')
  writeFileSync(file, JSON.stringify({ sign_in: signIn, ...rest }))
  return readConfig({ TOLLGATE_CONFIG: file, TOLLGATE_OIDC_CLIENT_SECRET: secret }, dir).signIn
}

function problemsOf(...given: Parameters<typeof read>): string {
  try {
    read(...given)
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    return error.problems.join('\n')
  }
  throw new assert.AssertionError({ message: 'the configuration was accepted' })
}

test('sign_in has defaults, and is off without an issuer', () => {
  assert.equal(read({}), null)
  const { clientSecret, ...signIn } = read(RIGHT) ?? {}
  assert.equal(clientSecret?.reveal(), 'x')
  assert.deepEqual(signIn, {
    issuer: 'https://login.example.com',
    clientId: 'tollgate',
    dashboardUrl: 'https://gate.example.com',
    scopes: ['openid', 'email', 'profile'],
    groupsClaim: 'groups',
    emailClaim: 'email',
    allowedDomains: [],
    rules: RIGHT.rules,
    sessionMs: 12 * 3_600_000,
    deviceMs: 30 * 86_400_000,
    managedSettings: null,
  })
})

test('all that is missing is named at once', () => {
  const problems = problemsOf({ issuer: RIGHT.issuer }, {}, '')
  for (const name of ['sign_in.client_id', 'sign_in.rules', 'dashboard_url', 'TOLLGATE_OIDC_CLIENT_SECRET'])
    assert.ok(problems.includes(name), name)
  assert.match(problemsOf({ rules: RIGHT.rules }), /"sign_in.issuer" is missing/)
})

const issuers: readonly [issuer: string, accepted: boolean][] = [
  ['https://login.example.com/realms/x', true],
  ['http://127.0.0.1:9000', true],
  ['http://localhost:9000/', true],
  ['http://login.example.com', false],
  ['http://127.0.0.1.evil.test', false],
  ['https://user@login.example.com', false],
  ['https://login.example.com?tenant=x', false],
  ['https://login.example.com/.well-known/openid-configuration', false],
  ['https://login.microsoftonline.com/common/v2.0', false],
  ['login.example.com', false],
]

test('the issuer is the https URL of one tenant, or on loopback', () => {
  for (const [issuer, accepted] of issuers)
    if (accepted) assert.equal(read({ ...RIGHT, issuer })?.issuer, issuer)
    else assert.match(problemsOf({ ...RIGHT, issuer }), /"sign_in.issuer" must be/, issuer)
})

const wrong: readonly [setting: object, says: RegExp][] = [
  [{ scopes: ['email'] }, /"sign_in.scopes" must contain "openid"/],
  [{ session_hours: 0 }, /"sign_in.session_hours" must be/],
  [{ session_hours: 169 }, /"sign_in.session_hours" must be/],
  [{ allowed_domains: ['@example.com'] }, /"sign_in.allowed_domains\[0\]" must be a domain/],
  [{ rules: [{ group: 'x', role: 'owner', account: 'y' }] }, /"sign_in.rules\[0\].role" must be one of/],
  [{ rules: [{ group: 'x', role: 'member' }] }, /"sign_in.rules\[0\]" needs "account"/],
  [{ rules: [{ group: 'x', role: 'operator', account: 'y' }] }, /\[0\].account" must be left out/],
  [{ rules: [{ groups: 'x', role: 'operator' }] }, /"sign_in.rules\[0\].groups" is not a setting/],
  [{ secret: 'x' }, /"sign_in.secret" is not a setting/],
]

test('a wrong setting is named', () => {
  for (const [setting, says] of wrong) assert.match(problemsOf({ ...RIGHT, ...setting }), says)
})

test('a rule with an unknown account is refused at the start', async () => {
  const signIn = read({ ...RIGHT, rules: [{ group: '*', role: 'member', account: 'Nobody' }] })
  await assert.rejects(startGateway({ settings: { signIn } }), /there is no account "Nobody"/)
})
