import assert from 'node:assert/strict'
import { createDatabaseClock } from '../../src/store/postgres/node.ts'
import { test } from '../support/suite.ts'

function clockUnderTest() {
  const own = { wallMs: 5_000_000, sinceMs: 100 }
  const clock = createDatabaseClock({ nowMs: () => own.wallMs, monotonicMs: () => own.sinceMs })
  return { own, clock }
}

test('until the database has said the time it is the time of the machine', () => {
  const { own, clock } = clockUnderTest()
  assert.equal(clock.nowMs(), own.wallMs)
})

test('the time of the database goes on by the clock that never steps', () => {
  const { own, clock } = clockUnderTest()
  own.sinceMs = 120
  clock.sync(9_000_000, 100)
  assert.equal(clock.nowMs(), 9_000_010, 'it was said in the middle of question and answer')
  own.wallMs = 1
  own.sinceMs += 500
  assert.equal(clock.nowMs(), 9_000_510)
})

test('a later word of the database counts, unless it took long to come', () => {
  const { own, clock } = clockUnderTest()
  clock.sync(9_000_000, 100)
  own.sinceMs = 2_000
  clock.sync(9_500_000, 100)
  assert.equal(clock.nowMs(), 9_001_900)
  clock.sync(9_500_000, 2_000)
  assert.equal(clock.nowMs(), 9_500_000)
})
