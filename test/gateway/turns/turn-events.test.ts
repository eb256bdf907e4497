import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TurnEvents } from '../../../src/gateway/turns/turn-events.ts'
import { systemClock } from '../../../src/kernel/clock.ts'
import { createMeter } from '../../../src/providers/surfaces.ts'

const completed = (text: string) => {
  const usage = { input_tokens: 7, output_tokens: 3, total_tokens: 10 }
  const output = [{ type: 'message', content: [{ type: 'output_text', text }] }]
  return Buffer.from(JSON.stringify({ type: 'response.completed', response: { output, usage } }, null, 1))
}

for (const bytes of [10, 100_000]) {
  test(`an event with a text of ${bytes} bytes on several lines is read, and seen as the line that it is over HTTP`, () => {
    const seen: string[] = []
    const events = new TurnEvents(systemClock, (framed) => seen.push(framed.toString()))
    events.readWith(createMeter('responses', { status: 200, contentType: 'text/event-stream' }))
    const event = completed('x'.repeat(bytes))
    events.observe(event)
    const { metered } = events.end(true)
    assert.deepEqual([metered.inputKnown, metered.outputKnown, metered.faults], [true, true, []])
    assert.equal(seen.join(''), `data: ${event.toString().replaceAll('\n', ' ')}\n\n`)
  })
}
