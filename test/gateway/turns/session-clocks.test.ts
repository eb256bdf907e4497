import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LiveClock, LiveSessions } from '../../../src/gateway/turns/session-clocks.ts'
import type { SessionEvent } from '../../../src/providers/realtime-events.ts'

const told = (seconds: number) =>
  ({ type: 'session.usage.updated', session: null, usage: { seconds }, deltaBytes: 0 }) as SessionEvent
const models = { model: 'gpt-live-1', transcribedBy: [] }

test('a session that is handed over is counted on by the next socket that hears of it, and the first is told', () => {
  const sessions = new LiveSessions()
  const [first, second] = [new LiveClock(sessions, 'live_1'), new LiveClock(sessions, 'live_1')]
  let isTold = false
  first.onTakenOver = () => {
    isTold = true
  }
  for (const clock of [first, second]) clock.observe(told(60))
  assert.deepEqual([first.isMeteredElsewhere, second.isMeteredElsewhere], [false, true])
  assert.equal(first.take(models, false)?.parts[0]?.quantities.audio_input_milliseconds, 60_000)
  first.paused(true)
  first.observe(told(60))
  assert.equal(isTold, false)
  second.observe(told(90))
  assert.deepEqual([first.isMeteredElsewhere, second.isMeteredElsewhere, isTold], [true, false, true])
  assert.equal(second.take(models, false)?.parts[0]?.quantities.audio_input_milliseconds, 30_000)
  first.observe(told(90))
  assert.equal(first.take(models, true), null)
})

test('what was sent is not counted yet until a socket is told of more than any was', () => {
  const sessions = new LiveSessions()
  const [first, second] = [new LiveClock(sessions, 'live_1'), new LiveClock(sessions, 'live_1')]
  for (const clock of [first, second]) clock.observe(told(60))
  second.sent(64_000)
  assert.deepEqual([first.unreportedMs, second.unreportedMs], [1_000, 1_000])
  second.observe(told(60))
  assert.equal(first.unreportedMs, 1_000)
  first.observe(told(61))
  assert.deepEqual([first.unreportedMs, second.unreportedMs], [0, 0])
  second.sent(64_000)
  second.observe(told(61))
  assert.equal(first.unreportedMs, 1_000)
  // A clock that is left while another is there guesses no time.
  assert.equal(first.take(models, true)?.suspect, true)
  first.end()
  assert.equal(second.take(models, true)?.parts[0]?.quantities.audio_input_milliseconds, 1_000)
  second.end()
  const third = new LiveClock(sessions, 'live_1')
  third.observe(told(61))
  assert.equal(third.unreportedMs, 0)
})
