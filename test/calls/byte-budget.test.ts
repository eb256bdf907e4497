import assert from 'node:assert/strict'
import { ByteBudget, ReservedBytes } from '../../src/calls/key-shares.ts'
import { test } from '../support/suite.ts'

test('replies of one key use at most half of the free bytes, so that another key always has room', () => {
  const budget = new ByteBudget(10_000)
  const taken = new Map<string, number>()
  for (const key of ['a', 'b', 'c', 'd', 'e']) {
    let bytes = 0
    while (budget.tryReserve(1, key)) bytes += 1
    taken.set(key, bytes)
  }
  assert.deepEqual([...taken.values()], [5_000, 2_500, 1_250, 625, 312])
  assert.equal(budget.tryReserve(100, 'modest'), true)
  // Released bytes are available to any key.
  for (const [key, bytes] of taken) budget.release(bytes, key)
  budget.release(100, 'modest')
  assert.equal(budget.tryReserve(5_000, 'modest'), true)
  assert.equal(budget.tryReserve(1, 'modest'), false)
})

test('bytes are released once', () => {
  const reserved = new ReservedBytes(new ByteBudget(100), 'a')
  assert.deepEqual([reserved.tryReserve(40), reserved.bytes], [true, 40])
  reserved.release()
  reserved.release()
  assert.deepEqual([reserved.bytes, reserved.tryReserve(50), reserved.tryReserve(1)], [0, true, false])
})
