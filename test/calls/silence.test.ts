import assert from 'node:assert/strict'
import { Silence } from '../../src/calls/silence.ts'
import { test } from '../support/suite.ts'

test('silence is the time to the first visible output, and gaps of more than a second', () => {
  const silence = new Silence()
  assert.equal(silence.silentMsAt(5_000), 0, 'time in the queue does not count as silence')
  silence.recordOutput(0, 5_000)
  assert.equal(silence.silentMsAt(5_400), 400)
  silence.recordOutput(10, 5_500)
  assert.equal(silence.silentMsAt(6_400), 500, 'a short pause is the network')
  silence.recordOutput(20, 6_400)
  silence.recordOutput(30, 8_400)
  assert.equal(silence.silentMsAt(8_400), 2_500)
})

test('time in which the client does not read is not silence', () => {
  const silence = new Silence()
  silence.recordOutput(10, 0)
  silence.pause(100)
  assert.equal(silence.timesAt(90_100).stalledMs, 90_000)
  assert.equal(silence.silentMsAt(90_100), 0)
  silence.resume(90_100)
  assert.equal(silence.silentMsAt(90_500), 0)
  assert.equal(silence.silentMsAt(92_000), 2_000)
})

test('a reply is stalled while its client does not read, and for 5 s afterwards', () => {
  const silence = new Silence()
  const stalledMs = (nowMs: number) => silence.timesAt(nowMs).stalledMs
  silence.recordOutput(10, 0)
  assert.equal(stalledMs(100), 0)
  silence.pause(100)
  assert.equal(stalledMs(7_100), 7_000)
  silence.resume(8_100)
  assert.equal(stalledMs(8_200), 8_000)
  assert.equal(stalledMs(13_101), 0)
})
