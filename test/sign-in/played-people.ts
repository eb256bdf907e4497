import assert from 'node:assert/strict'
import type { SignInConfig } from '../../src/config/read-sign-in.ts'
import { Secret } from '../../src/kernel/secret.ts'
import type { TestGateway } from '../support/gateway.ts'
import { DASHBOARD_URL, type PersonBrowser } from './person-browser.ts'
import type { Part, PlayedProvider } from './played-provider.ts'

/** The settings of a gateway whose people sign in at this provider. */
export const settingsOf = (provider: Pick<PlayedProvider, 'issuer'>): SignInConfig => ({
  issuer: provider.issuer,
  clientId: 'tollgate',
  clientSecret: new Secret('of the client'),
  dashboardUrl: DASHBOARD_URL,
  scopes: ['openid', 'email', 'profile'],
  groupsClaim: 'groups',
  emailClaim: 'email',
  allowedDomains: ['Example.com'],
  rules: [
    { group: 'platform', role: 'operator' },
    { group: 'developers', role: 'member', account: 'default' },
  ],
  sessionMs: 3_600_000,
  deviceMs: 30 * 86_400_000,
  managedSettings: null,
})

/** Begins a sign-in, and comes back from a provider that plays the part. */
export async function visit(
  { provider, browser, returnTo }: { provider: PlayedProvider; browser: PersonBrowser; returnTo?: string },
  part: Part = {},
) {
  provider.part = part
  const seen = await browser.open(provider.approve(await browser.begin(returnTo)))
  provider.part = {}
  return { ...seen, browser }
}

type At = Pick<TestGateway, 'url'>

/** A terminal or a coding agent. */
export class TestDevice {
  readonly deviceCode: string
  readonly userCode: string
  token = ''

  private constructor(codes: Record<string, string>) {
    this.deviceCode = codes['device_code'] ?? ''
    this.userCode = codes['user_code'] ?? ''
  }

  static async begin(gateway: At, userAgent = 'claude-code/2.1.328'): Promise<TestDevice> {
    const { status, json } = await postForm(gateway, 'device_authorization', {}, userAgent)
    assert.equal(status, 200, JSON.stringify(json))
    return new TestDevice(json as Record<string, string>)
  }

  async poll(gateway: At) {
    const grant_type = 'urn:ietf:params:oauth:grant-type:device_code'
    const answer = await postForm(gateway, 'token', { grant_type, device_code: this.deviceCode })
    if (answer.status === 200) this.token = String(answer.json['access_token'])
    return answer
  }

  refresh(gateway: At, token = this.token) {
    return postForm(gateway, 'token', { grant_type: 'refresh_token', refresh_token: token })
  }

  get headers() {
    return { authorization: `Bearer ${this.token}` }
  }
}

export async function postForm(
  gateway: At,
  endpoint: string,
  form: Readonly<Record<string, string>>,
  userAgent = 'test',
) {
  const response = await fetch(`${gateway.url}/gateway/oauth/${endpoint}`, {
    method: 'POST',
    headers: { 'user-agent': userAgent },
    body: new URLSearchParams(form),
  })
  const json = (await response.json()) as Record<string, unknown>
  return { status: response.status, headers: response.headers, json, error: json['error'] }
}

/** Decides about a device on its page, in the browser of a person. */
export async function decide(browser: PersonBrowser, userCode: string, approve = true) {
  const { status, text } = await browser.open(
    '/gateway/v1/device',
    'POST',
    { 'sec-fetch-site': 'same-origin' },
    { user_code: userCode, approve },
  )
  return { status, json: JSON.parse(text) as Record<string, unknown> }
}

export async function signInDevice(gateway: At, browser: PersonBrowser): Promise<TestDevice> {
  const device = await TestDevice.begin(gateway)
  assert.equal((await decide(browser, device.userCode)).status, 200)
  assert.equal((await device.poll(gateway)).status, 200)
  return device
}
