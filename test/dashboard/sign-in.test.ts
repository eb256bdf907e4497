import assert from 'node:assert/strict'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { movableClock } from '../management/movable-clock.ts'
import { openStoreBeside } from '../support/open-store-beside.ts'
import { revokeAdminKeys } from '../support/revoke-admin-keys.ts'
import { after, before, test } from '../support/suite.ts'
import { openBrowser, type Person, signIn, violationsOf } from './browser.ts'

const clock = movableClock()
const bench = await startBillingBench({ clock })
const { gateway } = bench
let person: Person
before(async () => {
  person = await openBrowser(gateway, /401/)
})
after(async () => {
  await person?.close()
  await bench.close()
})

test('a browser at / is redirected to the dashboard, and signs in with an admin key', async () => {
  const page = await person.open('/')
  assert.match(page.url(), /\/dashboard$/)
  await page.getByLabel('Admin key or API key').waitFor()
  assert.deepEqual(await violationsOf(page), [])
  await page.emulateMedia({ colorScheme: 'dark' })
  assert.deepEqual(await violationsOf(page, 'color-contrast'), [])
  await signIn(page, gateway.adminKey)
  await page.getByRole('heading', { name: 'The first call' }).waitFor()
  const kept = await page.evaluate<string>(
    'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])',
  )
  assert.ok(!kept.includes(gateway.adminKey), 'the key is kept in the browser')
})

test('a wrong key is refused with the reason', async () => {
  for (const [key, message] of [
    ['svc_admin_wrong', 'This is not an admin key'],
    ['svc_live_wrong', 'This is not an API key'],
  ] as const) {
    const page = await person.open('/dashboard/usage')
    await signIn(page, key)
    await page.getByRole('alert').getByText(message).waitFor()
    assert.equal(await page.getByRole('navigation').count(), 0)
    await page.context().close()
  }
})

test('signing out ends the session, and the last page opens again after signing in', async () => {
  const page = await person.open('/dashboard/usage?by=day')
  await signIn(page, gateway.adminKey)
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByLabel('Admin key or API key').waitFor()
  assert.deepEqual(await page.context().cookies(), [])
  await page.reload()
  await signIn(page, gateway.adminKey)
  await page.getByRole('heading', { level: 1, name: 'Usage' }).waitFor()
  assert.match(page.url(), /usage\?by=day$/)
})

test('before the first call the page explains how to make it, and shows it when it arrives', async () => {
  const page = await person.visit('/dashboard')
  assert.deepEqual(await violationsOf(page), [])
  await page.getByRole('button', { name: 'Create a key with a budget of $10' }).click()
  await page.locator('pre', { hasText: /svc_live_[0-9A-Za-z]{49}/ }).waitFor()
  await page.getByText('waiting for the first call…').waitFor()
  const key = /svc_live_[0-9A-Za-z]{49}/.exec((await page.locator('pre').textContent()) ?? '')?.[0]
  const unknown = { model: 'nothing', max_tokens: 1, messages: [{ role: 'user', content: 'Hello' }] }
  await bench.call('/v1/messages', unknown, { key: key ?? '' })
  await page.getByRole('region', { name: 'Refused calls' }).getByText('model_not_priced').waitFor()
  await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
})

test('empty pages say what they will show and how to get there', async () => {
  for (const [path, words] of [
    ['/dashboard/keys?status=revoked', 'No key matches.'],
    ['/dashboard/usage?start=2020-01-01&end=2020-01-31', 'No settled calls in this period.'],
    ['/dashboard/requests?state=interrupted', 'No call matches.'],
    ['/dashboard/webhooks', 'Get notified when a budget is nearly spent'],
    ['/dashboard/nowhere', 'This page does not exist.'],
  ] as const) {
    const page = await person.visit('/dashboard')
    await page.goto(gateway.url + path)
    await page.getByText(words).waitFor()
    assert.deepEqual(await violationsOf(page), [], path)
    await page.context().close()
  }
})

test('a session that has expired after twelve hours asks to sign in again, on the same page', async () => {
  const page = await person.open('/dashboard/keys')
  await signIn(page, gateway.adminKey)
  await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
  clock.advance(12 * 3_600_000)
  await page.getByText('Your session has ended.').waitFor()
  await signIn(page, gateway.adminKey)
  await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
})

test('a session ends with its admin key, in an open browser', async () => {
  const page = await person.open('/dashboard/keys')
  await signIn(page, gateway.adminKey)
  await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
  const store = await openStoreBeside(gateway)
  await revokeAdminKeys(store, clock.nowMs())
  await store.close()
  await page.getByText('Your session has ended.').waitFor()
  await signIn(page, gateway.adminKey)
  await page.getByRole('alert').getByText('This admin key was revoked.').waitFor()
})

test('no window had an error, a policy violation or a request to another host', () => {
  assert.deepEqual(person.complaints(), [])
})
