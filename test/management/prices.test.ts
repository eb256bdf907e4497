import assert from 'node:assert/strict'
import { versionAt } from '../../src/pricing/price-book.ts'
import { shippedBook } from '../../src/pricing/price-list.ts'
import { startGateway } from '../support/gateway.ts'
import { closeAfter, test } from '../support/suite.ts'
import { askOf } from './own-client.ts'

const overlay = {
  models: [
    { id: 'gpt-6-luna', rates: { standard: { input: '77', output: '99' } } },
    {
      ...{ id: 'house-model', provider: 'openai', mode: 'chat' },
      rates: { standard: { input: '1.5', output: '3' } },
    },
  ],
}
const gateway = await startGateway()
const changed = await startGateway({
  settings: { prices: { file: '/etc/prices.json', text: JSON.stringify(overlay) } },
})
closeAfter(gateway, changed)

interface Model {
  readonly id: string
  readonly source: string
  readonly prices: { readonly rates: { readonly standard: Readonly<Record<string, string>> } }
}

test('the price list has every model of the shipped book with its rates', async () => {
  const { body } = await askOf(gateway)('GET', '/gateway/v1/prices')
  const version = versionAt(shippedBook(), Date.now())
  assert.equal(body['price_version'], version.id)
  assert.equal(body['overlay'], null)
  const models = body['models'] as Model[]
  assert.deepEqual(
    models.map(({ id }) => id),
    version.models.map(({ id }) => id),
  )
  assert.ok(models.every(({ source }) => source === 'list'))
  // Rates of audio too: per hour, character and token.
  for (const { id, prices } of models) assert.deepEqual(prices.rates, version.names.get(id)?.entry.rates)
})

test('an operator may name an account, as on every management endpoint', async () => {
  const { body } = await askOf(gateway)('GET', '/gateway/v1/prices?account=default')
  assert.ok(Array.isArray(body['models']))
})

test('prices lists overlay models with source "overlay"', async () => {
  const { body } = await askOf(changed)('GET', '/gateway/v1/prices')
  assert.equal(body['overlay'], 'prices.json')
  const marked = (body['models'] as Model[]).filter(({ source }) => source === 'overlay')
  assert.deepEqual(marked.map(({ id }) => id).sort(), ['gpt-6-luna', 'house-model'])
  assert.equal(marked.find(({ id }) => id === 'gpt-6-luna')?.prices.rates.standard['input'], '77')
})
