import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { parseUsd } from '../../src/kernel/money.ts'
import { TIERS } from '../../src/kernel/usage.ts'
import { loadLayers, readPriceList } from '../../src/pricing/load-book.ts'
import { findModel } from '../../src/pricing/price-book.ts'
import type { RateTableEntry } from '../../src/pricing/price-file.ts'
import { BUILT_IN_LAYERS } from '../../src/pricing/price-list.ts'
import { test } from '../support/suite.ts'
import { shipped } from './worked-example.ts'

const file = new URL('../../src/pricing/list-prices.json', import.meta.url)

test('every id and alias of the shipped book finds its own model', () => {
  for (const model of shipped.models) {
    for (const name of [model.id, ...(model.entry.aliases ?? [])])
      assert.equal(findModel(shipped, name), model, name)
  }
})

test('the shipped list is valid at each of its dates', () => {
  const read = readPriceList(JSON.parse(readFileSync(file, 'utf8')))
  assert.equal(read.kind, 'read')
  assert.equal(loadLayers(BUILT_IN_LAYERS).kind, 'read')
})

function nanos(text: string | null | undefined): bigint {
  return parseUsd(text ?? '') ?? -1n
}

const tariffsOf = (table: RateTableEntry) =>
  TIERS.flatMap((tier) => (table[tier] === undefined ? [] : [[tier, table[tier]] as const]))

const claude = shipped.models.filter(({ provider }) => provider === 'anthropic').map(({ entry }) => entry)

test('Claude cache writes cost 1.25 and 2 times input, and batches half, in the whole book', () => {
  for (const { id, rates } of claude) {
    for (const [tier, tariff] of tariffsOf(rates)) {
      for (const each of [tariff, ...(tariff.long_context ? [tariff.long_context] : [])]) {
        // Claude 3 Haiku has the one rounded list price: $0.30 for 1.25 × $0.25.
        if (id !== 'claude-3-haiku')
          assert.equal(nanos(each.cache_write_5m) * 4n, nanos(each.input) * 5n, `${id} ${tier}`)
        assert.equal(nanos(each.cache_write_1h), nanos(each.input) * 2n, `${id} ${tier}`)
      }
    }
    assert.ok(rates.batch, id)
    for (const key of ['input', 'output', 'cache_read', 'cache_write_5m', 'cache_write_1h'] as const)
      assert.equal(nanos(rates.batch[key]) * 2n, nanos(rates.standard[key]), `${id} ${key}`)
  }
})

const longOpenai = shipped.models.filter(
  ({ provider, entry }) => provider === 'openai' && entry.rates.long_context_above,
)

test('above 272,000 tokens OpenAI doubles input and cache rates and raises output by half, on every tier', () => {
  assert.ok(longOpenai.length >= 16)
  for (const { id, entry } of longOpenai) {
    assert.equal(entry.rates.long_context_above, 272_000, id)
    for (const [tier, tariff] of tariffsOf(entry.rates)) {
      const { long_context: long, ...short } = tariff
      // Where the fast tier excludes long prompts, the list has no rates for them.
      if (long === undefined) continue
      // Cached rates of some tiers are printed rounded.
      for (const key of ['input', 'output'] as const) {
        const price = short[key]
        const factor = key === 'output' ? 3n : 4n
        assert.equal(nanos(long[key as 'input']) * 2n, nanos(price) * factor, `${id} ${tier} ${key}`)
      }
    }
  }
})
