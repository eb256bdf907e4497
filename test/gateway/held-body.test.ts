import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import { createByteBudget } from '../../src/gateway/byte-budget.ts'
import { HeldBody } from '../../src/gateway/held-body.ts'
import { readBuffer } from '../../src/kernel/read-buffer.ts'

test('a small body that waits with its call keeps its own bytes, and little more memory than they take', () => {
  const held = new HeldBody(createByteBudget(1_000), tmpdir())
  readBuffer.fill(7, 0, 300)
  assert.equal(held.append(readBuffer.subarray(0, 300)), null)
  readBuffer.fill(0, 0, 300)
  assert.deepEqual(held.bytes(), Buffer.alloc(300, 7))
  assert.equal(held.bytes()?.buffer.byteLength, 1024)
  held.dispose()
})
