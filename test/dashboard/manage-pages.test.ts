import assert from 'node:assert/strict'
import { startGateway } from '../support/gateway.ts'
import { after, before, test } from '../support/suite.ts'
import { openBrowser, type Person, untilShown } from './browser.ts'

/** The pages of those who run the gateway: activity, credits, settings and accounts. */

const gateway = await startGateway()
const { manage } = gateway
let person: Person
before(async () => {
  person = await openBrowser(gateway)
})
after(async () => {
  await person?.close()
  await gateway.close()
})

test('activity: a change is told with who made it, and the values before and after; the filter is the address', async () => {
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
  await page.getByLabel('type').selectOption('key.created')
  await page.waitForURL(/type=key\.created/)
  await page.getByText('Key checkout changed').waitFor({ state: 'detached' })
  await page.getByText('Key checkout created').waitFor()
  const csv = await page.getByRole('link', { name: 'CSV' }).getAttribute('href')
  const lines = await page.evaluate<string>(`fetch('${csv}').then((reply) => reply.text())`)
  assert.match(lines, /^id,type,.*\r?\nevt_\w+,key\.created,/)
})

test('activity: rows are read by the hundred', async () => {
  for (let n = 0; n < 101; n++) await gateway.createKey(`key ${n}`)
  const page = await person.visit('/dashboard/activity')
  await page.locator('tbody tr').nth(99).waitFor()
  await page.getByRole('button', { name: 'Next page' }).click()
  await page.waitForURL(/after=evt_/)
  await page.getByText('Key key 0 created').waitFor()
  await untilShown(page)
})

test('no window has complained', () => {
  assert.deepEqual(person.complaints(), [])
})
