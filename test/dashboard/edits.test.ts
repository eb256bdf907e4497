import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { test } from '../support/suite.ts'
import { untilShown, violationsOf } from './browser.ts'
import { account, bench, gateway, person } from './company.ts'

/** Forms change what their user changed, in the account of the record, and nothing else. */

const { manage } = gateway
const save = (page: Page) => page.getByRole('button', { name: 'Save', exact: true }).click()
const closed = (page: Page) => page.getByRole('dialog').waitFor({ state: 'detached' })

/** The bodies of the changes that a page sends. */
function sentBy(page: Page): readonly string[] {
  const sent: string[] = []
  page.on('request', (request) => {
    if (['POST', 'PATCH'].includes(request.method())) sent.push(request.postData() ?? '')
  })
  return sent
}

const limits = {
  monthly_budget_usd: 20.2,
  expires_at: '2031-02-03T04:05:06.789Z',
  allowed_models: ['claude-*'],
}

test('renaming a key sends the name alone, and its limits and the seconds of its expiry stay', async () => {
  const { id } = await gateway.createKey('zeta', limits)
  const page = await person.visit(`/dashboard/keys/${id}`)
  const sent = sentBy(page)
  await page.getByRole('button', { name: 'Change limits' }).click()
  await page.getByLabel('Name').fill('zeta next')
  await save(page)
  await page.getByRole('heading', { level: 1, name: 'zeta next' }).waitFor()
  assert.deepEqual(sent, ['{"name":"zeta next"}'])
  const { monthly_budget_usd, expires_at, allowed_models } = await manage('GET', `/v1/keys/${id}`)
  assert.deepEqual({ monthly_budget_usd, expires_at, allowed_models }, limits)
})

test('an amount that cannot be read is refused beside its field, which gets the focus, and nothing is sent', async () => {
  const { id } = await gateway.createKey('zeta typed', limits)
  const page = await person.visit(`/dashboard/keys/${id}`)
  const sent = sentBy(page)
  await page.getByRole('button', { name: 'Change limits' }).click()
  const field = page.getByLabel('Budget per month, USD')
  for (const text of ['12,5', '12 dollars']) {
    await field.fill(text)
    await page.getByText('Write an amount such as 50').waitFor()
    await save(page)
    await page.locator('input:focus[aria-invalid=true]').waitFor()
  }
  assert.deepEqual(await violationsOf(page), [])
  await page.getByLabel('Requests per minute').fill('1.5')
  await page.getByText('Write a whole number').waitFor()
  assert.deepEqual(sent, [])
  await field.fill('$1,250.000000001')
  await page.getByLabel('Requests per minute').fill('')
  await save(page)
  await closed(page)
  assert.deepEqual(sent, ['{"monthly_budget_usd":1250.000000001}'])
})

test('a refusal by the gateway is shown beside the field that it names', async () => {
  const { id } = await gateway.createKey('zeta refused')
  const page = await person.visit(`/dashboard/keys/${id}`)
  await page.getByRole('button', { name: 'Change limits' }).click()
  await page.getByLabel('Find a model').fill('zzz*')
  await page.keyboard.press('Enter')
  await save(page)
  await page.locator('fieldset', { hasText: 'Models' }).getByRole('alert').getByText('zzz*').waitFor()
  assert.equal(await page.getByRole('alert').count(), 1)
})

test('a change that somebody else has made meanwhile is shown before it is replaced; other fields follow it', async () => {
  const { id } = await gateway.createKey('zeta shared', limits)
  const page = await person.visit(`/dashboard/keys/${id}`)
  await page.getByRole('button', { name: 'Change limits' }).click()
  await page.getByLabel('Budget per month, USD').fill('30')
  await manage('PATCH', `/v1/keys/${id}`, { monthly_budget_usd: 25, name: 'zeta of two' })
  await save(page)
  await page.getByText('Somebody else has changed this meanwhile to 25.').waitFor()
  assert.equal(await page.getByLabel('Name').inputValue(), 'zeta of two')
  assert.equal((await manage('GET', `/v1/keys/${id}`))['monthly_budget_usd'], 25)
  await save(page)
  await closed(page)
  const { name, monthly_budget_usd } = await manage('GET', `/v1/keys/${id}`)
  assert.deepEqual([name, monthly_budget_usd], ['zeta of two', 30])
})

test('a discount that cannot be read is refused, and the discount stays', async () => {
  const { id } = await manage('POST', '/gateway/v1/accounts', { name: 'Discounted', discount: 0.125 })
  const page = await person.visit(`/dashboard/accounts/${id}`)
  const sent = sentBy(page)
  await page.getByRole('button', { name: 'Change account' }).click()
  const field = page.getByLabel('Discount, %')
  assert.equal(await field.inputValue(), '12.5')
  for (const text of ['10%', '12,5']) {
    await field.fill(text)
    await save(page)
    await page.getByText('Write a number from 0 to 100').waitFor()
  }
  assert.deepEqual(sent, [])
  await field.fill('7.3')
  await save(page)
  await closed(page)
  assert.deepEqual(sent, ['{"discount":0.073}'])
})

test("an account's upstream asks for the key when its URL changes, and is removed by choice only", async () => {
  const { id } = await manage('POST', '/gateway/v1/accounts', {
    name: 'Own upstream',
    upstreams: { messages: { url: 'https://one.example', key: 'sk-one' } },
  })
  const page = await person.visit(`/dashboard/accounts/${id}`)
  const sent = sentBy(page)
  await page.getByRole('button', { name: 'Change account' }).click()
  for (const url of ['https://two.example', '']) {
    await page.getByLabel('Messages (Anthropic) URL').fill(url)
    await save(page)
    await page.getByText('Type the key for this URL.').waitFor()
  }
  assert.deepEqual(sent, [])
  await page.getByLabel('Messages (Anthropic) URL').fill('https://two.example')
  await page.getByLabel('Messages (Anthropic) key').fill('sk-two')
  await save(page)
  await closed(page)
  assert.deepEqual(sent, ['{"upstreams":{"messages":{"url":"https://two.example","key":"sk-two"}}}'])
  await page.getByText('https://two.example, own key').waitFor()
  await page.getByRole('button', { name: 'Change account' }).click()
  await page.getByLabel('Messages (Anthropic) upstream').selectOption("the installation's")
  await save(page)
  await closed(page)
  assert.equal(sent.at(-1), '{"upstreams":{"messages":null}}')
})

test('a request of another account is shown and credited back in its own account', async () => {
  const { id: account } = await manage('POST', '/gateway/v1/accounts', { name: 'Credited' })
  const { key } = await manage('POST', `/v1/keys?account=${account}`, { name: 'of Credited' })
  const question = {
    model: 'claude-haiku-5-5',
    max_tokens: 64,
    messages: [{ role: 'user', content: 'Hello' }],
  }
  const { requestId } = await bench.call('/v1/messages', question, { key: String(key) })
  const before = await manage('GET', '/gateway/v1/balance')
  const page = await person.visit(`/dashboard/requests/${requestId}`)
  await page.getByText('Acting in account').waitFor()
  await page.getByRole('button', { name: 'Credit back' }).click()
  await page.getByLabel('Reason').fill('a mistake')
  await page.getByRole('dialog').getByRole('button', { name: 'Credit back' }).click()
  await page.getByText('credited back', { exact: true }).waitFor()
  const { data } = await manage('GET', `/gateway/v1/credits?account=${account}`)
  assert.equal((data as { reason: string }[])[0]?.reason, 'a mistake')
  const after = await manage('GET', '/gateway/v1/balance')
  assert.equal(after['credited_usd'], before['credited_usd'])
})

test('a webhook of another account opens by its link', async () => {
  const { id, url } = await manage('POST', `/gateway/v1/webhooks?account=${account}`, {
    url: 'http://127.0.0.1:9/acme',
    events: ['key.created'],
  })
  const page = await person.visit(`/dashboard/webhooks?id=${id}`)
  await page.getByRole('heading', { name: String(url) }).waitFor()
  await page.getByRole('button', { name: 'Turn off' }).click()
  await page.getByRole('button', { name: 'Turn on' }).waitFor()
})

test('a page whose answers come from somebody else says so, and continues with a retry', async () => {
  for (const answer of [
    { status: 200, contentType: 'text/html', body: '<!doctype html><title>Sign in</title>' },
    { status: 401, contentType: 'text/html', body: '<!doctype html><title>Sign in</title>' },
    { status: 502, body: '' },
    { status: 200, body: '' },
  ]) {
    const page = await person.visit('/dashboard/prices')
    page.removeAllListeners('console')
    await page.route('**/gateway/v1/credits?*', (route) => route.fulfill(answer))
    await page.getByRole('link', { name: 'Credits' }).click()
    await page.getByRole('alert').getByText('Something between this page and the gateway answered').waitFor()
    await page.unroute('**/gateway/v1/credits?*')
    await page.getByRole('button', { name: 'Retry' }).click()
    await page.getByRole('alert').waitFor({ state: 'detached' })
    await untilShown(page)
    await page.context().close()
  }
})

test('an answer that a page cannot show is an error, and not an empty page', async () => {
  const page = await person.visit('/dashboard/prices')
  page.removeAllListeners('console').removeAllListeners('pageerror')
  await page.route('**/v1/keys?*', (route) => route.fulfill({ json: { hello: 'world' } }))
  await page.getByRole('link', { name: 'Keys' }).click()
  await page.getByRole('alert').getByText('This page cannot show what it has received').waitFor()
  await page.unroute('**/v1/keys?*')
  await page.getByRole('button', { name: 'Retry' }).click()
  await page.getByRole('link', { name: 'support-agent' }).first().waitFor()
})

test('no window had an error, a policy violation or a request to another host', () => {
  assert.deepEqual(person.complaints(), [])
})
