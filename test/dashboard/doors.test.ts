import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { curlStandIn } from '../support/curl-stand-in.ts'
import { test } from '../support/suite.ts'
import { signIn, untilShown, violationsOf } from './browser.ts'
import { account, bench, callId, gateway, keys, person } from './company.ts'

const run = promisify(execFile)
const { manage } = gateway
const hello = { model: 'claude-haiku-5-5', max_tokens: 2_000, messages: [{ role: 'user', content: 'Hello' }] }
const idOf = (name: string) => keys.get(name)?.id ?? ''

test('the spend of a key opens its calls with the same sum, and a click on its row opens the key', async () => {
  const page = await person.visit('/dashboard/keys?search=nightly-report')
  const row = page.locator('tbody tr')
  const usd = await row.locator('data').first().getAttribute('value')
  await row.getByRole('link').nth(1).click()
  await page.waitForURL(/requests\?key=key_.*start=/)
  await page.locator(`.sum-line data[value="${usd}"]`).waitFor()
  await page.goBack()
  await row.getByRole('cell', { name: 'all' }).click()
  await page.getByRole('heading', { level: 1, name: 'nightly-report' }).waitFor()
  await page.locator(`.facts_facts a data[value="${usd}"]`).click()
  await page.locator(`.sum-line data[value="${usd}"]`).waitFor()
})

test('the spend of keys with a shared budget has no link, and each key links to its own calls', async () => {
  const page = await person.visit('/dashboard/keys?search=support-agent')
  await page.locator('tbody tr').nth(1).waitFor()
  assert.equal(await page.locator('tbody td .figures_budget a').count(), 0)
  const id = idOf('support-agent')
  const { total } = await manage('GET', `/v1/usage?key=${id}`)
  await page.goto(`${gateway.url}/dashboard/keys/${id}`)
  await page.locator(`.facts_facts a data[value="${(total as { cost_usd: number }).cost_usd}"]`).waitFor()
})

test('an account page lists spend by key, and each sum opens its calls', async () => {
  const page = await person.visit(`/dashboard/accounts/${account}`)
  const shares = page.getByRole('region', { name: 'Keys, 30 days' }).locator('li')
  await shares.nth(1).waitFor()
  const { data } = await manage('GET', `/v1/usage?account=${account}&group_by=key`)
  const costs = (data as { cost_usd: number }[]).map(({ cost_usd }) => cost_usd).sort((a, b) => b - a)
  const shown = await shares
    .locator('data')
    .evaluateAll((all) => all.map((each) => each.getAttribute('value')))
  assert.deepEqual(shown, costs.map(String))
  await shares.first().getByRole('link').click()
  await page.waitForURL(/requests\?account=acct_/)
  await page.locator(`.sum-line data[value="${costs[0]}"]`).waitFor()
})

test('a call in flight shows its reservation, and a waiting one the budget that it waits for', async () => {
  const { id, key } = await gateway.createKey('narrow', { monthly_budget_usd: 0.0008, budget_mode: 'exact' })
  const leaving = new AbortController()
  const left = assert.rejects(
    fetch(`${gateway.url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': key, 'anthropic-version': '2023-06-01', 'x-simulator': 'delay=60000' },
      body: JSON.stringify(hello),
      signal: leaving.signal,
    }),
  )
  const page = await person.visit('/dashboard/requests?state=in_flight&live=1')
  await page.locator('tbody tr', { hasText: 'narrow' }).getByRole('cell').first().getByRole('link').click()
  await page.getByText('The call is in flight.').waitFor()
  await page.getByRole('definition').getByText('+ $0.0009 reserved').waitFor()
  const waiting = bench.call('/v1/messages', hello, { key })
  await page.goto(`${gateway.url}/dashboard/requests?state=waiting&live=1`)
  await page.locator('tbody tr', { hasText: 'narrow' }).getByRole('cell').first().getByRole('link').click()
  await page.getByText('The call waits until earlier calls release their reservations.').waitFor()
  await page.getByRole('definition').getByText('+ $0.0009 reserved').waitFor()
  assert.deepEqual(await violationsOf(page), [])
  await manage('PATCH', `/v1/keys/${id}`, { monthly_budget_usd: 1 })
  assert.equal((await waiting).status, 200)
  leaving.abort()
  await left
  await page.getByRole('region', { name: 'Bill' }).waitFor()
})

test('a refused call explains its code', async () => {
  const { requestId } = await bench.call('/v1/messages', hello, {
    key: keys.get('marketing-copy')?.key ?? '',
  })
  const page = await person.visit(`/dashboard/requests/${requestId}`)
  await page.getByText('A budget of the key or of its account is exhausted.').waitFor()
})

test('a page for an unknown id names it and links to the list', async () => {
  for (const [path, list] of [
    ['keys/key_00000000000000000000000000', 'All keys'],
    ['requests/req_00000000000000000000000000', 'All requests'],
    ['accounts/acct_00000000000000000000000000', 'All accounts'],
  ] as const) {
    const page = await person.visit('/dashboard/prices')
    page.removeAllListeners('console')
    await page.goto(`${gateway.url}/dashboard/${path}`)
    await page.getByRole('heading', { level: 1, name: 'Not found' }).waitFor()
    assert.equal(await page.getByRole('alert').count(), 0)
    await page.getByRole('main').getByRole('link', { name: list }).click()
    await page.locator('tbody tr').first().waitFor()
    await page.context().close()
  }
})

test('the commands for curl and both SDKs run verbatim', async () => {
  const page = await person.visit('/dashboard/keys')
  await page.getByRole('button', { name: 'New key' }).click()
  await page.getByLabel('Name').fill('pasted')
  await page.getByRole('button', { name: 'Create key' }).click()
  const linesOf = async (client: string) => {
    await page.getByRole('button', { name: client, exact: true }).click()
    return (await page.locator('.clients pre').textContent()) ?? ''
  }
  const curl = curlStandIn()
  const env = { ...process.env, PATH: `${curl.folder}:${process.env['PATH']}` }
  const { stdout: reply } = await run('sh', ['-c', await linesOf('curl')], { env }).finally(curl.dispose)
  assert.equal(JSON.parse(reply).type, 'message')
  for (const client of ['Anthropic SDK', 'OpenAI SDK']) {
    const { stdout } = await run(process.execPath, ['--input-type=module', '-e', await linesOf(client)])
    assert.ok(stdout.trim().length > 0, client)
  }
})

test('the session of an agent lists its calls with their number, sum and duration', async () => {
  const page = await person.visit('/dashboard')
  const { data } = await manage('GET', '/gateway/v1/requests?state=settled&limit=3')
  const calls = (data as object[]).map((call, i) => ({
    ...call,
    session_id: 'tidy-up',
    cost_usd: 0.1 + i / 10,
    started_at: `2026-11-01T10:${10 + i}:00.000Z`,
    ended_at: `2026-11-01T10:${20 + i}:00.000Z`,
  }))
  await page.route('**/gateway/v1/requests?*', (route) =>
    route.fulfill({ json: { object: 'list', data: calls, has_more: false, next: null } }),
  )
  await page.goto(`${gateway.url}/dashboard/requests`)
  await page.locator('tbody').getByRole('link', { name: 'session' }).first().click()
  await page.waitForURL(/requests\?session=tidy-up$/)
  await page.getByText('This session: 3 calls · $0.60 · 12 min').waitFor()
})

test('Ctrl K goes to a page, a key, the calls of a model, a request and an action', async () => {
  const page = await person.visit('/dashboard')
  const goTo = async (typed: string, option: string | RegExp) => {
    await page.keyboard.press('Control+K')
    await page.getByRole('combobox', { name: 'Page, key, person, model, id or action' }).fill(typed)
    await page.getByRole('option', { name: option }).first().waitFor()
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
  }
  await goTo('usa', 'Usage Page')
  await page.getByRole('heading', { level: 1, name: 'Usage' }).waitFor()
  await goTo('nightly', 'nightly-report Key')
  await page.getByRole('heading', { level: 1, name: 'nightly-report' }).waitFor()
  await goTo('opus-5-5', 'claude-opus-5-5 Calls of')
  await page.waitForURL(/requests\?model=claude-opus-5-5/)
  await goTo(callId, callId)
  await page.getByRole('region', { name: 'Bill' }).waitFor()
  await page.keyboard.press('Control+K')
  assert.deepEqual(await violationsOf(page), [])
  await page.getByRole('combobox').last().fill('e')
  await page.keyboard.press('ArrowDown')
  await page.keyboard.press('ArrowUp')
  assert.equal(await page.getByRole('option', { selected: true }).count(), 1)
  await page.keyboard.press('Escape')
  await page.keyboard.press('Control+K')
  await page.getByRole('combobox').last().fill('create')
  await page.getByRole('option', { name: 'Create a key Action' }).click()
  await page.getByRole('heading', { name: 'New key' }).waitFor()
})

test('an admin manages the keys of one account, and sees no operator actions', async () => {
  const { key } = await manage('POST', '/gateway/v1/admin-keys', {
    name: 'team lead',
    role: 'admin',
    account_id: 'default',
  })
  const page = await person.open('/dashboard/keys')
  await signIn(page, String(key))
  await page.getByRole('button', { name: 'New key' }).waitFor()
  const rail = page.getByRole('navigation', { name: 'Pages' })
  assert.equal(await rail.getByRole('link', { name: 'Accounts' }).count(), 0)
  const settled = await manage('GET', '/gateway/v1/requests?state=settled&limit=1')
  const [call] = settled['data'] as { id: string }[]
  for (const [path, absent] of [
    ['credits', /Top up|Deduct/],
    [`requests/${call?.id}`, /Credit back/],
    [`accounts/${account}`, /Suspend|Change account/],
  ] as const) {
    await page.goto(`${gateway.url}/dashboard/${path}`)
    await untilShown(page)
    assert.equal(await page.getByRole('button', { name: absent }).count(), 0, path)
    assert.equal(await page.getByRole('alert').count(), 0, path)
  }
  await page.goto(`${gateway.url}/dashboard/settings`)
  await page.getByRole('button', { name: 'New admin key' }).click()
  assert.deepEqual(await page.getByLabel('Role').locator('option').allTextContents(), ['viewer', 'admin'])
})

test('no window had an error, a policy violation or a request to another host', () => {
  assert.deepEqual(person.complaints(), [])
})
