import assert from 'node:assert/strict'
import { NO_USAGE, type Quantities, type Usage } from '../../src/kernel/usage.ts'
import { NO_DISCOUNT } from '../../src/pricing/amounts.ts'
import type { PriceVersion } from '../../src/pricing/price-book.ts'
import { versionAt } from '../../src/pricing/price-book.ts'
import { shippedBook } from '../../src/pricing/price-list.ts'
import { rate } from '../../src/pricing/rate.ts'
import { test } from '../support/suite.ts'
import { versionWith } from './worked-example.ts'

const shipped = versionAt(shippedBook(), Date.now())

function rated(
  model: string,
  quantities: Quantities,
  how: { readonly batch?: boolean; readonly serviceTier?: string; readonly endpoint?: string } = {},
  version: PriceVersion = shipped,
) {
  const { batch = false, serviceTier = null, endpoint = '/v1/chat/completions' } = how
  const usage: Usage = {
    ...NO_USAGE,
    serviceTier,
    modelServed: model,
    parts: [{ model: null, quantities, promptTokens: 0 }],
  }
  const asked = {
    surface: 'chat',
    modelAsked: model,
    endpoint,
    regional: false,
    batch,
    discount: NO_DISCOUNT,
  } as const
  const { listNanos, unpriced } = rate(usage, asked, version)
  return { usd: Number(listNanos) / 1e9, unpriced }
}

test('a batch of an overlay’s model costs half, and is not flagged', () => {
  const rates = { standard: { input: '2', output: '8' } }
  const version = versionWith({ models: [{ id: 'own-model', provider: 'openai', mode: 'chat', rates }] })
  const usage = { input_tokens: 1_000_000, output_tokens: 1_000_000 }
  assert.deepEqual(rated('own-model', usage, { batch: true }, version), { usd: 5, unpriced: false })
})

test('a new model takes missing limits and cache rates from the closest one, and null members stay null', () => {
  const rates = { standard: { input: '2', output: '8' } }
  const own = { id: 'gpt-5.6-zol', provider: 'openai', mode: 'chat', rates }
  const bookOf = (model: object) => versionWith({ models: [model] })
  const usage = { cache_read_tokens: 1_000_000 }
  assert.deepEqual(rated('gpt-5.6-zol', usage, {}, bookOf(own)), { usd: 0.2, unpriced: false })
  const { contextWindowTokens, maxOutputTokens } = shipped.names.get('gpt-5.6-sol') ?? {}
  const limitsOf = (version: PriceVersion) => {
    const model = version.names.get('gpt-5.6-zol')
    return [model?.contextWindowTokens, model?.maxOutputTokens]
  }
  assert.deepEqual(limitsOf(bookOf(own)), [contextWindowTokens, maxOutputTokens])
  const none = { context_window_tokens: null, rates: { standard: { ...rates.standard, cache_read: null } } }
  assert.deepEqual(limitsOf(bookOf({ ...own, ...none })), [null, maxOutputTokens])
  // At the highest input rate, which is that of cache writes.
  assert.deepEqual(rated('gpt-5.6-zol', usage, {}, bookOf({ ...own, ...none })), { usd: 2.5, unpriced: true })
})

test('output of a model without an output price is free and not flagged', () => {
  const usage = { audio_input_milliseconds: 3_600_000, output_tokens: 500 }
  const { usd, unpriced } = rated('whisper-1', usage, { endpoint: '/v1/audio/transcriptions' })
  assert.deepEqual({ usd, unpriced }, { usd: 0.36, unpriced: false })
})
