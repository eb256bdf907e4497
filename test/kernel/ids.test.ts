import assert from 'node:assert/strict'
import { createUlidSource } from '../../src/kernel/ids.ts'
import { test } from '../support/suite.ts'

function sourceAt(...times: number[]) {
  let next = 0
  const nowMs = () => times[Math.min(next++, times.length - 1)] ?? 0
  return createUlidSource({ nowMs, monotonicMs: () => 0 })
}

test('a ULID has 26 characters of Crockford base 32', () => {
  const nextUlid = sourceAt(1_700_000_000_000)
  for (let i = 0; i < 1_000; i++) assert.match(nextUlid(), /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/)
})

test('the first ten characters are the time', () => {
  // 1469918176385 is the example of the ULID specification.
  assert.equal(sourceAt(1_469_918_176_385)().slice(0, 10), '01ARYZ6S41')
})

test('ids of one millisecond are strictly increasing', () => {
  const nextUlid = sourceAt(1_700_000_000_000)
  let last = ''
  for (let i = 0; i < 10_000; i++) {
    const id = nextUlid()
    assert.ok(id > last, `${id} after ${last}`)
    last = id
  }
})

test('ids stay increasing when the clock steps back', () => {
  const nextUlid = sourceAt(2_000, 1_000, 500, 3_000)
  const ids = [nextUlid(), nextUlid(), nextUlid(), nextUlid()]
  assert.deepEqual(ids, ids.toSorted())
  assert.equal(new Set(ids).size, 4)
})
