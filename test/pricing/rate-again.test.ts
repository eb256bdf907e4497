import assert from 'node:assert/strict'
import { createRateAgain } from '../../src/pricing/load-book.ts'
import { partOf, shipped, usageOf } from '../pricing/worked-example.ts'
import { test } from '../support/suite.ts'

/** An image call without a requested model, as recorded. */
const usage = JSON.stringify(usageOf([partOf({ input_tokens: 100, image_output_tokens: 1_000 })]))
const rating = JSON.stringify({
  surface: 'chat',
  modelAsked: null,
  endpoint: '/v1/images/generations',
  regional: false,
  batch: false,
  imageToolModel: null,
  discount: '0.1',
})
test('a call is rated again from its record and the stored prices', () => {
  const rateAgain = createRateAgain()
  const now = rateAgain({ usage, rating, priceVersionJson: JSON.stringify(shipped.entry) })
  // 100 × $5/M + 1,000 × $30/M, less a tenth
  assert.deepEqual([now?.listNanos, now?.costNanos], [30_500_000n, 27_450_000n])
})
