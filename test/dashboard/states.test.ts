import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { changeBooks } from '../support/books.ts'
import { fillLog } from '../support/fill-log.ts'
import { startGateway } from '../support/gateway.ts'
import { openBrowser, type Person, violationsOf } from './browser.ts'

const gateway = await startGateway()
let person: Person
before(async () => {
  person = await openBrowser(gateway)
})
after(async () => {
  await person.close()
  await gateway.close()
})

const KEYS = 100_000
const CALLS = 100_000

test('what is on its way is shown as such, and a failure says what failed and is tried again', async () => {
  const page = await person.visit('/dashboard/prices')
  let fails = true
  await page.route('**/v1/keys?*', async (route) => {
    if (fails)
      await route.fulfill({
        status: 503,
        json: { error: { code: 'store_unavailable', message: 'The store is away.' } },
      })
    else await route.continue()
  })
  await page.getByRole('link', { name: 'Keys' }).click()
  await page.getByRole('alert').getByText('The store is away.').waitFor()
  assert.deepEqual(await violationsOf(page), [])
  fails = false
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('link', { name: 'test', exact: true }).waitFor()
  assert.equal(await page.getByRole('alert').count(), 0)

  await page.route('**/v1/usage?*', () => {})
  await page.getByRole('link', { name: 'Usage' }).click()
  await page.getByRole('status', { name: 'Loading' }).first().waitFor()
  assert.deepEqual(await violationsOf(page), [])
})

test('a figure that was read stays while the gateway is away, and the page goes on when it is back', async () => {
  const page = await person.visit('/dashboard/keys')
  await page.getByRole('link', { name: 'test', exact: true }).waitFor()
  await page.context().setOffline(true)
  await page.getByText('The gateway does not answer. Is it running?').waitFor()
  await page.getByRole('link', { name: 'test', exact: true }).waitFor()
  await page.context().setOffline(false)
  await page.getByRole('alert').waitFor({ state: 'detached' })
})

test('a name of 120 emoji, markup and text from right to left leave the page as wide as it was', async () => {
  for (const name of [
    '🦜'.repeat(120),
    '<script>alert(1)</script>'.repeat(4),
    'مساعد الدعم الفني '.repeat(6),
  ]) {
    const { id } = await gateway.createKey(name)
    const page = await person.visit(`/dashboard/keys/${id}`, { width: 390, scheme: 'light' })
    await page.getByRole('heading', { level: 1, name: name.trim() }).waitFor()
    assert.equal(await page.evaluate<number>('document.documentElement.scrollWidth'), 390)
    await page.context().close()
  }
})

test('with a hundred thousand keys and calls, pages show a hundred, the next ones, and what is searched for', async () => {
  const { id } = await gateway.createKey('the last of all')
  await changeBooks(
    gateway,
    `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${KEYS})
     INSERT INTO api_key (id, account_id, name, digest, prefix, last4, created_at_ms)
     SELECT 'key_0000000000000000' || (1000000000 + i), 'default', 'key ' || i,
       ${gateway.databaseUrl === null ? 'randomblob(32)' : "decode(md5('' || i) || md5('x' || i), 'hex')"},
       'svc_live_xxxxxxx', 'xxxx', 0 FROM n`,
  )
  await fillLog(gateway, id, CALLS, Date.now())
  const page = await person.visit('/dashboard/keys')
  await page.locator('tbody tr').nth(99).waitFor()
  assert.equal(await page.locator('tbody tr').count(), 100)
  const first = await page.locator('tbody tr').first().textContent()
  await page.getByRole('button', { name: 'Next page' }).click()
  await page.waitForURL(/after=/)
  await page.locator('tbody tr', { hasText: first ?? '' }).waitFor({ state: 'detached' })
  await page.getByLabel('Search keys').fill('key 99999')
  await page.getByRole('link', { name: 'key 99999' }).waitFor()
  assert.equal(await page.locator('tbody tr').count(), 1)

  await page.goto(`${gateway.url}/dashboard/requests?status=429`)
  await page.locator('tbody tr').nth(99).waitFor()
  await page.getByRole('button', { name: 'Next page' }).click()
  await page.waitForURL(/after=/)
  await page.locator('tbody tr').nth(99).waitFor()
})

test('no window has complained', () => {
  assert.deepEqual(person.complaints(), [])
})
