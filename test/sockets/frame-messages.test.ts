import assert from 'node:assert/strict'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { FrameMessages, type FramePart, type Message } from '../../src/sockets/frames.ts'
import { test } from '../support/suite.ts'

const KiB = 1024

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function partOf(payload: Buffer | string, more: Partial<FramePart> = {}): FramePart {
  const bytes = Buffer.from(payload)
  const rest = { kind: 'data', opcode: 1, endsFrame: true, endsMessage: true } as const
  return { ...rest, wire: bytes, payload: bytes, ...more }
}

const begun = (payload: Buffer | string, more: Partial<FramePart> = {}): FramePart =>
  partOf(payload, { endsMessage: false, ...more })

function textOf(message: Message | null): string | null {
  if (message === null) return null
  return message.kind === 'message' ? message.payload.toString() : message.why
}

test('a message is available as soon as its last part is', () => {
  const reader = new FrameMessages(KiB)
  assert.equal(textOf(reader.push(partOf('whole'))), 'whole')
  assert.equal(textOf(reader.push(begun('in '))), null)
  assert.equal(textOf(reader.push(partOf('ping', { kind: 'control', opcode: 9, endsMessage: false }))), null)
  assert.equal(textOf(reader.push(begun('', { endsFrame: false }))), null)
  assert.equal(textOf(reader.push(partOf('parts'))), 'in parts')
  assert.equal(textOf(reader.push(partOf(''))), '')
})

test('a message of maximum size is read, one a byte longer is dropped, and the next one is read', () => {
  const reader = new FrameMessages(10)
  assert.equal(textOf(reader.push(partOf('0123456789'))), '0123456789')
  assert.equal(textOf(reader.push(partOf('0123456789+'))), 'too_large')
  reader.push(begun('0123456789'))
  reader.push(begun('+'))
  reader.push(begun('more'))
  assert.equal(textOf(reader.push(partOf(''))), 'too_large')
  assert.equal(textOf(reader.push(partOf('next'))), 'next')
})

test('a million one-byte fragments take little more memory than the message', () => {
  const reader = new FrameMessages(2 ** 21)
  const part = begun('x')
  const used = (): number => {
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  reader.push(part)
  collectGarbage()
  const before = used()
  for (let i = 1; i < 2 ** 20; i++) reader.push(part)
  collectGarbage()
  // A Buffer per part would take a hundred times the message.
  assert.ok(used() - before < 16 * 2 ** 20, `${used() - before} bytes`)
  assert.equal(textOf(reader.push(partOf('!')))?.length, 2 ** 20 + 1)
})

test('a text message that is not UTF-8 is unreadable, a binary one is not', () => {
  const reader = new FrameMessages(KiB)
  const broken = Buffer.from([0xe2, 0x82])
  assert.equal(textOf(reader.push(partOf(broken))), 'not_utf8')
  assert.deepEqual(reader.push(partOf(broken, { opcode: 2 })), { kind: 'message', payload: broken })
  // A character may be split between two fragments.
  reader.push(begun(broken))
  assert.equal(textOf(reader.push(partOf(Buffer.from([0xac])))), '€')
})
