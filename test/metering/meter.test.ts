import assert from 'node:assert/strict'
import { SCALAR } from '../../src/metering/json-shape.ts'
import {
  BodyMeter,
  NOTHING_SHOWN,
  NOTHING_STATED,
  nothingDelivered,
  type Reading,
  type ReplyReader,
  StreamMeter,
} from '../../src/metering/meter.ts'
import { test } from '../support/suite.ts'

function failingAt(failing: 'read' | 'reading' | 'look'): ReplyReader {
  const read = () => {
    if (failing === 'read') throw new Error('a fault of ours')
  }
  return {
    layout: {
      body: SCALAR,
      get event() {
        if (failing === 'look') throw new Error('a fault of ours')
        return SCALAR
      },
    },
    stage: 'closing',
    shown: NOTHING_SHOWN,
    readEvent: read,
    readDone: read,
    readBody: read,
    reading(): Reading {
      if (failing === 'reading') throw new Error('a fault of ours')
      return NOTHING_STATED
    },
  }
}

for (const failing of ['read', 'reading'] as const) {
  test(`a reader that fails to ${failing} breaks nothing, and the meter reports it at the end`, () => {
    const stream = new StreamMeter(failingAt(failing), nothingDelivered(), () => 'pass')
    const chunk = Buffer.from('data: {}\n\ndata: [DONE]\n\n')
    assert.deepEqual(stream.write(chunk), chunk, 'the bytes pass')
    const body = new BodyMeter(failingAt(failing), nothingDelivered())
    body.write(Buffer.from('{}'))
    for (const metered of [stream.end(), body.end()]) {
      assert.equal(metered.fault, 'failed')
      assert.equal(metered.inputKnown || metered.outputKnown, false)
    }
  })
}

test('a fault in the splitter or in removing usage does not break the stream either', () => {
  const cut = () => {
    throw new Error('a fault of ours')
  }
  for (const meter of [
    new StreamMeter(failingAt('look'), nothingDelivered()),
    new StreamMeter(failingAt('reading'), nothingDelivered(), cut),
  ])
    for (const length of [2, 300 * 1024]) {
      const chunk = Buffer.from(`data: "${'a'.repeat(length)}"\n\n`)
      assert.ok(meter.write(chunk)?.equals(chunk), 'the bytes pass')
      assert.equal(meter.end().fault, 'failed')
    }
})
