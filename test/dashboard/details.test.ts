import assert from 'node:assert/strict'
import { changeDatabase } from '../support/read-database.ts'
import { test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { signIn, untilShown, violationsOf } from './browser.ts'
import { account, bench, callId, gateway, keys, person, webhook } from './company.ts'

const { manage } = gateway
const hello = { model: 'claude-haiku-5-5', max_tokens: 64, messages: [{ role: 'user', content: 'Hello' }] }
const idOf = (name: string) => keys.get(name)?.id ?? ''
const PHONE = { width: 390, scheme: 'light' } as const

test('a new key shows the settings of six clients, and its copy button works without a clipboard, in one line', async () => {
  const page = await person.visit('/dashboard/keys', PHONE)
  await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByLabel('Name').fill('for six clients')
  await page.getByRole('button', { name: 'Create key' }).click()
  const secret = (await page.locator('.copy_secret code').textContent()) ?? ''
  const copy = page.getByRole('button', { name: 'Copy the secret' })
  assert.ok(((await copy.boundingBox())?.height ?? 99) < 32, 'the button wraps')
  for (const client of ['curl', 'Claude Code', 'Codex', 'Anthropic SDK', 'OpenAI SDK', 'Python']) {
    await page.getByRole('button', { name: client }).click()
    const text = (await page.locator('.clients pre').textContent()) ?? ''
    assert.ok(text.includes(secret) && text.includes(gateway.url), client)
  }
  assert.deepEqual(await violationsOf(page), [])
  await copy.click()
  await page.getByText('Copied').waitFor()
  await page.getByRole('button', { name: 'Done' }).click()
  await page.getByRole('link', { name: 'Keys', exact: true }).first().click()
  await page.getByLabel('Search keys').focus()
  await page.keyboard.press('Control+V')
  assert.equal(await page.getByLabel('Search keys').inputValue(), secret)
})

test('no axis label repeats, for the hours of one or three days, days and a year', async () => {
  const day = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
  const page = await person.visit(`/dashboard/usage?start=${day}&end=${day}`)
  const hours = `?start=${new Date(Date.now() - 3 * 86_400_000).toISOString().slice(0, 10)}&end=${day}`
  for (const path of ['', hours, '?start=2026-01-01&end=2026-01-05', '/dashboard']) {
    if (path !== '') await page.goto(gateway.url + (path.startsWith('?') ? `/dashboard/usage${path}` : path))
    await page.locator('.chart_plot text.chart_slot').first().waitFor()
    const labels = await page.locator('.chart_plot text.chart_slot').allTextContents()
    assert.ok(labels.length >= 3, `${labels}`)
    assert.equal(new Set(labels).size, labels.length, `${labels}`)
  }
})

test('the hours of a day, stacked by model, sum to the day', async () => {
  const day = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
  const page = await person.visit(`/dashboard/usage?start=${day}&end=${day}`)
  await page.getByText(`Cost per hour of ${day}, UTC by model`).first().waitFor()
  await page.locator('.chart_labels li').nth(5).waitFor()
  await page.getByText('View as a table').click()
  const cells = page.locator('.chart_chart tbody tr td:nth-last-child(3) data')
  const costs = await cells.evaluateAll((all) => all.map((each) => Number(each.getAttribute('value'))))
  const { total } = await manage('GET', `/v1/usage?start=${day}&end=${day}`)
  const sum = costs.reduce((all, usd) => all + usd, 0)
  assert.equal(sum.toFixed(9), (total as { cost_usd: number }).cost_usd.toFixed(9))
})

test('the bar of an hour opens its calls', async () => {
  const day = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10)
  const page = await person.visit(`/dashboard/usage?start=${day}&end=${day}`)
  await page.locator('.chart_plot').click({ position: { x: 2, y: 60 } })
  await page.waitForURL((url) => url.searchParams.get('start') === `${day}T00:00:00Z`)
  await untilShown(page)
  const times = await page.locator('tbody tr td:first-child').allTextContents()
  assert.ok(times.length > 0 && times.every((time) => time.startsWith(`${day} 00:`)), `${times}`)
})

test('the costs of a range are shown beside those of the previous range', async () => {
  const page = await person.visit('/dashboard/usage?start=2026-10-05&end=2026-10-11')
  const { total } = await manage('GET', '/v1/usage?start=2026-09-28&end=2026-10-04')
  const cost = page.locator('.facts_sums li').first()
  await cost.getByText('28 Sept – 4 Oct').waitFor()
  assert.equal(
    await cost.locator('span data').getAttribute('value'),
    String((total as { cost_usd: number }).cost_usd),
  )
})

test('the chart of usage names its series, and marks the cost of the previous range', async () => {
  const page = await person.visit('/dashboard/usage?start=2026-10-05&end=2026-10-11&by=day')
  const { total } = await manage('GET', '/v1/usage?start=2026-09-28&end=2026-10-04')
  const before = (total as { cost_usd: number }).cost_usd.toLocaleString('en-GB', {
    minimumFractionDigits: 2,
    maximumFractionDigits: 2,
  })
  const names = page.locator('.chart_chart .chart_labels li')
  await names.filter({ hasText: `28 Sept – 4 Oct $${before}` }).waitFor()
  assert.deepEqual((await names.locator('.name').allTextContents()).slice(1), ['At list price', 'Cost'])
  assert.match(
    (await page.locator('.chart_plot path.chart_earlier').getAttribute('d')) ?? '',
    /^(M[\d.]+ [\d.]+h[\d.]+){7}$/,
  )
})

test('the page of a key shows its spend by month, and when it crossed the thresholds of its budget', async () => {
  const { id, key } = await gateway.createKey('zeta crossing', { monthly_budget_usd: 0.000001 })
  await bench.call('/v1/messages', hello, { key })
  const page = await person.visit(`/dashboard/keys/${id}`)
  const row = page.getByRole('region', { name: 'Months' }).locator('tbody tr')
  await row.getByText('spent on').waitFor()
  await row.getByText('50% on').waitFor()
  const { month_spend_usd } = await manage('GET', `/v1/keys/${id}`)
  await row.locator(`a data[value="${month_spend_usd}"]`).waitFor()
})

test('the timeline of a call has the moments of its record', async () => {
  const page = await person.visit(`/dashboard/requests/${callId}`)
  const { started_at, ended_at, status } = await manage('GET', `/gateway/v1/requests/${callId}`)
  const moments = page.getByRole('region', { name: 'Timeline' }).getByRole('listitem')
  const shown = await moments.allTextContents()
  assert.match(shown.join('\n'), /^Admitted.*\nReserved \$.*\nUpstream answered .*\nSettled.* released$/)
  assert.ok(shown[2]?.startsWith(`Upstream answered ${status}`))
  const times = await moments
    .locator('time')
    .evaluateAll((all) => all.map((each) => each.getAttribute('datetime')))
  assert.deepEqual(times, [started_at, ended_at])
})

test('a refused call shows the reason, and nothing about free endpoints', async () => {
  const { requestId } = await bench.call('/v1/messages', hello, {
    key: keys.get('marketing-copy')?.key ?? '',
  })
  const page = await person.visit(`/dashboard/requests/${requestId}`)
  await page.getByText('nothing was sent upstream').waitFor()
  assert.equal(await page.getByText('The endpoint is free').count(), 0)
  await page.goto(`${gateway.url}/dashboard/keys/${idOf('marketing-copy')}`)
  await page.getByRole('region', { name: 'Refused calls' }).getByText('budget_exceeded').first().waitFor()
})

test('a call without a maximum cost says so, and an operator sees its account', async () => {
  const { key } = await manage('POST', `/v1/keys?account=${account}`, {
    name: 'acme-images',
    monthly_budget_usd: 5,
  })
  const image = { model: 'gpt-image-2', prompt: 'a cat' }
  const { requestId } = await bench.call('/v1/images/generations', image, {
    surface: 'chat',
    key: String(key),
  })
  const page = await person.visit(`/dashboard/requests/${requestId}`)
  await page.getByText('We reserved $5.00 while it ran. This call has no maximum cost').waitFor()
  await page.getByRole('definition').getByRole('link', { name: 'Acme' }).click()
  await page.getByRole('heading', { level: 1, name: 'Acme' }).waitFor()
  await page.goBack()
  await page.getByRole('link', { name: 'acme-images' }).click()
  await page.locator('.facts_facts').getByText('in 1 call').waitFor()
  await page.getByText('Acting in account').waitFor()
  await page.getByText('Models, 30 days').waitFor()
})

test('a batch shows the total cost of its parts', async () => {
  const ids: string[] = []
  for (let n = 0; n < 2; n++)
    ids.push(
      (await bench.call('/v1/messages', hello, { simulate: 'usage={"input_tokens":500000}' })).requestId,
    )
  for (const id of ids) await bench.record(id)
  const [batch = '', part = ''] = ids
  await changeDatabase(
    gateway,
    `UPDATE call SET parent_id = '${batch}' WHERE id = '${part}';
     UPDATE call SET object_id = 'msgbatch_1', cost_nanos = 0, children = 1,
       children_nanos = (SELECT cost_nanos FROM call WHERE id = '${part}') WHERE id = '${batch}'`,
  )
  const { children_cost_usd: usd } = await manage('GET', `/gateway/v1/requests/${batch}`)
  assert.ok(Number(usd) > 0)
  const page = await person.visit(`/dashboard/requests/${batch}`)
  await page.locator('.lead b', { hasText: `$${usd}` }).waitFor()
  await page.getByText('as the sum of 1 part').waitFor()
})

test('a failing webhook is shown as failing', async () => {
  const page = await person.visit(`/dashboard/webhooks?id=${webhook}`)
  const row = page.locator('tbody tr', { hasText: '127.0.0.1:9' }).first()
  await row.locator('.states_tag.bad', { hasText: 'failing: no answer' }).waitFor()
})

test('pages agree on the percentage of a budget, and name a daily cap', async () => {
  const id = idOf('mobile-app')
  const { month_spend_usd: spent } = await manage('GET', `/v1/keys/${id}`)
  await manage('PATCH', `/v1/keys/${id}`, { monthly_budget_usd: Number((Number(spent) / 0.848).toFixed(9)) })
  const page = await person.visit('/dashboard')
  const attention = page.getByRole('region', { name: 'Needs attention' })
  await attention.getByText('mobile-app is at 84% of its budget').waitFor()
  await page.goto(`${gateway.url}/dashboard/keys?search=mobile-app`)
  await page.locator('tbody tr').getByText('84%').waitFor()
  await page.goto(`${gateway.url}/dashboard/keys/${id}`)
  await page.locator('.facts_facts').getByText('84%').waitFor()

  await manage('PATCH', `/v1/keys/${id}`, { monthly_budget_usd: null, daily_budget_usd: 0.000001 })
  await bench.call('/v1/messages', hello, { key: keys.get('mobile-app')?.key ?? '' })
  await page.goto(`${gateway.url}/dashboard/keys?search=mobile-app`)
  await page.locator('tbody tr', { hasText: 'today' }).getByText('spent').waitFor()
  assert.equal(await page.getByText('no budget').count(), 0)
  await page.goto(`${gateway.url}/dashboard`)
  await attention.getByText("mobile-app has spent today's budget").waitFor()
  assert.equal(await attention.locator('li').count(), 5)
  await attention.getByRole('button', { name: /^\d+ more$/ }).click()
  await attention.locator('li').nth(5).waitFor()
})

test('the state of a key is shown beside its name', async () => {
  const { data } = await manage('GET', '/v1/keys?search=prototype')
  const page = await person.visit(`/dashboard/keys/${(data as { id: string }[])[0]?.id}`)
  const title = await page.getByRole('heading', { level: 1 }).boundingBox()
  const state = await page.locator('header .states_tag', { hasText: 'revoked' }).boundingBox()
  assert.ok((state?.x ?? 0) - (title?.x ?? 0) - (title?.width ?? 0) < 32)
})

test('rotated keys are adjacent, and headers sort', async () => {
  const page = await person.visit('/dashboard/keys')
  const names = () => page.locator('tbody td a.name').allTextContents()
  const shown = await names()
  assert.equal(shown.lastIndexOf('support-agent') - shown.indexOf('support-agent'), 1)
  await page.getByText(/^\d+ keys$/).waitFor()
  await page.getByRole('button', { name: 'This month' }).click()
  await page.waitForURL(/sort=-spend/)
  assert.equal((await names())[0], 'code-review-ci')
  await page.getByRole('button', { name: 'Name' }).click()
  await page.waitForURL(/sort=-name/)
  await page.getByRole('button', { name: 'Name' }).click()
  await page.waitForURL(/sort=name/)
  assert.equal((await names())[0], 'billing-batch')
})

test('CSV downloads are complete, without a limit', async () => {
  for (const path of ['usage', 'requests', 'activity']) {
    const page = await person.visit(`/dashboard/${path}`)
    const href = await page.getByRole('link', { name: 'CSV', exact: true }).getAttribute('href')
    assert.ok(href?.includes('format=csv') && !href.includes('limit'), `${href}`)
    await page.context().close()
  }
})

test('requests: the key filter finds a key by a part of its name, shows the name, and is cleared separately', async () => {
  const page = await person.visit('/dashboard/requests?flag=streamed')
  const filter = page.getByRole('combobox', { name: 'Key' })
  await filter.fill('check')
  await page.locator('datalist option[value^="checkout …"]').waitFor({ state: 'attached' })
  await page.keyboard.press('Enter')
  await page.waitForURL(new RegExp(`key=${idOf('checkout')}`))
  await until('the filter shows the name', async () => (await filter.inputValue()).startsWith('checkout …'))
  await filter.fill('')
  await page.waitForURL(/requests\?flag=streamed$/)
})

test('prices: current models come first, filter by provider, and show the rates of long prompts', async () => {
  const page = await person.visit('/dashboard/prices')
  assert.equal(await page.locator('tbody tr').first().getByText('retired').count(), 0)
  await page.getByRole('button', { name: 'openai' }).click()
  await page.waitForURL(/provider=openai/)
  await page.getByText('claude-opus-5-5').waitFor({ state: 'detached' })
  await page.locator('tbody tr', { hasText: 'gpt-6.1-sol' }).getByText('4.00 / 15.00').waitFor()
  await page.getByRole('button', { name: 'Output, USD' }).click()
  await page.waitForURL(/sort=-output/)
  const rates = await page
    .getByRole('region', { name: 'Prices', exact: true })
    .locator('td:nth-child(3)')
    .allTextContents()
  const shown = rates.map(Number).filter((rate) => !Number.isNaN(rate))
  assert.ok(shown.length > 20)
  assert.deepEqual(
    shown,
    shown.toSorted((a, b) => b - a),
  )
})

test('an account out of credit or over its ceiling needs attention, and small amounts keep sign and digits', async () => {
  const small = await manage('POST', '/gateway/v1/accounts', { name: 'small', monthly_budget_usd: 0.000001 })
  const named = `?account=${small['id']}`
  await manage('POST', `/gateway/v1/credits${named}`, { amount_usd: 0.000001, reason: 'a try' })
  const { key } = await manage('POST', `/v1/keys${named}`, { name: 'of small' })
  await bench.call('/v1/messages', hello, { key: String(key) })
  const page = await person.visit(`/dashboard${named}`)
  await page.getByText('Account: small').waitFor()
  await page.locator('.facts_sums li', { hasText: 'Credit left' }).getByText('not enforced').waitFor()
  const attention = page.getByRole('region', { name: 'Needs attention' })
  await attention.getByText('small has spent its budget').waitFor()
  await manage('PATCH', `/gateway/v1/accounts/${small['id']}`, { credit_enforced: true, force: true })
  await attention.getByText('small has no credit left').waitFor()
  const overflow = `[...document.querySelectorAll('.chart_plot text:not(.chart_slot)')]
    .some((label) => label.getBoundingClientRect().right > label.ownerSVGElement.getBoundingClientRect().right)`
  await page.locator('.chart_plot text').first().waitFor()
  assert.equal(await page.evaluate(overflow), false)
  await page.goto(`${gateway.url}/dashboard/accounts/${small['id']}`)
  await page
    .locator('.facts_facts')
    .getByText(/^−\$0\.0*[1-9]\d?$/)
    .waitFor()
})

test('the bottom bar on a phone has five pages, and the others under More', async () => {
  const page = await person.visit('/dashboard', PHONE)
  const rail = page.getByRole('navigation', { name: 'Pages' })
  const shown = await rail.getByRole('link').filter({ visible: true }).allTextContents()
  assert.deepEqual(shown, ['Overview', 'Keys', 'Usage', 'Requests', 'Credits'])
  await rail.getByRole('button', { name: 'More' }).click()
  assert.deepEqual(await violationsOf(page, 'color-contrast', 'target-size'), [])
  await rail.getByRole('link', { name: 'Settings' }).click()
  await page.getByRole('heading', { level: 1, name: 'Settings' }).waitFor()
  assert.equal(await rail.getByRole('link', { name: 'Accounts' }).isVisible(), false)
  const more = rail.getByRole('button', { name: 'More' })
  const lineOf = () =>
    page.evaluate<string>(
      "getComputedStyle(document.querySelector('.frame_rail .frame_more')).borderTopColor",
    )
  const lit = await lineOf()
  assert.equal(await more.getAttribute('aria-current'), 'page')
  await rail.getByRole('link', { name: 'Keys' }).click()
  await page.getByRole('heading', { level: 1, name: 'Keys' }).waitFor()
  assert.equal(await more.getAttribute('aria-current'), null)
  assert.notEqual(await lineOf(), lit)
})

test('an account gets its own upstream, metadata, and enforcement despite its balance', async () => {
  const page = await person.visit(`/dashboard/accounts/${account}`)
  await page.getByRole('button', { name: 'Change account' }).click()
  await page.getByLabel('Messages (Anthropic) upstream').selectOption('its own')
  await page.getByLabel('Messages (Anthropic) URL').fill('https://example.com')
  await page.getByLabel('Messages (Anthropic) key').fill('sk-test')
  await page.getByLabel('Metadata field 2').fill('region')
  await page.getByLabel('Metadata value 2').fill('eu')
  await page.getByLabel('Refuse calls once its credit is used up').check()
  await page.getByLabel('Enforce without credit').check()
  await page.getByRole('button', { name: 'Save' }).click()
  await page.getByRole('dialog').waitFor({ state: 'detached' })
  await page.locator('.facts_facts').getByText('https://example.com').waitFor()
  const { upstreams, metadata, credit_enforced } = await manage('GET', `/gateway/v1/accounts/${account}`)
  assert.deepEqual([metadata, credit_enforced], [{ plan: 'gold', region: 'eu' }, true])
  const { messages, chat } = upstreams as Record<string, { has_key: boolean } | null>
  assert.deepEqual([messages?.has_key, chat], [true, null])
})

test('a developer signs in with an API key and sees its spend, limits, calls and client settings', async () => {
  const page = await person.open('/dashboard')
  await signIn(page, keys.get('nightly-report')?.key ?? '')
  await page.getByRole('heading', { level: 1, name: 'nightly-report' }).waitFor()
  await untilShown(page)
  assert.deepEqual(
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link').allTextContents(),
    ['My key', 'Usage', 'Requests'],
  )
  const { month_spend_usd } = await manage('GET', `/v1/keys/${idOf('nightly-report')}`)
  await page.locator(`.facts_facts data[value="${month_spend_usd}"]`).first().waitFor()
  await page.getByText('Cost per day, 30 days').first().waitFor()
  await page.getByRole('heading', { name: 'Set up your client' }).waitFor()
  assert.deepEqual(await violationsOf(page), [])
  await page.emulateMedia({ colorScheme: 'dark' })
  assert.deepEqual(await violationsOf(page, 'color-contrast'), [])
  await page.locator('tbody tr a').first().click()
  await page.getByRole('region', { name: 'Bill' }).waitFor()
  assert.equal(await page.getByText('Bodies').count(), 0)
  await page.goto(`${gateway.url}/dashboard/usage`)
  await page.getByRole('region', { name: 'Usage' }).getByText('gpt-6-astra').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Key', exact: true }).count(), 0)
  await page.goto(`${gateway.url}/dashboard/keys`)
  await page.getByText('This page needs an admin key.').waitFor()
  assert.equal(await page.getByRole('alert').count(), 0)
})

test('no window had an error, a policy violation or a request to another host', () => {
  assert.deepEqual(person.complaints(), [])
})
