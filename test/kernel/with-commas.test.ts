import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { withCommas } from '../../src/kernel/with-commas.ts'

test('whole numbers have a comma at each thousand, as English writes them', () => {
  assert.equal(withCommas(1_000), '1,000')
  fc.assert(
    fc.property(
      fc.oneof(fc.maxSafeInteger(), fc.bigInt(), fc.integer({ min: -9_999, max: 9_999 })),
      (count) => {
        assert.equal(withCommas(count), count.toLocaleString('en-US'))
      },
    ),
  )
})
