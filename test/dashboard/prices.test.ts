import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from '../support/suite.ts'
import { violationsOf } from './browser.ts'
import { bench, gateway, person } from './company.ts'

const { manage } = gateway

interface PriceList {
  readonly revision: number
  readonly base: {
    readonly models: readonly { id: string; rates: { standard: Readonly<Record<string, string>> } }[]
  }
  readonly changes: readonly object[]
}

const ask = (model: string, key: string) =>
  bench.call(
    '/v1/chat/completions',
    { model, messages: [{ role: 'user', content: 'Hello' }] },
    {
      key,
      surface: 'chat',
    },
  )

test('a missing price is set from the closest model, changed and removed in place', async () => {
  const { key } = await gateway.createKey('early adopter', { monthly_budget_usd: 5 })
  assert.equal((await ask('gpt-6.2-terra', key)).status, 400)
  const page = await person.visit('/dashboard/prices')
  const missing = page.getByRole('region', { name: 'Missing prices' })
  await missing.getByText('gpt-6.2-terra').waitFor()
  const { data } = await manage('GET', '/gateway/v1/prices/missing')
  const asked = (data as { model: string; closest: string }[]).find(({ model }) => model === 'gpt-6.2-terra')
  assert.equal(await page.locator('h2').first().textContent(), 'Missing prices')
  await page.getByRole('button', { name: 'Use as fallback for gpt-6.2-terra' }).click()
  await page.locator('pre', { hasText: `"gpt-6.2-terra": "${asked?.closest}"` }).waitFor()
  assert.deepEqual(await violationsOf(page), [])
  await page.getByRole('button', { name: 'Close' }).click()

  await page.getByRole('button', { name: 'Set price of gpt-6.2-terra' }).click()
  assert.ok(Number(await page.getByLabel('Output', { exact: true }).inputValue()) > 0, 'prefilled')
  await page.getByLabel('Input', { exact: true }).fill('ten')
  await page.getByRole('alert').getByText('Write an amount').waitFor()
  assert.equal(await page.getByRole('button', { name: 'Set price', exact: true }).last().isDisabled(), true)
  await page.getByLabel('Input', { exact: true }).fill('2.125')
  await page.getByRole('dialog').getByRole('button', { name: 'Set price' }).click()
  await missing.locator('td > .name', { hasText: 'gpt-6.2-terra' }).waitFor({ state: 'detached' })
  assert.equal(
    (await ask('gpt-6.2-terra', key)).status,
    404,
    'the call goes upstream, which has no such model',
  )

  await page.getByLabel('Search models').fill('6.2-terra')
  await page.getByRole('button', { name: 'Change price of gpt-6.2-terra' }).click()
  assert.equal(await page.getByLabel('Input', { exact: true }).inputValue(), '2.125')
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Remove price of gpt-6.2-terra' }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click()
  await page.getByText('No model has that name.').waitFor()
})

test('a list is pushed after its differences were shown, and large ones were meant', async () => {
  const { revision } = await manage('GET', '/gateway/v1/prices')
  const known = JSON.parse(await readFile('src/pricing/list-prices.json', 'utf8')) as PriceList
  const luna = known.base.models.find(({ id }) => id === 'gpt-6-luna') ?? assert.fail()
  const { input = '', ...others } = luna.rates.standard
  const dearer = {
    ...luna,
    rates: { ...luna.rates, standard: { ...others, input: String(Number(input) * 10) } },
  }
  const change = { id: 'of-a-test', effective_from: new Date().toISOString(), models: [dearer] }
  const list = { ...known, revision: known.revision + 1, changes: [...known.changes, change] }
  const page = await person.visit('/dashboard/prices')
  await page.getByRole('button', { name: 'Push a list' }).click()
  const choose = async (content: string) =>
    await page.getByLabel('File').setInputFiles({
      name: 'list.json',
      mimeType: 'application/json',
      buffer: Buffer.from(content),
    })
  await choose('{')
  await page.getByText('This file is not JSON.').waitFor()
  await choose(JSON.stringify(list))
  await page.getByRole('button', { name: 'Show the differences' }).click()
  await page.getByRole('checkbox', { name: /change by more than a factor of 4/ }).check()
  await page.getByRole('button', { name: 'Show the differences' }).click()
  const row = page
    .getByRole('region', { name: 'Changed rates' })
    .locator('tbody tr', { hasText: 'gpt-6-luna' })
  await row.first().getByText(input, { exact: true }).waitFor()
  assert.equal((await manage('GET', '/gateway/v1/prices'))['revision'], revision, 'nothing has changed yet')
  assert.deepEqual(await violationsOf(page), [])
  await page.keyboard.press('Escape')
  await page.getByRole('dialog').waitFor({ state: 'detached' })
})

test('no window had an error, a policy violation or a request to another host', () => {
  assert.deepEqual(person.complaints(), [])
})
