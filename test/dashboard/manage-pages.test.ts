import assert from 'node:assert/strict'
import { startGateway } from '../support/gateway.ts'
import { changeDatabase } from '../support/read-database.ts'
import { after, before, test } from '../support/suite.ts'
import { openBrowser, type Person, signIn, tabTo, untilShown, violationsOf } from './browser.ts'

const gateway = await startGateway({ simulator: true })
const { manage } = gateway
let person: Person
before(async () => {
  person = await openBrowser(gateway)
})
after(async () => {
  await person?.close()
  await gateway.close()
})

test('every page mentions the simulator', async () => {
  const page = await person.visit('/dashboard/credits')
  await page.getByText('are listed here').waitFor()
  assert.deepEqual(await violationsOf(page), [])
  for (const path of ['', '/keys', '/settings', '/accounts/default']) {
    await page.goto(`${gateway.url}/dashboard${path}`)
    await page.getByText('The built-in simulator answers calls').waitFor()
  }
})

test('activity: a change shows its actor and the values before and after, and the URL holds the filter', async () => {
  const { id } = await gateway.createKey('checkout', { monthly_budget_usd: 50 })
  await manage('PATCH', `/v1/keys/${id}`, { monthly_budget_usd: 75, allowed_models: ['claude-*'] })
  const page = await person.visit('/dashboard/activity')
  const row = page.locator('tbody tr', { hasText: 'checkout' }).first()
  await row.getByText('Key checkout changed').waitFor()
  assert.deepEqual(await row.locator('li').allTextContents(), [
    'budget per month $50.00 → $75.00',
    'models all → claude-*',
  ])
  await row.getByText('over the API').waitFor()
  await page.getByLabel('Type').selectOption('key.created')
  await page.waitForURL(/type=key\.created/)
  await page.getByText('Key checkout changed').waitFor({ state: 'detached' })
  await page.getByText('Key checkout created').waitFor()
  const csv = await page.getByRole('link', { name: 'CSV' }).getAttribute('href')
  const lines = await page.evaluate<string>(`fetch('${csv}').then((reply) => reply.text())`)
  assert.match(lines, /^id,type,.*\r?\nevt_\w+,key\.created,/)
})

test('activity: rows load a hundred at a time', async () => {
  for (let n = 0; n < 101; n++) await gateway.createKey(`key ${n}`)
  const page = await person.visit('/dashboard/activity')
  await page.locator('tbody tr').nth(99).waitFor()
  await page.getByRole('button', { name: 'Next page' }).click()
  await page.waitForURL(/after=evt_/)
  await page.getByText('Key key 0 created').waitFor()
  await untilShown(page)
})

test('activity: each day is shown once, above its events', async () => {
  await changeDatabase(
    gateway,
    "UPDATE event SET created_at_ms = created_at_ms - 86400000 WHERE type = 'admin_key.created'",
  )
  for (const name of ['one', 'other'])
    await manage('POST', '/gateway/v1/admin-keys', { name, role: 'operator' })
  const page = await person.visit('/dashboard/activity?type=admin_key.created')
  await page.locator('tbody tr', { hasText: 'one' }).waitFor()
  const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10)
  assert.deepEqual(await page.getByRole('rowheader').allTextContents(), [
    `Today, ${dayOf(Date.now())}`,
    `Yesterday, ${dayOf(Date.now() - 86_400_000)}`,
  ])
})

const balanceOf = async (account: string) =>
  (await manage('GET', `/gateway/v1/balance?account=${account}`))['balance_usd']

test('credits: an operator tops up and corrects, and sees the new balance before confirming', async () => {
  const page = await person.visit('/dashboard/credits')
  await page.getByRole('button', { name: 'Top up' }).click()
  await page.getByLabel('Amount, USD').fill('$1,250.5')
  await page.getByLabel('Reason').fill('invoice 7')
  await page.getByRole('dialog').getByText('$1,250.50').waitFor()
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.locator('tbody tr', { hasText: 'invoice 7' }).getByText('Top-up').waitFor()
  await page.getByRole('button', { name: 'Deduct credit' }).click()
  await page.getByLabel('Amount to deduct, USD').fill('50.5')
  await page.getByLabel('Reason').fill('typed too much')
  await page.getByRole('dialog').getByText('$1,200.00').waitFor()
  await page.getByRole('button', { name: 'Deduct', exact: true }).click()
  await page.locator('tbody tr', { hasText: 'typed too much' }).getByText('−50.50').waitFor()
  assert.equal(await page.locator('.facts_sums data').first().getAttribute('value'), '1200')
  assert.equal(await balanceOf('default'), 1200)
})

test('accounts: one is created, limited, opened by its operator, suspended by name and resumed', async () => {
  const page = await person.visit('/dashboard/accounts')
  await page.getByRole('button', { name: 'New account' }).click()
  await page.getByLabel('Name').fill('Acme')
  await page.getByLabel('Budget per month, USD').fill('$500')
  await page.getByLabel('Discount, %').fill('12.5')
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.getByRole('heading', { level: 1, name: 'Acme' }).waitFor()
  const id = new URL(page.url()).pathname.split('/').at(-1) ?? ''
  const { monthly_budget_usd, discount } = await manage('GET', `/gateway/v1/accounts/${id}`)
  assert.deepEqual([monthly_budget_usd, discount], [500, 0.125])

  await page.getByRole('link', { name: 'Switch to this account' }).click()
  await page.getByText('Acting in account Acme').waitFor()
  await page.getByRole('navigation').getByRole('link', { name: 'Credits' }).click()
  await page.getByRole('button', { name: 'Top up' }).click()
  await page.getByLabel('Amount, USD').fill('20')
  await page.getByLabel('Reason').fill('start')
  await page.keyboard.press('Enter')
  await page.locator('tbody tr', { hasText: 'start' }).waitFor()
  assert.deepEqual([await balanceOf(id), await balanceOf('default')], [20, 1200])
  await page.getByRole('navigation').getByRole('link', { name: 'Keys' }).click()
  await page.waitForURL(`**/dashboard/keys?account=${id}`)
  await page.getByRole('button', { name: 'Create the first key' }).click()
  await page.getByLabel('Name').fill('first of Acme')
  await page.getByRole('button', { name: 'Create key' }).click()
  await page.locator('tbody tr', { hasText: 'first of Acme' }).waitFor()
  await page.getByRole('button', { name: 'Copy the secret' }).click()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('heading', { level: 1, name: 'first of Acme' }).waitFor()

  await page.goto(`${gateway.url}/dashboard/accounts/${id}`)
  await page.getByRole('button', { name: 'Suspend' }).click()
  await page.getByLabel('Type Acme to confirm').fill('Acme')
  await page.getByRole('dialog').getByRole('button', { name: 'Suspend' }).click()
  await page.getByText('suspended', { exact: true }).waitFor()
  await page.getByRole('link', { name: 'Accounts' }).first().click()
  await page.locator('tfoot', { hasText: '2 accounts' }).getByText('1,220.00').waitFor()
  await page.getByRole('link', { name: 'Acme' }).click()
  await page.getByRole('button', { name: 'Resume' }).click()
  await page.getByRole('button', { name: 'Suspend' }).waitFor()
})

test("settings: an admin key shows its secret once, and its role's missing permissions are not offered", async () => {
  const page = await person.visit('/dashboard/settings')
  await page.getByText('80%').waitFor()
  await page.getByRole('button', { name: 'New admin key' }).click()
  await page.getByLabel('Name').fill('auditor')
  await page.getByRole('button', { name: 'Create admin key' }).click()
  const secret = (await page.locator('.copy_secret code').textContent()) ?? ''
  await page.getByRole('button', { name: 'Copy the secret' }).click()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.locator('tbody tr', { hasText: 'auditor' }).getByText('viewer').waitFor()

  const viewer = await person.open('/dashboard/keys?search=checkout')
  await signIn(viewer, secret)
  await viewer.getByRole('link', { name: 'checkout' }).waitFor()
  assert.equal(await viewer.getByRole('link', { name: 'Accounts' }).count(), 0)
  for (const path of ['keys', 'credits', 'webhooks', 'settings', 'accounts']) {
    await viewer.goto(`${gateway.url}/dashboard/${path}`)
    await untilShown(viewer)
    assert.equal(await viewer.getByRole('main').locator('button.primary').count(), 0, path)
    assert.equal(await viewer.getByRole('alert').count(), 0, path)
  }
  await viewer.getByText('Only operators manage accounts.').waitFor()
  const { id } = await manage('POST', '/gateway/v1/webhooks', {
    url: 'https://example.com/read',
    events: ['*'],
  })
  await viewer.goto(`${gateway.url}/dashboard/webhooks?id=${id}`)
  await viewer.getByRole('heading', { name: 'https://example.com/read' }).waitFor()
  assert.equal(await viewer.getByRole('button', { name: /Send a test|Edit|Delete/ }).count(), 0)
  await viewer.context().close()

  await page.getByRole('button', { name: 'Revoke auditor' }).click()
  await page.getByLabel('Type auditor to confirm').fill('auditor')
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await page.locator('tbody tr', { hasText: 'auditor' }).getByText('revoked').waitFor()
})

test('the keyboard alone tops up, creates an account, an admin key and a webhook, and revokes by name', async () => {
  const page = await person.visit('/dashboard/credits')
  const type = async (...texts: readonly string[]) => {
    for (const [i, text] of texts.entries()) {
      if (i > 0) await page.keyboard.press('Tab')
      await page.keyboard.type(text)
    }
    await page.keyboard.press('Enter')
  }
  const open = async (title: string, button: string) => {
    if (title !== '') {
      await tabTo(page, title)
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { level: 1, name: title }).waitFor()
    }
    await untilShown(page)
    await tabTo(page, button)
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor()
  }
  const closeSecret = async () => {
    await page.getByRole('button', { name: 'Copy the secret' }).waitFor()
    await tabTo(page, 'Copy the secret')
    await page.keyboard.press('Enter')
    await page.getByText('Copied').waitFor()
    await tabTo(page, 'Done')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
  await open('', 'Top up')
  await type('7', 'by hand')
  await page.locator('tbody tr', { hasText: 'by hand' }).waitFor()
  // The answer about the account never arrives: Enter must not depend on it.
  await page.route('**/accounts/self*', () => undefined)
  await open('Settings', 'New admin key')
  await type('typist')
  await closeSecret()
  await open('', 'Revoke typist')
  await type('typist')
  await page.locator('tbody tr', { hasText: 'typist' }).getByText('revoked').waitFor()
  await page.unroute('**/accounts/self*')
  await open('Webhooks', 'New webhook')
  await type('https://example.com/typed')
  await closeSecret()
  await page.getByRole('link', { name: 'https://example.com/typed' }).waitFor()
  await open('Accounts', 'New account')
  await type('Typed')
  await page.getByRole('heading', { level: 1, name: 'Typed' }).waitFor()
  await open('', 'Suspend')
  await type('Typed')
  await page.getByRole('button', { name: 'Resume' }).waitFor()
})

test('no window had an error, a policy violation or a request to another host', () => {
  assert.deepEqual(person.complaints(), [])
})
