import assert from 'node:assert/strict'
import { DatabaseClock } from '../../src/store/postgres/database-clock.ts'
import { test } from '../support/suite.ts'

function clockUnderTest() {
  const own = { wallMs: 5_000_000, sinceMs: 100 }
  const clock = new DatabaseClock({ nowMs: () => own.wallMs, monotonicMs: () => own.sinceMs })
  return { own, clock }
}

test("until the database has answered, the clock is the machine's", () => {
  const { own, clock } = clockUnderTest()
  assert.equal(clock.nowMs(), own.wallMs)
})

test('the database clock advances with the monotonic clock', () => {
  const { own, clock } = clockUnderTest()
  own.sinceMs = 120
  clock.sync(9_000_000, 100)
  assert.equal(clock.nowMs(), 9_000_010, 'the message was sent between a request and its response')
  own.wallMs = 1
  own.sinceMs += 500
  assert.equal(clock.nowMs(), 9_000_510)
})

test('a later answer of the database replaces the time unless it took too long', () => {
  const { own, clock } = clockUnderTest()
  clock.sync(9_000_000, 100)
  own.sinceMs = 2_000
  clock.sync(9_500_000, 100)
  assert.equal(clock.nowMs(), 9_001_900)
  clock.sync(9_500_000, 2_000)
  assert.equal(clock.nowMs(), 9_500_000)
})
