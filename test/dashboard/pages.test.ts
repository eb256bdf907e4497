import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { openBrowser, type Person, takePicture, violationsOf } from './browser.ts'

const bench = await startBillingBench({ env: { TOLLGATE_DISCOUNT: '0.2' } })
const { gateway } = bench
let person: Person
before(async () => {
  person = await openBrowser(gateway)
})
after(async () => {
  await person.close()
  await bench.close()
})

const HOSTILE = '<img src=x onerror=alert(1)>'
const hello = { model: 'claude-haiku-5-5', max_tokens: 100, messages: [{ role: 'user', content: 'Hello' }] }
/** 1,000 × $0.10/M + 200 × $0.50/M = $0.0002 at list price, 20 % off. */
const simulate = 'usage={"input_tokens":1000,"output_tokens":200}'

const checkout = await gateway.createKey('checkout', { monthly_budget_usd: 5 })
const hostile = await gateway.createKey(HOSTILE, { log_requests: true })
const ids: string[] = []
for (const key of [checkout.key, checkout.key, hostile.key]) {
  ids.push((await bench.call('/v1/messages', hello, { simulate, key })).requestId)
}
const [firstCall = ''] = ids

const PATHS = {
  overview: '/dashboard',
  keys: '/dashboard/keys',
  key: `/dashboard/keys/${checkout.id}`,
  usage: '/dashboard/usage?by=model,key',
  requests: '/dashboard/requests',
  request: `/dashboard/requests/${firstCall}`,
  webhooks: '/dashboard/webhooks',
  prices: '/dashboard/prices',
  health: '/dashboard/health',
}

test('every page opens directly, at three widths, in light and dark, and axe finds nothing in it', async () => {
  const found: string[] = []
  for (const [name, path] of Object.entries(PATHS)) {
    for (const screen of [
      { width: 1440, scheme: 'light' },
      { width: 768, scheme: 'light' },
      { width: 390, scheme: 'dark' },
      { width: 1440, scheme: 'dark' },
    ] as const) {
      const page = await person.visit(path, screen)
      await page.getByRole('status', { name: 'Loading' }).first().waitFor({ state: 'detached' })
      await takePicture(page, `${name}-${screen.width}-${screen.scheme}`)
      found.push(
        ...(await violationsOf(page)).map(
          (violation) => `${name} ${screen.width} ${screen.scheme} ${violation}`,
        ),
      )
      const width = await page.evaluate<number>('document.documentElement.scrollWidth')
      if (width > screen.width) found.push(`${name} ${screen.width}: scrolls sideways (${width})`)
      await page.context().close()
    }
  }
  assert.deepEqual(found, [])
})

test('the figure of a month is a door to calls that come to the same sum', async () => {
  const page = await person.visit('/dashboard')
  const [figure] = await page.locator('.sums li a data').all()
  const usd = await figure?.getAttribute('value')
  await figure?.click()
  await page.waitForURL(/\/dashboard\/requests\?start=/)
  await page.getByText('in 3 settled calls').waitFor()
  assert.equal(await page.locator('.sum-line b').first().textContent(), `$${Number(usd)}`)
  assert.equal(Number(usd), 0.00048)
})

test('a key is made, its secret is told once and works, and it is revoked by its name', async () => {
  const page = await person.visit('/dashboard/keys')
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByLabel('Name').fill('made here')
  await page.getByLabel('Budget per month, USD').fill('1.5')
  await page.keyboard.press('Enter')
  const secret = await page.locator('.secret code').textContent()
  const reply = await bench.call('/v1/messages', hello, { simulate, key: secret ?? '' })
  assert.equal(reply.status, 200)
  await page.getByRole('button', { name: 'Copy the secret' }).click()
  await page.getByText('copied').waitFor()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('heading', { level: 1, name: 'made here' }).waitFor()

  await page.getByRole('button', { name: 'Revoke' }).click()
  const confirm = page.getByRole('dialog').getByRole('button', { name: 'Revoke' })
  assert.equal(await confirm.isDisabled(), true)
  await page.getByLabel('Type made here to confirm').fill('made here')
  await confirm.click()
  await page.getByText('revoked', { exact: true }).first().waitFor()
  assert.equal((await bench.call('/v1/messages', hello, { key: secret ?? '' })).status, 401)
})

test('the limits of a key are changed', async () => {
  const page = await person.visit(PATHS.key)
  await page.getByRole('button', { name: 'Change limits' }).click()
  await page.getByLabel('Budget per month, USD').fill('7')
  await page.getByLabel('Models').fill('claude-haiku-5-5\ngpt-6-luna')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('gpt-6-luna').waitFor()
  const key = await gateway.manage('GET', `/v1/keys/${checkout.id}`)
  assert.deepEqual(
    [key['monthly_budget_usd'], key['allowed_models']],
    [7, ['claude-haiku-5-5', 'gpt-6-luna']],
  )
})

test('a key is replaced step by step, and the errand is where it was after a reload', async () => {
  const page = await person.visit(`/dashboard/keys/${hostile.id}`)
  await page.getByRole('button', { name: 'Replace' }).click()
  const secret = await page.locator('.secret code').textContent()
  await page.getByRole('button', { name: 'Copy the secret' }).click()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByText('It has not been used yet.').waitFor()
  await page.getByText('Something still uses it.').waitFor()
  await bench.call('/v1/messages', hello, { simulate, key: secret ?? '' })
  await page.reload()
  await page.getByText('First seen, last used').waitFor()
  await page.getByRole('button', { name: 'Revoke the old key' }).click()
  await page.getByLabel(`Type ${HOSTILE} to confirm`).fill(HOSTILE)
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await page.getByText('Done.').waitFor()
})

test('usage has the sums of the report, by whatever it is grouped, and filters are in the address', async () => {
  const page = await person.visit('/dashboard/usage')
  await page.getByRole('button', { name: 'key', exact: true }).click()
  await page.waitForURL(/by=model%2Ckey/)
  const report = await gateway.manage('GET', '/v1/usage')
  const { cost_usd } = report['total'] as { cost_usd: number }
  assert.equal(await page.locator('.sums li data').first().getAttribute('value'), String(cost_usd))
  await page.getByRole('link', { name: 'checkout' }).waitFor()
  await page.getByRole('button', { name: '7 days' }).click()
  await page.waitForURL(/start=/)
  await page.reload()
  assert.equal(await page.getByRole('button', { name: '7 days' }).getAttribute('aria-pressed'), 'true')
  await page.goBack()
  await page.waitForURL((url) => !url.search.includes('start='))
  assert.equal(await page.getByRole('button', { name: 'This month' }).getAttribute('aria-pressed'), 'true')
})

test('a call is found by its id, refused ones too, and its bill is arithmetic that comes to its cost', async () => {
  const refused = await bench.call('/v1/messages', { ...hello, model: 'other' }, { key: checkout.key })
  assert.equal(refused.status, 403)
  const page = await person.visit('/dashboard/requests')
  await page.getByLabel('Request id').fill(refused.requestId)
  await page.keyboard.press('Enter')
  await page.getByText('Refused with').waitFor()
  await page.goto(`${gateway.url}${PATHS.request}`)
  await page.getByText('$0.00016').first().waitFor()
  const bill = page.getByRole('region', { name: 'Bill' })
  await bill.getByText('1,000').waitFor()
  assert.match((await bill.locator('tfoot').textContent()) ?? '', /\$0\.00016$/)
})

test('what a call cost is given back once', async () => {
  const page = await person.visit(PATHS.request)
  await page.getByRole('button', { name: 'Give back' }).click()
  await page.getByLabel('Reason').fill('a test')
  await page.getByRole('dialog').getByRole('button', { name: 'Give back' }).click()
  await page.getByText('given back').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Give back' }).count(), 0)
})

test('new calls appear while one watches', async () => {
  const page = await person.visit('/dashboard/requests?live=1')
  await page.locator('tbody tr').first().waitFor()
  const { requestId } = await bench.call('/v1/messages', hello, { simulate })
  await page.locator(`a[href="/dashboard/requests/${requestId}"]`).waitFor()
})

test('names are text, whatever is in them', async () => {
  const page = await person.visit('/dashboard/keys?status=all')
  await page.getByText(HOSTILE).first().waitFor()
  assert.equal(await page.locator('td img').count(), 0)
})

test('the keyboard alone goes to a page, searches, and opens and closes what there is', async () => {
  const page = await person.visit('/dashboard')
  await page.keyboard.press('g')
  await page.keyboard.press('k')
  await page.waitForURL(/\/dashboard\/keys$/)
  await page.keyboard.press('/')
  await page.keyboard.type('checkout')
  await page.waitForURL(/search=checkout/)
  await page.keyboard.press('Tab')
  await page.locator('body').press('?')
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
})

test('no window has complained: no error, no violation of the policy, no request to another host', () => {
  assert.deepEqual(person.complaints(), [])
})
