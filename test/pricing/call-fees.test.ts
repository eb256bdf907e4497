import assert from 'node:assert/strict'
import { createBatchUsage } from '../../src/pricing/batch-usage.ts'
import { withCallFees } from '../../src/pricing/call-fees.ts'
import { rate } from '../../src/pricing/rate.ts'
import { test } from '../support/suite.ts'
import { CHAT, partOf, shipped, usageOf } from './worked-example.ts'

const BY_MODEL = { searchFee: 'by_model', searchSize: null, codeRunsFree: false } as const

test('the search of a search-preview model costs the same in a batch as in a call, unflagged', () => {
  for (const [modelServed, searchNanos] of [
    ['gpt-4o-search-preview', 35_000_000n],
    ['gpt-4o-mini-search-preview', 27_500_000n],
  ] as const) {
    const used = usageOf([partOf({})], { modelServed })
    const call = rate(withCallFees(used, BY_MODEL, CHAT, shipped), CHAT, shipped)
    const batch = { ...CHAT, batch: true }
    const lines = createBatchUsage(batch, shipped)
    for (let line = 0; line < 3; line++) lines.add(withCallFees(used, BY_MODEL, batch, shipped))
    const [sum] = lines.byModel()
    assert.ok(sum)
    const rated = rate(sum.usage, batch, shipped)
    assert.deepEqual([call.listNanos, call.unpriced], [searchNanos, false], modelServed)
    assert.deepEqual([rated.listNanos, rated.unpriced], [3n * searchNanos, false], modelServed)
  }
})

test('cached tokens of a decision cost what its input costs, unflagged', () => {
  const used = usageOf([partOf({ input_tokens: 100, cache_read_tokens: 900, output_tokens: 5 })], {
    modelServed: 'gpt-6-luna',
  })
  const rated = rate(used, { ...CHAT, endpoint: '/v1/decisions' }, shipped)
  // 1,000 × $0.10/M
  assert.deepEqual([rated.listNanos, rated.unpriced], [100_000n, false])
})
