import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Metered } from '../../src/metering/meter.ts'
import { createMeter } from '../../src/providers/usage/create-meter.ts'

const USAGE = '"usage":{"input_tokens":7,"output_tokens":9}'

function meterMessage(text: string, more = ''): Metered {
  const meter = createMeter('messages', { status: 200, contentType: 'application/json' })
  const content = `"content":[{"type":"text","text":"${text}"}]`
  meter.write(
    Buffer.from(`{"type":"message","model":"m",${content},"stop_reason":"end_turn",${USAGE}${more}}`),
  )
  return meter.end(true)
}

const LONG = 'a word and a line\\n'.repeat(1000)

test('a long text is delivered whole, though the figures are read without it', () => {
  const metered = meterMessage(LONG)
  assert.deepEqual(metered.faults, [])
  assert.deepEqual(metered.usage.parts[0]?.quantities, { input_tokens: 7, output_tokens: 9 })
  assert.equal(metered.output.bytes.text, 18_000)
  assert.deepEqual(metered.output.texts(), ['a word and a line\n'.repeat(1000)])
})

test('a long text that is no JSON string makes the reply one that cannot be read', () => {
  for (const wrong of ['\\x', '\\u12g4', '\\u12"', '\\']) {
    for (const text of [LONG + wrong, wrong + LONG, LONG + wrong + LONG]) {
      const { faults, inputKnown, output } = meterMessage(text)
      assert.deepEqual(faults, ['not_json'], JSON.stringify(wrong))
      assert.equal(inputKnown, false)
      assert.equal(output.bytes.text, 0)
    }
  }
})

test('a control character in a text is no reason not to read the usage', () => {
  for (const text of [`a\nb`, `${LONG}\0`]) {
    const { faults, usage, output } = meterMessage(text)
    assert.deepEqual(faults, [])
    assert.deepEqual(usage.parts[0]?.quantities, { input_tokens: 7, output_tokens: 9 })
    assert.ok(output.bytes.text >= 3)
  }
})

test('a long string counts as little for a name as any that is too long for one', () => {
  const { usage } = meterMessage('short', `,"model":"${'m'.repeat(5000)}"`)
  assert.equal(usage.modelServed, null)
  assert.equal(usage.suspect, true, 'the name is given twice')
})

test('text that was cut off for its length is delivered up to there', () => {
  const { output, outputKnown } = meterMessage('x'.repeat(300_000))
  assert.equal(output.bytes.text, 128 * 1024)
  assert.equal(outputKnown, true)
})
