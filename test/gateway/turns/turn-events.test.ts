import assert from 'node:assert/strict'
import { TurnEvents } from '../../../src/gateway/turns/turn-call.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { createMeter } from '../../../src/providers/surfaces.ts'
import { test } from '../../support/suite.ts'

const delta = Buffer.from(
  JSON.stringify({
    type: 'response.output_text.delta',
    item_id: 'a',
    output_index: 0,
    content_index: 0,
    delta: 'Hi ',
  }),
)

function startEvents() {
  let nowMs = 1_000
  const events = new TurnEvents({ ...systemClock, monotonicMs: () => nowMs }, () => {})
  events.meter = createMeter('responses', { status: 200, contentType: 'text/event-stream' })
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { events, pass }
}

test('events that come one after the other are no silence, whenever the turn ends', () => {
  const { events, pass } = startEvents()
  // Time in upstream's queue is not silence either.
  pass(5_000)
  for (let i = 0; i < 40; i++) {
    events.observe(delta)
    pass(400)
  }
  pass(500)
  assert.equal(events.meter.visibleBytes, 120)
  assert.equal(events.end(false).times.silentMs, 0)
})

test('a gap of more than a second between events is silence, by the time at which each of them came', () => {
  const { events, pass } = startEvents()
  events.observe(Buffer.from('{"type":"response.created",\n"response":{"id":"resp_1"}}'))
  pass(700)
  events.observe(delta)
  pass(3_000)
  events.observe(delta)
  pass(900)
  assert.equal(events.end(false).times.silentMs, 3_700)
})
