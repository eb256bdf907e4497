import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { writeUsage } from '../../src/gateway/usage-text.ts'
import { type Quantities, UNITS, type Usage } from '../../src/kernel/usage.ts'

const name = fc.option(
  fc.oneof(fc.constantFrom('standard', 'claude-haiku-5-5', 'end_turn', ''), fc.string({ unit: 'binary' })),
  { nil: null },
)
const quantities: fc.Arbitrary<Quantities> = fc
  .uniqueArray(fc.tuple(fc.constantFrom(...UNITS), fc.maxSafeNat()), { selector: ([unit]) => unit })
  .map((entries) => Object.fromEntries(entries))
const usages: fc.Arbitrary<Usage> = fc.record({
  parts: fc.array(fc.record({ model: name, quantities, promptTokens: fc.maxSafeNat() }), { maxLength: 3 }),
  modelServed: name,
  serviceTier: name,
  speed: name,
  geography: name,
  stopReason: name,
  freeRefusal: fc.boolean(),
  suspect: fc.boolean(),
})

test('usage is written as JSON.stringify writes it, whatever the names are', () => {
  fc.assert(fc.property(usages, (usage) => assert.equal(writeUsage(usage), JSON.stringify(usage))))
})
