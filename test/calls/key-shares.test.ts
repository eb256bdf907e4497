import assert from 'node:assert/strict'
import { KeyShares } from '../../src/calls/key-shares.ts'
import { test } from '../support/suite.ts'

test('calls are counted per key up to the maximum, and a key without calls takes no memory', () => {
  const shares = new KeyShares(2)
  const [a, b] = [Buffer.from([1, 0xff]), Buffer.from([2])]
  const first = shares.enter(a)
  const second = shares.enter(Buffer.from(a))
  assert.ok(first !== null && second === first)
  assert.equal(shares.enter(a), null)
  const other = shares.enter(b)
  assert.ok(other !== null && other !== first)
  assert.equal(shares.size, 2)
  shares.leave(first)
  assert.equal(shares.enter(a), first)
  shares.leave(first)
  shares.leave(first)
  shares.leave(other)
  assert.equal(shares.size, 0)
})
