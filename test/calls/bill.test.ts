import assert from 'node:assert/strict'
import { billCall, isPlausible } from '../../src/calls/bill.ts'
import { NANOS_PER_USD } from '../../src/kernel/money.ts'
import { NO_USAGE } from '../../src/kernel/usage.ts'
import { test } from '../support/suite.ts'

test('a bill above a million dollars or a trillion tokens is an upstream error', () => {
  const isBill = (output_tokens: number, usd: bigint, more = 0n) => {
    const part = { model: null, quantities: { output_tokens }, promptTokens: 0 }
    const rated = { listNanos: usd * NANOS_PER_USD + more } as Parameters<typeof isPlausible>[1]
    return isPlausible({ ...NO_USAGE, parts: [part] }, rated)
  }
  assert.equal(isBill(1, 1_000_000n), true)
  assert.equal(isBill(1, 1_000_000n, 1n), false)
  assert.equal(isBill(1e12, 1n), true)
  assert.equal(isBill(1e12 + 1, 1n), false)
})

test('a call to an endpoint without a price is flagged if it succeeds, not if it fails', async () => {
  for (const [status, unpriced] of [
    [200, true],
    [299, true],
    [300, false],
    [404, false],
    [500, false],
  ] as const) {
    const profile = { metered: false, hold: { kind: 'none' }, unratable: { reason: 'endpoint_not_metered' } }
    const evidence = { end: 'complete', answer: { status, contentType: '' }, metered: null, delivered: 0 }
    const [call, seen] = [{ ask: { profile } }, evidence] as unknown as Parameters<typeof billCall>
    const bill = await billCall(call, seen, {} as Parameters<typeof billCall>[2])
    assert.deepEqual([bill.unpriced, bill.costNanos, bill.status], [unpriced, 0n, status], String(status))
  }
})
