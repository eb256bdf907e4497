import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { changeDatabase } from '../support/read-database.ts'
import { closeAfter, test } from '../support/suite.ts'
import { WebhookReceiver } from '../support/webhook-receiver.ts'
import { tabTo, untilShown } from './browser.ts'
import { bench, gateway, keys, person } from './company.ts'

const checkout = keys.get('checkout') ?? { id: '', key: '' }
const HOSTILE = '<img src=x onerror=alert(1)>'
const hostile = await gateway.createKey(HOSTILE, { log_requests: true })
const receiver = await WebhookReceiver.start()

const hello = { model: 'claude-haiku-5-5', max_tokens: 2_000, messages: [{ role: 'user', content: 'Hello' }] }
/** Usage of 1,000 × $0.10/M + 200 × $0.50/M = $0.0002 at list price, 20 % off. */
const simulate = 'usage={"input_tokens":1000,"output_tokens":200}'
const { requestId: billed } = await bench.call('/v1/messages', hello, { simulate, key: hostile.key })

closeAfter(receiver)

const figuresOf = (page: Page) =>
  page.locator('.facts_sums b data').evaluateAll((all) => all.map((each) => each.getAttribute('value')))

async function usageOf(query: string) {
  const { total } = await gateway.manage('GET', `/v1/usage${query}`)
  return total as { cost_usd: number; list_cost_usd: number; savings_usd: number; requests: number }
}

function sameDaysOfLastMonth(): [string, string] {
  const now = new Date()
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()]
  const dayOf = (day: number) => new Date(Date.UTC(year, month - 1, day)).toISOString().slice(0, 10)
  const lastOfBefore = new Date(Date.UTC(year, month, 0)).getUTCDate()
  return [dayOf(1), dayOf(Math.min(now.getUTCDate(), lastOfBefore))]
}

test("overview: the figures match the API, and the month's figure links to calls of the same sum", async () => {
  const page = await person.visit('/dashboard')
  const { cost_usd, savings_usd, requests } = await usageOf('')
  const { balance_usd } = await bench.balance()
  // The node caches the overview for up to twenty times as long as it took to read: the first may be older.
  await page.locator(`.facts_sums li:first-child data[value="${cost_usd}"]`).waitFor({ timeout: 90_000 })
  const [month, forecast, saved, left] = await figuresOf(page)
  assert.deepEqual([month, saved, left], [cost_usd, savings_usd, balance_usd].map(String))
  assert.ok(Number(forecast) >= Number(month), 'the forecast is at least what was spent')
  const [first, last] = sameDaysOfLastMonth()
  const { cost_usd: lastMonth } = await usageOf(`?start=${first}&end=${last}`)
  await page.locator('.facts_sums li', { hasText: 'against' }).locator(`data[value="${lastMonth}"]`).waitFor()
  await page.locator('.facts_sums li a').first().click()
  await page.waitForURL(/\/dashboard\/requests\?start=/)
  await page.getByText(`in ${requests.toLocaleString('en-US')} settled calls`).waitFor()
  assert.equal(await page.locator('.sum-line data').getAttribute('value'), String(cost_usd))
})

test('overview: what needs attention is named and linked', async () => {
  const page = await person.visit('/dashboard')
  const looks = page.getByRole('region', { name: 'Needs attention' })
  await looks.getByText('code-review-ci').waitFor()
  await looks.getByText('intern-sandbox').waitFor()
  await looks.getByText('marketing-copy').click()
  await page.waitForURL(`**/keys/${keys.get('marketing-copy')?.id}`)
  await page.getByRole('heading', { level: 1, name: 'marketing-copy' }).waitFor()
})

test('overview: the most expensive keys and models of the month match the report', async () => {
  const page = await person.visit('/dashboard')
  for (const [by, title] of [
    ['key', 'Top keys'],
    ['model', 'Top models'],
  ] as const) {
    const { data } = await gateway.manage('GET', `/v1/usage?group_by=${by}`)
    const costs = (data as { cost_usd: number }[]).map(({ cost_usd }) => cost_usd).sort((a, b) => b - a)
    const top = page.getByRole('region', { name: title }).locator('data')
    await top.nth(4).waitFor()
    const shown = await top.evaluateAll((all) => all.map((each) => Number(each.getAttribute('value'))))
    assert.deepEqual(shown, costs.slice(0, 5), title)
  }
})

test('overview: figures change while calls run', async () => {
  const page = await person.visit('/dashboard')
  const [before] = await figuresOf(page)
  const running = bench.call('/v1/messages', hello, { simulate: 'delay=4000', key: hostile.key })
  await page.locator('.facts_sums a[href*=in_flight]', { hasText: '1' }).waitFor()
  const { requestId } = await bench.call('/v1/messages', hello, { simulate, key: hostile.key })
  await page.locator(`a[href="/dashboard/requests/${requestId}"]`).waitFor()
  await page.locator(`.facts_sums li:first-child b data:not([value="${before}"])`).waitFor()
  await running
  await page.locator('.facts_sums a[href*=in_flight]', { hasText: '0' }).waitFor()
})

test('overview: a day of the chart links to its calls', async () => {
  const page = await person.visit('/dashboard')
  const plot = page.locator('.chart_plot')
  const { width = 0, height = 0 } = (await plot.boundingBox()) ?? {}
  await plot.click({ position: { x: width - 120, y: height / 2 } })
  await page.waitForURL(/usage\?start=(\d{4}-\d\d-\d\d)&end=\1$/)
  await untilShown(page)
  const [, day = ''] = /start=([\d-]+)/.exec(page.url()) ?? []
  const { cost_usd } = await usageOf(`?start=${day}&end=${day}`)
  assert.equal((await figuresOf(page))[0], String(cost_usd))
})

test('keys: one is created, its secret is shown once and works, and it is revoked by name', async () => {
  const page = await person.visit('/dashboard/keys')
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByLabel('Name').fill('made here')
  await page.getByLabel('Budget per month, USD').fill('1.5')
  await page.keyboard.press('Enter')
  const secret = await page.locator('.copy_secret code').textContent()
  const reply = await bench.call('/v1/messages', hello, { simulate, key: secret ?? '' })
  assert.equal(reply.status, 200)
  const asked = page.waitForEvent('dialog')
  const left = page.keyboard.press('Escape')
  await (await asked).dismiss()
  await left
  await page.getByRole('button', { name: 'Copy the secret' }).click()
  await page.getByText('Copied').waitFor()
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

test('keys: search and filter survive a reload and the back button', async () => {
  const page = await person.visit('/dashboard/keys?status=all')
  await page.getByLabel('Search keys').fill('proto')
  await page.waitForURL(/search=proto/)
  await page.locator('tbody tr').nth(1).waitFor({ state: 'detached' })
  await page.reload()
  await page.getByRole('link', { name: 'prototype' }).click()
  await page.getByRole('heading', { level: 1, name: 'prototype' }).waitFor()
  await page.goBack()
  await page.getByRole('link', { name: 'prototype' }).waitFor()
  assert.equal(await page.getByLabel('Search keys').inputValue(), 'proto')
  assert.match(page.url(), /status=all&search=proto$/)
})

test('one key: its limits are changed', async () => {
  const page = await person.visit(`/dashboard/keys/${checkout.id}`)
  await page.getByRole('button', { name: 'Change limits' }).click()
  await page.getByLabel('Budget per month, USD').fill('$1,700')
  for (const model of ['claude-haiku-5-5', 'gpt-6-l*']) {
    await page.getByLabel('Find a model').fill(model)
    await page.keyboard.press('Enter')
  }
  await page.getByRole('button', { name: 'Remove gpt-6.1-terra' }).click()
  await page.getByRole('button', { name: 'Remove gpt-6-luna' }).click()
  await page.getByLabel('Metadata field 1').fill('team')
  await page.getByLabel('Metadata value 1').fill('shop')
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.getByText('claude-haiku-5-5').first().waitFor()
  const key = await gateway.manage('GET', `/v1/keys/${checkout.id}`)
  assert.deepEqual(
    [key['monthly_budget_usd'], key['allowed_models'], key['metadata']],
    [1700, ['claude-haiku-5-5', 'gpt-6-l*'], { team: 'shop' }],
  )
})

test('one key: it is rotated in steps, which survive a reload', async () => {
  const page = await person.visit(`/dashboard/keys/${hostile.id}`)
  await page.getByRole('button', { name: 'Rotate' }).click()
  await page.getByText('Both keys draw on one budget').waitFor()
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click()
  const secret = await page.locator('.copy_secret code').textContent()
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

test('usage: ten sums match the report in every grouping, and the URL holds the filters', async () => {
  const page = await person.visit('/dashboard/usage')
  const { cost_usd, list_cost_usd, savings_usd } = await usageOf('')
  assert.deepEqual((await figuresOf(page)).slice(0, 3), [cost_usd, list_cost_usd, savings_usd].map(String))
  await page.getByRole('button', { name: 'Key', exact: true }).click()
  await page.waitForURL(/by=model%2Ckey/)
  await page.getByRole('link', { name: 'support-agent' }).first().waitFor()
  const { data } = await gateway.manage('GET', '/v1/usage?group_by=model,key')
  const costs = (data as { cost_usd: number }[]).map((bucket) => bucket.cost_usd).sort((a, b) => b - a)
  const shown = await page
    .getByRole('region', { name: 'Usage' })
    .locator('tbody td.table_figure:nth-child(3) data')
    .evaluateAll((all) => all.map((each) => each.getAttribute('value')))
  assert.ok(shown.length >= 10, `${shown.length} sums`)
  assert.deepEqual(shown, costs.map(String))

  await page.getByRole('button', { name: '7 days' }).click()
  await page.waitForURL(/start=/)
  await page.reload()
  assert.equal(await page.getByRole('button', { name: '7 days' }).getAttribute('aria-pressed'), 'true')
  await page.goBack()
  await page.waitForURL((url) => !url.search.includes('start='))
  assert.equal(await page.getByRole('button', { name: 'This month' }).getAttribute('aria-pressed'), 'true')
})

test('usage: the sum of one key and model matches its calls', async () => {
  const page = await person.visit('/dashboard/usage?by=model,key')
  const cell = page.locator('tbody tr', { hasText: 'checkout' }).first().locator('td.table_figure a').first()
  const usd = await cell.locator('data').getAttribute('value')
  await cell.click()
  await page.waitForURL(/requests\?.*model=.*key=/)
  await page.locator(`.sum-line data[value="${usd}"]`).waitFor()
})

test('requests: a call is found by its id, refused ones too, and its bill adds up to its cost', async () => {
  const refused = await bench.call('/v1/messages', { ...hello, model: 'other' }, { key: checkout.key })
  assert.equal(refused.status, 403)
  const page = await person.visit('/dashboard/requests')
  await page.getByLabel('Request id').fill(refused.requestId)
  await page.keyboard.press('Enter')
  await page.getByText('Refused with').waitFor()
  await page.goto(`${gateway.url}/dashboard/requests/${billed}`)
  await page.getByText('$0.00016').first().waitFor()
  const bill = page.getByRole('region', { name: 'Bill' })
  await bill.getByText('1,000').waitFor()
  assert.match((await bill.locator('tfoot').textContent()) ?? '', /\$0\.00016$/)
  await page.getByText('Bodies').click()
  await page.locator('pre', { hasText: 'Hello' }).first().waitFor()
  await page.getByText('JSON', { exact: true }).click()
  await page.locator('pre', { hasText: `"id": "${billed}"` }).waitFor()
  await page.getByRole('navigation', { name: 'Breadcrumb' }).getByRole('link', { name: 'Requests' }).click()
  await page.waitForURL(/\/dashboard\/requests$/)
})

test('requests: the cost of a call is credited back once', async () => {
  const page = await person.visit(`/dashboard/requests/${billed}`)
  await page.getByRole('button', { name: 'Credit back' }).click()
  await page.getByLabel('Reason').fill('a test')
  await page.getByRole('dialog').getByRole('button', { name: 'Credit back' }).click()
  await page.getByText('credited back', { exact: true }).waitFor()
  assert.equal(await page.getByRole('button', { name: 'Credit back' }).count(), 0)
})

test('requests: the URL holds the filters, and new calls appear on the open page', async () => {
  const page = await person.visit('/dashboard/requests')
  await page.getByLabel('Flag').selectOption('estimated')
  await page.waitForURL(/flag=estimated/)
  await page.locator('tbody tr', { hasText: 'estimated' }).first().waitFor()
  await page.reload()
  await untilShown(page)
  assert.equal(await page.getByLabel('Flag').inputValue(), 'estimated')
  await page.goBack()
  await page.getByRole('button', { name: 'Follow live' }).click()
  await page.waitForURL(/live=1/)
  const { requestId } = await bench.call('/v1/messages', hello, { simulate })
  await page.locator(`a[href="/dashboard/requests/${requestId}"]`).waitFor()
})

test('requests: a turn of a socket links to all its turns', async () => {
  const ids: string[] = []
  for (let turn = 0; turn < 3; turn += 1)
    ids.push((await bench.call('/v1/messages', hello, { simulate })).requestId)
  const [socket = '', other = '', turn = ''] = ids
  await changeDatabase(
    gateway,
    `UPDATE call SET socket_id = '${socket}' WHERE id IN ('${socket}', '${turn}')`,
  )
  const page = await person.visit(`/dashboard/requests/${turn}`)
  await page.getByRole('link', { name: socket }).click()
  await page.waitForURL(`**/dashboard/requests?socket=${socket}`)
  for (const id of [socket, turn]) await page.locator(`tbody a[href="/dashboard/requests/${id}"]`).waitFor()
  assert.equal(await page.locator('tbody tr').count(), 2)
  await page.goto(`${gateway.url}/dashboard/requests`)
  const [listed, plain] = [turn, other].map((id) =>
    page.locator('tbody tr', { has: page.locator(`a[href="/dashboard/requests/${id}"]`) }),
  )
  await listed?.getByRole('link', { name: 'socket' }).waitFor()
  assert.equal(await plain?.getByRole('link', { name: 'socket' }).count(), 0)
})

test('webhooks: one is created, tested, its delivery shown and sent again, and it is deleted', async () => {
  const page = await person.visit('/dashboard/webhooks')
  await page.getByRole('button', { name: 'New webhook' }).first().click()
  await page.getByLabel('URL').fill(receiver.url)
  await page.getByRole('button', { name: 'Create webhook' }).click()
  assert.match((await page.locator('.copy_secret code').textContent()) ?? '', /^whsec_/)
  await page.getByRole('button', { name: 'Copy the secret' }).click()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('button', { name: 'Send a test' }).click()
  await receiver.untilTypes('webhook.test')
  await page.getByText('Delivered, 204').waitFor()
  await page.getByRole('button', { name: 'Retry webhook.test' }).click()
  await receiver.until((messages) => messages.length >= 2)
  receiver.reply = () => (response) => response.writeHead(500).end('The queue is full.')
  await page.getByRole('button', { name: 'Retry webhook.test' }).first().click()
  await page.getByText('failing: it answered 500').waitFor()
  await page.getByRole('region', { name: 'Failures' }).getByText('1 delivery: it answered 500').waitFor()
  await page.getByRole('region', { name: 'Failures' }).getByText('The queue is full.').waitFor()
  await page.getByRole('button', { name: 'View webhook.test' }).first().click()
  await page.locator('dialog pre', { hasText: '"type": "webhook.test"' }).waitFor()
  await page.getByRole('dialog').getByText('it answered 500').waitFor()
  await page.getByRole('dialog').getByText('HTTP 500').waitFor()
  await page.getByRole('dialog').getByText('The queue is full.').waitFor()
  await page.getByRole('button', { name: 'Close' }).click()
  await page.getByRole('button', { name: 'Edit' }).click()
  await page.getByLabel('Description').fill('the pager')
  await page.getByLabel('All events').check()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByText('the pager').waitFor()
  await page.getByRole('button', { name: 'Turn off' }).click()
  await page.getByRole('button', { name: 'Turn on' }).waitFor()
  await page.getByRole('button', { name: 'Delete' }).click()
  await page.getByLabel('Type 127.0.0.1 to confirm').fill('127.0.0.1')
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
  await page.getByText(receiver.url).first().waitFor({ state: 'detached' })
})

test('prices: a model is found, with the price that its calls are rated at', async () => {
  const page = await person.visit('/dashboard/prices')
  await page.getByLabel('Search models').fill('haiku-5-5')
  await page.waitForURL(/search=haiku-5-5/)
  const rows = page.getByRole('region', { name: 'Prices', exact: true }).locator('tbody tr:not(.table_group)')
  assert.equal(await rows.count(), 1)
  const row = (await rows.allInnerTexts()).join()
  assert.match(row, /claude-haiku-5-5[\s\S]*0\.10[\s\S]*0\.50/)
  for (const [model, rates] of [
    ['whisper-1', '0.36 an hour of audio'],
    ['tts-1-hd', '30.00 a million characters'],
    ['gpt-audio-mini', '10.00 / 20.00 audio tokens'],
    ['gpt-image-1.5', '8.00 / 32.00 image tokens'],
  ] as const) {
    await page.getByLabel('Search models').fill(model)
    await page.locator('tbody tr', { hasText: rates }).waitFor()
  }
  await page.getByLabel('Search models').fill('no such model')
  await page.getByText('No model has that name.').waitFor()
})

test('names are shown as text, whatever they contain', async () => {
  const page = await person.visit('/dashboard/keys?status=all')
  await page.getByText(HOSTILE).first().waitFor()
  assert.equal(await page.locator('main img').count(), 0)
})

test('the keyboard alone signs in, creates a key and opens it, and the dialog traps and restores the focus', async () => {
  const page = await person.open('/dashboard')
  await page.getByLabel('Admin key or API key').waitFor()
  await page.keyboard.press('Tab')
  await page.keyboard.type(gateway.adminKey)
  await page.keyboard.press('Enter')
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()
  await tabTo(page, 'Keys')
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/dashboard\/keys$/)
  await untilShown(page)
  await tabTo(page, 'New key')
  await page.keyboard.press('Enter')
  await page.getByRole('dialog').waitFor()
  const outside = () =>
    page.evaluate<boolean>("document.activeElement.matches('body > * :not(dialog, dialog *)')")
  for (let presses = 0; presses < 10; presses++) {
    await page.keyboard.press('Tab')
    assert.equal(await outside(), false, 'the focus has left the dialog')
  }
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.locator('button:focus', { hasText: 'New key' }).waitFor()
  await page.keyboard.press('Enter')
  await page.keyboard.type('typed')
  await page.keyboard.press('Enter')
  await page.getByRole('button', { name: 'Copy the secret' }).waitFor()
  await tabTo(page, 'Copy the secret')
  await page.keyboard.press('Enter')
  await page.getByText('Copied').waitFor()
  await tabTo(page, 'Done')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'typed' }).waitFor()
  await tabTo(page, 'Keys')
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/dashboard\/keys$/)
  await untilShown(page)
  await page.keyboard.press('/')
  await page.keyboard.type('checkout')
  await page.waitForURL(/search=checkout/)
  await tabTo(page, 'checkout')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'checkout' }).waitFor()
  await page.getByRole('region', { name: 'Calls', exact: true }).locator('tbody tr').nth(1).waitFor()
  for (const key of ['j', 'j', 'k', 'j']) await page.keyboard.press(key)
  await page.locator('tbody tr:nth-child(2) a:focus').waitFor()
  await page.keyboard.press('?')
  await page.getByRole('dialog').waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
})

test('no window had an error, a policy violation or a request to another host', () => {
  assert.deepEqual(person.complaints(), [])
})
