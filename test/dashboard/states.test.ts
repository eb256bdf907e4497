import assert from 'node:assert/strict'
import { dayOf } from '../../src/ledger/calendar.ts'
import { fillLog } from '../support/fill-log.ts'
import { startGateway } from '../support/gateway.ts'
import { changeDatabase } from '../support/read-database.ts'
import { after, before, test } from '../support/suite.ts'
import { openBrowser, type Person, untilShown, violationsOf } from './browser.ts'

const gateway = await startGateway()
let person: Person
before(async () => {
  person = await openBrowser(gateway, /503|ERR_INTERNET_DISCONNECTED/)
})
after(async () => {
  await person?.close()
  await gateway.close()
})

const KEYS = 100_000
const CALLS = 5_000_000
const LOGGED_CALLS = 30_000
const TODAY = dayOf(Date.now())

const numbers = (count: number) =>
  `WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ${count})`

test('loading is shown, and a failure says what failed and offers a retry', async () => {
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
  await page.getByRole('button', { name: 'Retry' }).click()
  await page.getByRole('link', { name: 'test', exact: true }).waitFor()
  assert.equal(await page.getByRole('alert').count(), 0)

  await page.route('**/v1/usage?*', () => {})
  await page.getByRole('link', { name: 'Usage' }).click()
  await page.getByRole('status', { name: 'Loading' }).first().waitFor()
  assert.deepEqual(await violationsOf(page), [])
})

test('a page is painted before its script loads, and complete before any API response', async () => {
  const page = await person.visit('/dashboard/prices')
  await page.route(/\/(gateway\/v1|v1)\//, () => {})
  await page.goto(`${gateway.url}/dashboard/keys`)
  await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
  await page.getByRole('status', { name: 'Loading' }).waitFor()
  await page.getByRole('button', { name: 'New key' }).waitFor()
  await page.route('**/*.js', () => {})
  await page.goto(`${gateway.url}/dashboard/usage`, { waitUntil: 'commit' })
  await page.getByText('Tollgate', { exact: true }).waitFor()
})

test('figures stay while the gateway is down, and the page continues when it is back', async () => {
  const page = await person.visit('/dashboard/keys')
  await page.getByRole('link', { name: 'test', exact: true }).waitFor()
  await page.context().setOffline(true)
  await page.getByText('The gateway does not answer. Check that it runs.').waitFor()
  await page.getByRole('link', { name: 'test', exact: true }).waitFor()
  await page.context().setOffline(false)
  await page.getByRole('alert').waitFor({ state: 'detached' })
})

test('a name with 120 emoji, markup and right-to-left text does not widen the page', async () => {
  for (const name of [
    '🦜'.repeat(120),
    '<img src=x onerror=alert(1)>'.repeat(4),
    'مساعد الدعم الفني '.repeat(6),
  ]) {
    const { id } = await gateway.createKey(name)
    const page = await person.visit(`/dashboard/keys/${id}`, { width: 390, scheme: 'light' })
    await page.getByRole('heading', { level: 1, name: name.trim() }).waitFor()
    assert.equal(await page.evaluate<number>('document.documentElement.scrollWidth'), 390)
    for (const path of ['/dashboard/keys', '/dashboard/keys?search=x']) {
      await page.goto(gateway.url + path)
      await untilShown(page)
      assert.equal(await page.evaluate<number>('document.documentElement.scrollWidth'), 390, path)
    }
    assert.equal(await page.locator('main img').count(), 0)
    await page.context().close()
  }
})

test('with 100,000 keys and five million calls, pages show a hundred rows, the next ones, and search results', async () => {
  const isSqlite = gateway.databaseUrl === null
  const { id } = await gateway.createKey('the last of all')
  await changeDatabase(
    gateway,
    `INSERT INTO budget (id, account_id) VALUES ('bud_all', 'default');
     ${numbers(KEYS)}
     INSERT INTO api_key (id, account_id, budget_id, name, name_upper, digest, prefix, last4, created_at_ms)
     SELECT 'key_0000000000000000' || (1000000000 + i), 'default', 'bud_all', 'key ' || i, 'KEY ' || i,
       ${isSqlite ? 'randomblob(32)' : "decode(md5('' || i) || md5('x' || i), 'hex')"},
       'svc_live_xxxxxxx', 'xxxx', 0 FROM n`,
  )
  // Lists are read by cursor and reports from daily sums, so the number of calls does not matter.
  await fillLog(gateway, id, LOGGED_CALLS, Date.now())
  await changeDatabase(
    gateway,
    `${numbers(KEYS)}
     INSERT INTO rollup (account_id, day, model, key_id, requests, input_tokens, cost_nanos, list_nanos)
     SELECT 'default', '${TODAY}', 'claude-opus-4-8', 'key_0000000000000000' || (1000000000 + i), ${CALLS / KEYS},
       60000, 1000001, 2000000 FROM n`,
  )
  const page = await person.visit('/dashboard/keys')
  await page.locator('tbody tr').nth(99).waitFor()
  assert.equal(await page.locator('tbody tr').count(), 100)
  const first = await page.locator('tbody tr').first().textContent()
  await page.getByRole('button', { name: 'Next page' }).click()
  await page.waitForURL(/after=/)
  await page.locator('tbody tr', { hasText: first ?? '' }).waitFor({ state: 'detached' })
  await page.getByLabel('Search keys').fill('key 54321')
  await page.getByRole('link', { name: 'key 54321' }).waitFor()
  assert.equal(await page.locator('tbody tr').count(), 1)

  await page.goto(`${gateway.url}/dashboard/usage?by=model,key`)
  await page.locator('.facts_sums li', { hasText: 'Calls' }).getByText('5,000,000').waitFor()
  assert.equal(await page.locator('.facts_sums li data').first().getAttribute('value'), '100.0001')
  await page.getByRole('region', { name: 'Usage' }).locator('tbody tr').nth(199).waitFor()
  await page.getByRole('button', { name: 'Next page' }).click()
  await page.waitForURL(/after=/)

  await page.goto(`${gateway.url}/dashboard/requests?status=429`)
  await page.locator('tbody tr').nth(99).waitFor()
  await page.getByRole('button', { name: 'Next page' }).click()
  await page.waitForURL(/after=/)
  await page.locator('tbody tr').nth(99).waitFor()

  await page.goto(`${gateway.url}/dashboard/requests?start=${TODAY}&key=key_00000000000000001000000007`)
  await page.getByText('in 50 settled calls').waitFor()
  await page.goto(`${gateway.url}/dashboard`)
  await page.getByText('5,000,000 calls').waitFor()
})

test('no window had an error, a policy violation or a request to another host', () => {
  assert.deepEqual(person.complaints(), [])
})
