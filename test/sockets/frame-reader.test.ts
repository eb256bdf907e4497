import assert from 'node:assert/strict'
import fc from 'fast-check'
import { type FramePart, FrameReader, type Violation } from '../../src/sockets/frames.ts'
import { runs } from '../support/scale.ts'
import { test } from '../support/suite.ts'
import { chunksOf, type Side, sequenceOf, singleBytes, wireOf } from './wire-frames.ts'

function read(reader: FrameReader, bytes: Buffer): { parts: FramePart[]; violation: Violation | null } {
  const parts: FramePart[] = []
  const violation = reader.read(bytes, (part) => parts.push(part))
  return { parts, violation }
}

const readerOf = (from: Side): FrameReader => new FrameReader(from)

test('unmasked payload is passed on and shown as views of the chunk, without a copy', () => {
  const chunk = sequenceOf('server', [
    { opcode: 1, payload: 'Hello' },
    { opcode: 9, payload: 'ping' },
    { opcode: 2, payload: Buffer.alloc(70_000) },
  ])
  const { parts } = read(readerOf('server'), chunk)
  for (const { wire, payload } of parts) {
    assert.equal(wire.buffer, chunk.buffer)
    assert.equal(payload.buffer, chunk.buffer)
  }
  assert.deepEqual(
    parts.map((part) => part.payload.length),
    [5, 4, 70_000],
  )
})

test('masked payload is passed on as a view and shown as a copy, for any length and offset', () => {
  const lengths = fc.oneof(fc.nat(300), fc.constantFrom(65_535, 65_536, 131_072, 200_001))
  const places = fc.array(fc.nat(200_020), { maxLength: 5 })
  const key = fc.uint8Array({ minLength: 4, maxLength: 4 })
  fc.assert(
    fc.property(lengths, places, key, fc.nat(9), (length, cuts, mask, offset) => {
      const payload = Buffer.from(Array.from({ length }, (_, i) => (i * 7) & 0xff))
      const frame = wireOf('client', { opcode: 2, payload, key: Buffer.from(mask) })
      const chunk = Buffer.concat([Buffer.alloc(offset), frame]).subarray(offset)
      const reader = readerOf('client')
      const parts = chunksOf(
        chunk,
        cuts.map((cut) => cut % (chunk.length + 1)),
      ).flatMap((piece) => read(reader, piece).parts)
      assert.ok(Buffer.concat(parts.map((part) => part.payload)).equals(payload))
      assert.ok(Buffer.concat(parts.map((part) => part.wire)).equals(frame))
      assert.ok(chunk.equals(frame), 'the chunk was changed')
    }),
    { numRuns: runs(200) },
  )
})

test('a kept part does not change when the chunk’s memory is reused', () => {
  const reader = readerOf('client')
  const kept: FramePart[] = []
  const bytes = sequenceOf('client', [
    { opcode: 9, payload: 'one' },
    { opcode: 1, payload: 'x'.repeat(200) },
    { opcode: 10, payload: 'two' },
  ])
  const memory = Buffer.alloc(5)
  const wires: Buffer[] = []
  for (let at = 0; at < bytes.length; at += memory.length) {
    const length = bytes.copy(memory, 0, at)
    reader.read(memory.subarray(0, length), (part) => {
      kept.push(part)
      // The caller must copy a part that is a view of the chunk; it may keep any other part.
      wires.push(part.wire.buffer === memory.buffer ? Buffer.from(part.wire) : part.wire)
    })
    memory.fill(0xff)
  }
  assert.ok(Buffer.concat(wires).equals(bytes))
  assert.equal(Buffer.concat(kept.map((part) => part.payload)).toString(), `one${'x'.repeat(200)}two`)
})

test('isBetweenFrames and isBetweenMessages describe the bytes already passed on, even during a read', () => {
  const reader = readerOf('server')
  const seen: string[] = []
  const note = (): void => {
    seen.push(`${reader.isBetweenFrames ? 'F' : '-'}${reader.isBetweenMessages ? 'M' : '-'}`)
  }
  note()
  const bytes = sequenceOf('server', [
    { opcode: 1, payload: 'ab', fin: 0 },
    { opcode: 9, payload: 'p' },
    { opcode: 0, payload: '' },
  ])
  for (const byte of singleBytes(bytes)) {
    reader.read(byte, note)
  }
  // Before all bytes, then after the header, a, b, the ping and the empty end.
  assert.deepEqual(seen, ['FM', '--', '--', 'F-', 'F-', 'FM'])
})

test('a 64-bit length is accepted up to 2^53 - 1, and its highest bit must be clear', () => {
  const codes = [2n ** 32n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n].map(
    (length) => {
      // The violation is found at the last byte of the length, before the mask.
      const header = wireOf('client', { opcode: 2, length, lengthBits: 64 }).subarray(0, 10)
      const reader = readerOf('client')
      const found = singleBytes(header).map((byte) => read(reader, byte).violation?.closeCode ?? 0)
      assert.equal(
        found.slice(0, -1).every((code) => code === 0),
        true,
      )
      return found.at(-1)
    },
  )
  assert.deepEqual(codes, [0, 0, 1009, 1009, 1002, 1002])
  const reader = readerOf('server')
  const { parts } = read(reader, wireOf('server', { opcode: 2, length: 2n ** 40n, payload: 'beginning' }))
  assert.equal(parts[0]?.payload.toString(), 'beginning')
  assert.equal(parts[0]?.endsFrame, false)
})

test('nothing is read after a violation, which is reported again, or after a close frame', () => {
  const good = wireOf('server', { opcode: 1, payload: 'good' })
  const broken = readerOf('server')
  const { violation } = read(broken, Buffer.concat([good, Buffer.from([0x83, 0x00]), good]))
  assert.equal(violation?.closeCode, 1002)
  assert.deepEqual(read(broken, good), { parts: [], violation })
  assert.ok(broken.isBetweenFrames)

  const closed = readerOf('server')
  assert.equal(
    read(closed, sequenceOf('server', [{ opcode: 8 }, { opcode: 1, payload: 'late' }])).parts.length,
    1,
  )
  assert.deepEqual(read(closed, Buffer.from([0x83, 0x00])), { parts: [], violation: null })
})
