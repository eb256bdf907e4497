import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { openBrowser, type Person, signIn, violationsOf } from './browser.ts'

const bench = await startBillingBench()
const { gateway } = bench
let person: Person
before(async () => {
  person = await openBrowser(gateway)
})
after(async () => {
  await person.close()
  await bench.close()
})

test('a browser at the root is sent to the dashboard, and signs in with an admin key', async () => {
  const page = await person.open('/')
  assert.match(page.url(), /\/dashboard$/)
  assert.deepEqual(await violationsOf(page), [])
  await signIn(page, gateway.adminKey)
  await page.getByRole('heading', { name: 'The first call' }).waitFor()
  const kept = await page.evaluate<string>(
    'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])',
  )
  assert.ok(!kept.includes(gateway.adminKey), 'the key is kept in the browser')
})

test('a wrong key is told, and an API key is none', async () => {
  for (const key of ['svc_admin_wrong', gateway.apiKey]) {
    const page = await person.open('/dashboard/usage')
    await signIn(page, key)
    await page.getByRole('alert').waitFor()
    assert.equal(await page.getByRole('navigation').count(), 0)
  }
})

test('signing out ends the session, and the page that one was on opens again after signing in', async () => {
  const page = await person.open('/dashboard/usage?by=day')
  await signIn(page, gateway.adminKey)
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByLabel('Admin key').waitFor()
  await page.reload()
  await signIn(page, gateway.adminKey)
  await page.getByRole('heading', { level: 1, name: 'Usage' }).waitFor()
  assert.match(page.url(), /usage\?by=day$/)
})

test('a session that was ended elsewhere asks to sign in again, where one was', async () => {
  const page = await person.open('/dashboard/keys')
  await signIn(page, gateway.adminKey)
  await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
  await page.context().clearCookies()
  await page.getByText('Your session has ended.').waitFor()
  await signIn(page, gateway.adminKey)
  await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
})

test('before the first call the page teaches it, and shows it when it comes', async () => {
  const page = await person.visit('/dashboard')
  await page.getByRole('button', { name: 'Make a key with a cap of $10' }).click()
  await page.locator('pre', { hasText: /svc_live_[0-9A-Za-z]{49}/ }).waitFor()
  await page.getByText('waiting for the first call…').waitFor()
  const key = /svc_live_[0-9A-Za-z]{49}/.exec((await page.locator('pre').textContent()) ?? '')?.[0]
  await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
})
