import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { Secret } from '../../src/kernel/secret.ts'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { CertifiedProvider, CLIENT } from '../sign-in/certified-provider.ts'
import { TestDevice } from '../sign-in/played-people.ts'
import { closedPort } from '../support/closed-port.ts'
import { after, before, test } from '../support/suite.ts'
import { openBrowser, type Person, untilShown, violationsOf } from './browser.ts'

const port = await closedPort()
const dashboardUrl = `http://127.0.0.1:${port}`
const provider = await CertifiedProvider.start(dashboardUrl)
for (const [subject, name, group] of [
  ['ada', 'Ada Lovelace', 'developers'],
  ['grace', 'Grace Hopper', 'leads'],
  ['eve', 'Eve', 'strangers'],
] as const)
  provider.employees.set(subject, {
    ...{ name, email: `${subject}@example.com`, email_verified: true },
    groups: [group],
  })
const bench = await startBillingBench({
  env: { TOLLGATE_PORT: String(port) },
  settings: {
    signIn: {
      issuer: provider.issuer,
      clientId: CLIENT.id,
      clientSecret: new Secret(CLIENT.secret),
      dashboardUrl,
      scopes: ['openid', 'email', 'profile'],
      groupsClaim: 'groups',
      emailClaim: 'email',
      allowedDomains: ['example.com'],
      rules: [
        { group: 'developers', role: 'member', account: 'default' },
        { group: 'leads', role: 'admin', account: 'default' },
      ],
      sessionMs: 3_600_000,
      deviceMs: 86_400_000,
      managedSettings: null,
    },
  },
})
const { gateway } = bench
let browser: Person
before(async () => {
  browser = await openBrowser(gateway, /40[0134]/)
})
after(async () => {
  await browser?.close()
  await bench.close()
  await provider.close()
})

/** Signs in at the provider, whose page sends everybody on at once. */
async function comeAs(subject: string, path = '/dashboard'): Promise<Page> {
  provider.person = subject
  const page = await browser.open(path)
  await page.getByRole('link', { name: 'Sign in with your company account' }).click()
  return page
}

const hello = { model: 'claude-haiku-5-5', max_tokens: 64, messages: [{ role: 'user', content: 'Hello' }] }

test('a person signs in at the provider, returns to the page, and makes a key whose example works', async () => {
  const page = await comeAs('ada', '/dashboard/me?from=mail')
  await untilShown(page)
  assert.equal(page.url(), `${dashboardUrl}/dashboard/me?from=mail`)
  await page.getByRole('heading', { level: 1, name: 'My keys' }).waitFor()
  assert.deepEqual(await violationsOf(page), [])
  assert.deepEqual(
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents(),
    ['My keys', 'Usage', 'Requests', 'Prices'],
  )
  await page.getByRole('button', { name: 'Create your first key' }).click()
  await page.getByLabel('Name').fill('laptop')
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.getByRole('dialog').locator('pre').nth(1).waitFor()
  const secrets = await page.getByRole('dialog').locator('pre').allTextContents()
  const key = /svc_live_\w+/.exec(secrets[0] ?? '')?.[0] ?? ''
  assert.ok(secrets[1]?.includes(key), 'the example contains the key')
  await page.getByRole('button', { name: 'Copy the secret' }).click()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('link', { name: 'laptop' }).waitFor()
  await bench.call('/v1/messages', hello, { key })
  await page.getByRole('table').getByText('claude-haiku-5-5').first().waitFor()
})

test('a member renames and revokes an own key, and sees no page of admins', async () => {
  const page = await comeAs('ada')
  await page.getByRole('link', { name: 'laptop' }).first().click()
  await page.getByRole('button', { name: 'Rename' }).click()
  await page.getByRole('dialog').getByLabel('Name').fill('old laptop')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('heading', { level: 1, name: 'old laptop' }).waitFor()
  assert.equal(await page.getByRole('button', { name: 'Change limits' }).count(), 0)
  assert.deepEqual(await violationsOf(page), [])
  await page.getByRole('button', { name: 'Revoke' }).click()
  await page.getByRole('textbox').fill('old laptop')
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await page.locator('header').getByText('revoked').waitFor()
  for (const section of ['keys', 'people', 'settings', 'webhooks', 'activity', 'credits', 'accounts']) {
    await page.goto(`${dashboardUrl}/dashboard/${section}`)
    await page.getByText('This page is for admins.').waitFor()
  }
  for (const section of ['usage', 'requests', 'prices']) {
    await page.goto(`${dashboardUrl}/dashboard/${section}`)
    await untilShown(page)
    assert.equal(await page.getByRole('alert').count(), 0, section)
  }
})

test('a device is approved after its code is compared, is one of the keys, and a code works once', async () => {
  const device = await TestDevice.begin(gateway)
  const link = `/dashboard/device?user_code=${device.userCode}`
  const page = await comeAs('ada', link)
  await untilShown(page)
  assert.equal(await page.getByLabel('Code').inputValue(), device.userCode)
  assert.deepEqual(await violationsOf(page), [])
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.getByRole('heading', { name: 'is signed in.' }).waitFor()
  assert.equal((await device.poll(gateway)).status, 200)
  await page.getByRole('link', { name: 'My keys' }).last().click()
  await page.getByRole('region', { name: 'Keys' }).getByText('claude-code').waitFor()
  await page.goto(dashboardUrl + link)
  await page.getByRole('button', { name: 'Approve' }).click()
  await page.getByRole('alert').getByText('No device waits with this code.').waitFor()

  const other = await TestDevice.begin(gateway)
  await page.getByLabel('Code').fill(other.userCode.toLowerCase().replace('-', ' '))
  await page.getByRole('button', { name: 'Deny' }).click()
  await page.getByRole('heading', { name: 'is not signed in.' }).waitFor()
  assert.equal((await other.poll(gateway)).error, 'access_denied')
})

test('an admin finds a person, sets a budget, follows the spend to its calls, blocks and unblocks', async () => {
  const page = await comeAs('grace', '/dashboard/people')
  await untilShown(page)
  await page.getByRole('searchbox').fill('ada@')
  await page.getByText('Grace Hopper').waitFor({ state: 'detached' })
  const spent = page.locator('tbody tr', { hasText: 'Ada Lovelace' }).locator('td a data').first()
  const exact = await spent.getAttribute('value')
  assert.ok(Number(exact) > 0)
  await spent.click()
  await page.waitForURL(/requests\?.*person=per_/)
  assert.equal(await page.locator('.sum-line b data').getAttribute('value'), exact)
  await page.locator('.sum-line').getByRole('link', { name: 'Ada Lovelace' }).click()
  await page.getByRole('heading', { level: 1, name: 'Ada Lovelace' }).waitFor()
  assert.deepEqual(await violationsOf(page), [])

  await page.getByRole('button', { name: 'Change limits' }).click()
  await page.getByLabel('Budget per month, USD').fill('25')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.locator('dl').getByText('$25').waitFor()
  await page.getByRole('button', { name: 'Block' }).click()
  await page.getByRole('textbox').fill('Ada Lovelace')
  await page.getByRole('dialog').getByRole('button', { name: 'Block' }).click()
  await page.locator('header').getByText('blocked').waitFor()
  await page.getByRole('button', { name: 'Unblock' }).click()
  await page.getByRole('button', { name: 'Block' }).waitFor()
})

test('what new people get is a sentence, and changing it for all changes the people who exist', async () => {
  const page = await comeAs('grace', '/dashboard/people')
  await page.getByText('A new person gets no budget, and at most 5 keys for 90 days each.').waitFor()
  await page.getByRole('button', { name: 'Change what new people get' }).click()
  assert.deepEqual(await violationsOf(page), [])
  await page.getByLabel('Budget per month, USD').fill('40')
  await page.getByRole('checkbox', { name: /^Make the same changes/ }).check()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('A new person gets $40.00 a month').waitFor()
  await page.locator('tbody tr', { hasText: 'Ada Lovelace' }).getByText('$40').waitFor()
})

test('an operator moves a person to an account that is found by its name', async () => {
  const { id } = await gateway.manage('POST', '/gateway/v1/accounts', { name: 'Acme' })
  const { data } = await gateway.manage('GET', '/gateway/v1/people?search=ada')
  const page = await browser.visit(`/dashboard/people/${(data as { id: string }[])[0]?.id}`)
  await page.getByRole('button', { name: 'Move' }).click()
  await page.getByRole('dialog').getByLabel('Account').fill('acm')
  await page.locator('datalist option[value="Acme"]').waitFor({ state: 'attached' })
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').getByRole('button', { name: 'Move' }).click()
  await page.getByText('Acting in account').waitFor()
  assert.equal(new URL(page.url()).searchParams.get('account'), id)
})

test('signing out leads to the provider, and whoever has no rule is told so', async () => {
  const page = await comeAs('grace')
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.waitForURL(`${provider.issuer}/session/end**`)
  const stranger = await comeAs('eve')
  await stranger.getByText('403').or(stranger.getByRole('heading')).first().waitFor()
  assert.match(stranger.url(), /\/gateway\/sign-in\/callback/)
})

test('no window had an error or a policy violation', () => {
  const own = browser.complaints().filter((complaint) => !complaint.includes(provider.issuer))
  assert.deepEqual(own, [])
})
