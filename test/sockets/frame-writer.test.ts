import assert from 'node:assert/strict'
import fc from 'fast-check'
import { closeFrame, textFrame } from '../../src/sockets/frames.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'
import { readFrames, type Side, wireOf } from './wire-frames.ts'
import { receiveWithWs } from './ws-receiver.ts'

test('a text of any length is one unmasked frame with the shortest length field', async () => {
  for (const length of [0, 1, 125, 126, 65_535, 65_536, 200_000]) {
    const payload = 'x'.repeat(length)
    const frame = textFrame(payload)
    assert.ok(frame.equals(wireOf('server', { opcode: 1, payload })), `${length}`)
    const [event] = await receiveWithWs(frame, 'server')
    assert.equal(event?.kind === 'message' && event.payload.toString(), payload)
  }
  assert.ok(textFrame('ä€𐍈').equals(wireOf('server', { opcode: 1, payload: 'ä€𐍈' })))
})

async function closing(frame: Buffer, from: Side): Promise<{ code: number; reason: string }> {
  const { events, violation } = readFrames([frame], from)
  assert.equal(violation, null)
  assert.equal(events.length, 1)
  const [event] = events
  assert.ok(event?.kind === 'control' && event.opcode === 8)
  return { code: event.payload.readUInt16BE(0), reason: event.payload.toString('utf8', 2) }
}

test('a close frame has its code and as many whole characters of its reason as fit', async () => {
  const reasons = fc.string({ unit: fc.constantFrom('a', 'ä', '€', '𐍈', '\u{d800}'), maxLength: 140 })
  await fc.assert(
    fc.asyncProperty(reasons, fc.boolean(), async (reason, masked) => {
      const frame = closeFrame(1008, reason, masked)
      const read = await closing(frame, masked ? 'client' : 'server')
      const whole = Buffer.from(reason).toString()
      assert.equal(read.code, 1008)
      assert.ok(whole.startsWith(read.reason))
      const next = [...whole.slice(read.reason.length)][0]
      if (next !== undefined) assert.ok(Buffer.byteLength(read.reason + next) > 123)
    }),
    { numRuns: runs(300) },
  )
})

test('frames to upstream are masked, each with a new key', () => {
  const frames = Array.from({ length: 8 }, () => closeFrame(1001, 'going', true))
  assert.ok(frames.every((frame) => ((frame[1] ?? 0) & 0x80) !== 0))
  assert.equal(new Set(frames.map((frame) => frame.toString('hex', 2, 6))).size, frames.length)
})
