import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { readBuffer } from '../../src/kernel/memory.ts'
import type { FramePart } from '../../src/sockets/frame-reader.ts'
import { type Message, MessageReader, readExtensions } from '../../src/sockets/message-reader.ts'

const KiB = 1024

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function partOf(payload: Buffer | string, more: Partial<FramePart> = {}): FramePart {
  const bytes = Buffer.from(payload)
  const rest = { kind: 'data', opcode: 1, compressed: false, endsFrame: true, endsMessage: true } as const
  return { ...rest, wire: bytes, payload: bytes, ...more }
}

const begun = (payload: Buffer | string, more: Partial<FramePart> = {}): FramePart =>
  partOf(payload, { endsMessage: false, ...more })

function textOf(message: Message | Promise<Message> | null): string | null {
  assert.ok(!(message instanceof Promise))
  if (message === null) return null
  return message.kind === 'message' ? message.payload.toString() : message.why
}

test('a message that is not compressed is there as soon as its last part is', () => {
  const reader = new MessageReader({ inflate: null, messageBytesMax: KiB })
  assert.equal(textOf(reader.push(partOf('whole'))), 'whole')
  assert.equal(textOf(reader.push(begun('in '))), null)
  assert.equal(reader.keptBytes, 3)
  assert.equal(textOf(reader.push(partOf('ping', { kind: 'control', opcode: 9, endsMessage: false }))), null)
  assert.equal(textOf(reader.push(begun('', { endsFrame: false }))), null)
  assert.equal(textOf(reader.push(partOf('parts'))), 'in parts')
  assert.equal(reader.keptBytes, 0)
  assert.equal(textOf(reader.push(partOf(''))), '')
})

test('a message may be kept, though the memory in which it arrived is used again', () => {
  const reader = new MessageReader({ inflate: null, messageBytesMax: KiB })
  const length = readBuffer.write('from a socket')
  const message = reader.push(partOf('', { payload: readBuffer.subarray(0, length) }))
  readBuffer.fill(0xff, 0, length)
  assert.equal(textOf(message), 'from a socket')
})

test('a message of the largest size is read, one that is a byte longer is not kept, and the next one is read', () => {
  const reader = new MessageReader({ inflate: null, messageBytesMax: 10 })
  assert.equal(textOf(reader.push(partOf('0123456789'))), '0123456789')
  assert.equal(textOf(reader.push(partOf('0123456789+'))), 'too_large')
  reader.push(begun('0123456789'))
  assert.equal(reader.keptBytes, 10)
  reader.push(begun('+'))
  assert.equal(reader.keptBytes, 0)
  reader.push(begun('more'))
  assert.equal(reader.keptBytes, 0)
  assert.equal(textOf(reader.push(partOf(''))), 'too_large')
  assert.equal(textOf(reader.push(partOf('next'))), 'next')
})

test('a million fragments of a byte take little more memory than the message', () => {
  const reader = new MessageReader({ inflate: null, messageBytesMax: 2 ** 21 })
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
  assert.equal(reader.keptBytes, 2 ** 20)
  // A Buffer for each part would take a hundred times the message.
  assert.ok(used() - before < 16 * 2 ** 20, `${used() - before} bytes`)
  assert.equal(textOf(reader.push(partOf('!')))?.length, 2 ** 20 + 1)
})

test('text that is not UTF-8 cannot be read, as bytes it can', () => {
  const reader = new MessageReader({ inflate: null, messageBytesMax: KiB })
  const broken = Buffer.from([0xe2, 0x82])
  assert.equal(textOf(reader.push(partOf(broken))), 'not_utf8')
  assert.deepEqual(reader.push(partOf(broken, { opcode: 2 })), {
    kind: 'message',
    opcode: 2,
    payload: broken,
  })
  // A character may be cut between two fragments.
  reader.push(begun(broken))
  assert.equal(textOf(reader.push(partOf(Buffer.from([0xac])))), '€')
})

test('what is compressed though nothing of that was agreed on cannot be read', () => {
  const reader = new MessageReader({ inflate: null, messageBytesMax: KiB })
  assert.equal(textOf(reader.push(begun('{}', { compressed: true }))), null)
  assert.equal(textOf(reader.push(partOf('{}', { compressed: true }))), 'not_inflatable')
  assert.equal(textOf(reader.push(partOf('{}'))), '{}')
})

test('a reader that was disposed of keeps nothing', () => {
  const reader = new MessageReader({ inflate: null, messageBytesMax: KiB })
  reader.push(begun('kept'))
  reader.dispose()
  assert.equal(reader.keptBytes, 0)
  assert.equal(reader.push(partOf('late')), null)
})

test('the answer about extensions is read as RFC 7692 has it', () => {
  const deflate = (contextTakeover: boolean, windowBits: number) => ({ contextTakeover, windowBits })
  const full = deflate(true, 15)
  assert.equal(readExtensions(null), null)
  const known: readonly [string, object][] = [
    ['permessage-deflate', { client: full, server: full }],
    [' permessage-deflate\t', { client: full, server: full }],
    ['permessage-deflate; server_no_context_takeover', { client: full, server: deflate(false, 15) }],
    ['permessage-deflate;client_no_context_takeover', { client: deflate(false, 15), server: full }],
    [
      'permessage-deflate; server_max_window_bits=10 ; client_max_window_bits="8"',
      { client: deflate(true, 8), server: deflate(true, 10) },
    ],
    [
      'permessage-deflate; client_max_window_bits=15; client_no_context_takeover; server_no_context_takeover; server_max_window_bits=9',
      { client: deflate(false, 15), server: deflate(false, 9) },
    ],
  ]
  for (const [value, expected] of known) assert.deepEqual(readExtensions(value), expected, value)
  const unknown = [
    '',
    ';',
    'x-webkit-deflate-frame',
    'permessage-deflate,',
    'permessage-deflate, permessage-deflate',
    'permessage-deflate; server_no_context_takeover, bbf-usp-protocol',
    'permessage-deflate;',
    'permessage-deflate; ; server_no_context_takeover',
    'permessage-deflate; client_max_window_bits',
    'permessage-deflate; server_max_window_bits=7',
    'permessage-deflate; server_max_window_bits=16',
    'permessage-deflate; server_max_window_bits=010',
    'permessage-deflate; server_max_window_bits="10',
    'permessage-deflate; server_max_window_bits = 10',
    'permessage-deflate; server_no_context_takeover=true',
    'permessage-deflate; server_no_context_takeover; server_no_context_takeover',
    'permessage-deflate; server_max_window_bits=10; server_max_window_bits=11',
    'permessage-deflate; __proto__',
  ]
  for (const value of unknown) assert.equal(readExtensions(value), 'unknown', value)
})
