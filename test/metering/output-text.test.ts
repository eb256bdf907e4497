import assert from 'node:assert/strict'
import { test } from 'node:test'
import { OutputText } from '../../src/metering/output-text.ts'

test('text is kept by channel and counted by kind', () => {
  const output = new OutputText()
  output.channel('text', 0).append('grüß ')
  output.channel('text', 1).append('right')
  output.channel('tool', 0).append('{}')
  output.channel('text', 0).appendAscii(Buffer.from('xdichx'), 1, 5)
  const delivered = output.delivered()
  assert.deepEqual(delivered.texts(), ['grüß dich', 'right', '{}'])
  assert.deepEqual(delivered.bytes, { text: 16, thinking: 0, tool: 2 })
  assert.equal(delivered.keptBytes, 18)
})

test('after the first piece that does not fit none is kept, so that what is kept is a beginning', () => {
  const output = new OutputText(10)
  const channel = output.channel('text', 0)
  for (const text of ['123456', '', '12345', '1', '2']) channel.append(text)
  channel.appendAscii(Buffer.from('3'), 0, 1)
  const delivered = output.delivered()
  assert.deepEqual(delivered.texts(), ['123456'])
  assert.equal(delivered.keptBytes, 6)
  assert.equal(delivered.bytes.text, 14)
})

test('long pieces of bytes and of text are kept whole', () => {
  const output = new OutputText()
  const channel = output.channel('thinking', 'a')
  const long = 'sixteen bytes !!'.repeat(300)
  channel.append('€'.repeat(1000))
  channel.appendAscii(Buffer.from(`..${long}..`), 2, 2 + long.length)
  assert.deepEqual(output.delivered().texts(), ['€'.repeat(1000) + long])
})

test('a lone half of a pair of surrogates counts as what is written for it', () => {
  const output = new OutputText()
  output.channel('text', 0).append('\ud83d')
  assert.deepEqual(output.delivered().texts(), ['\ufffd'])
  assert.equal(output.delivered().bytes.text, 3)
})
