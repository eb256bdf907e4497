import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { mock, test } from 'node:test'
import zlib from 'node:zlib'
import { limits } from '../../src/kernel/limits.ts'
import type { FramePart } from '../../src/sockets/frame-reader.ts'
import { type Deflate, type Message, MessageReader } from '../../src/sockets/message-reader.ts'
import {
  chunksOf,
  deflated,
  deflatedTogether,
  readFrames,
  sequenceOf,
  type WireFrame,
} from './wire-frames.ts'

const MiB = 1024 * 1024
const TAKEOVER: Deflate = { contextTakeover: true, windowBits: 15 }
const NO_TAKEOVER: Deflate = { contextTakeover: false, windowBits: 15 }

const readerOf = (inflate: Deflate, messageBytesMax = MiB): MessageReader =>
  new MessageReader({ inflate, messageBytesMax })

function partOf(payload: Buffer, more: Partial<FramePart> = {}): FramePart {
  const rest = { kind: 'data', opcode: 1, compressed: true, endsFrame: true, endsMessage: true } as const
  return { ...rest, wire: payload, payload, ...more }
}

const plain = (text: string): FramePart => partOf(Buffer.from(text), { compressed: false })

async function textOf(message: Message | Promise<Message> | null): Promise<string> {
  const read = await message
  assert.ok(read !== null)
  return read.kind === 'message' ? read.payload.toString() : read.why
}

/** Texts like those of a socket: each repeats much of the text before it. */
function eventsOf(count: number, bytes: number): Buffer[] {
  return Array.from({ length: count }, (_, i) => {
    const delta = randomBytes(Math.ceil(bytes / 4)).toString('hex')
    return Buffer.from(`{"type":"response.output_text.delta","sequence_number":${i},"delta":"${delta}"}`)
  })
}

/** The message in fragments of so many bytes. */
function fragmentsOf(payload: Buffer, bytes: number): WireFrame[] {
  const cuts = Array.from({ length: Math.ceil(payload.length / bytes) - 1 }, (_, i) => (i + 1) * bytes)
  const pieces = chunksOf(payload, cuts)
  return pieces.map((piece, i) => ({
    opcode: i === 0 ? 1 : 0,
    rsv: i === 0 ? 4 : 0,
    fin: i === pieces.length - 1 ? 1 : 0,
    payload: piece,
  }))
}

// Sizes by context takeover and window, as in 12 and 13 of the Autobahn suite.
for (const [name, inflate] of Object.entries<Deflate>({
  'with context takeover': TAKEOVER,
  'without context takeover': NO_TAKEOVER,
  'with context takeover and a window of 9 bits': { contextTakeover: true, windowBits: 9 },
  'without context takeover and a window of 9 bits': { contextTakeover: false, windowBits: 9 },
})) {
  test(`messages of 16 bytes to 128 KiB are read ${name}, whole and in fragments`, async () => {
    for (const bytes of [16, 64, 256, 1024, 4096, 8192, 16_384, 32_768, 65_536, 131_072]) {
      const payloads = eventsOf(bytes > 10_000 ? 4 : 20, bytes)
      const { contextTakeover, windowBits } = inflate
      const compressed = contextTakeover
        ? await deflatedTogether(payloads, windowBits)
        : payloads.map((payload) => deflated(payload, windowBits))
      for (const fragmentBytes of [Number.POSITIVE_INFINITY, 256]) {
        for (const from of ['client', 'server'] as const) {
          const sequence = sequenceOf(
            from,
            compressed.flatMap((payload) => fragmentsOf(payload, fragmentBytes)),
          )
          const { events, violation } = await readFrames([sequence], { from, inflate })
          assert.equal(violation, null)
          const read = events.map((event) => (event.kind === 'message' ? event.payload : event.kind))
          assert.deepEqual(read, payloads, `${bytes} bytes, fragments of ${fragmentBytes}, from a ${from}`)
        }
      }
    }
  })
}

test('the examples of RFC 7692 are read', async () => {
  const hello = Buffer.from('f248cdc9c90700', 'hex')
  const examples: readonly (readonly [string, Buffer[]])[] = [
    ['7.2.3.1', [hello]],
    ['7.2.3.2', [hello, Buffer.from('f200110000', 'hex')]],
    ['7.2.3.3', [Buffer.from('000500faff48656c6c6f00', 'hex')]],
    ['7.2.3.4', [Buffer.from('f348cdc9c9070000', 'hex'), Buffer.from('f348cdc9c9070000', 'hex')]],
    ['7.2.3.5', [Buffer.from('f24805000000ffffcac9c90700', 'hex')]],
  ]
  for (const [name, payloads] of examples) {
    const reader = readerOf(TAKEOVER)
    for (const payload of payloads) assert.equal(await textOf(reader.push(partOf(payload))), 'Hello', name)
    reader.dispose()
  }
})

test('messages come in the order in which they were sent, whether or not they are compressed', async () => {
  for (const inflate of [TAKEOVER, NO_TAKEOVER]) {
    const reader = readerOf(inflate)
    const order: string[] = []
    const sent = ['a'.repeat(300_000), 'b', 'c'.repeat(100_000), 'd', 'e']
    const waiting = sent.map(async (text, i) => {
      const message = reader.push(i % 2 === 0 ? partOf(deflated(text)) : plain(text))
      assert.ok(message instanceof Promise)
      order.push((await textOf(message)).charAt(0))
    })
    await Promise.all(waiting)
    assert.deepEqual(order, ['a', 'b', 'c', 'd', 'e'])
    await new Promise(setImmediate)
    assert.ok(!(reader.push(plain('f')) instanceof Promise), 'nothing is waited for any more')
    reader.dispose()
  }
})

test('what is too large is not kept, and what follows is read, also where it refers to it', async () => {
  const large = randomBytes(MiB).toString('hex')
  const tail = large.slice(-1000)
  for (const inflate of [TAKEOVER, NO_TAKEOVER]) {
    const payloads = [Buffer.from(large), Buffer.from(tail), Buffer.from('next')]
    const compressed = inflate.contextTakeover
      ? await deflatedTogether(payloads)
      : payloads.map((payload) => deflated(payload))
    const reader = readerOf(inflate, 5_000)
    const read = compressed.map((payload) => textOf(reader.push(partOf(payload))))
    assert.deepEqual(await Promise.all(read), ['too_large', tail, 'next'])
    assert.equal(reader.keptBytes, 0)
    reader.dispose()
  }
})

test('a message of just the largest size is read, one of a byte more is not', async () => {
  for (const inflate of [TAKEOVER, NO_TAKEOVER]) {
    const reader = readerOf(inflate, 50_000)
    assert.equal((await textOf(reader.push(partOf(deflated('x'.repeat(50_000)))))).length, 50_000)
    assert.equal(await textOf(reader.push(partOf(deflated('x'.repeat(50_001))))), 'too_large')
    reader.dispose()
  }
})

/** Runs a function that can ask which inflate streams were opened. */
async function streamsOf(run: (streams: () => zlib.InflateRaw[]) => Promise<void>): Promise<void> {
  const opened = mock.method(zlib, 'createInflateRaw')
  syncBuiltinESMExports()
  try {
    await run(() => opened.mock.calls.flatMap(({ result }) => result ?? []))
  } finally {
    opened.mock.restore()
    syncBuiltinESMExports()
  }
}

test('of a bomb no more is kept than the largest size, nor more inflated unless what follows may refer to it', async () => {
  const bomb = deflated(Buffer.alloc(128 * MiB))
  for (const inflate of [TAKEOVER, NO_TAKEOVER]) {
    await streamsOf(async (streams) => {
      const reader = readerOf(inflate, 100_000)
      const message = reader.push(partOf(bomb))
      const [stream] = streams()
      let keptMost = 0
      stream?.on('data', () => {
        keptMost = Math.max(keptMost, reader.keptBytes)
      })
      assert.equal(await textOf(message), 'too_large')
      assert.ok(keptMost > bomb.length && keptMost <= 100_000 + bomb.length + 4, `${keptMost}`)
      const readBytes = stream?.bytesWritten ?? 0
      if (inflate.contextTakeover) assert.equal(readBytes, bomb.length + 4)
      else assert.ok(readBytes < bomb.length / 100, `${readBytes}`)
      assert.equal(await textOf(reader.push(partOf(deflated('after it')))), 'after it')
      reader.dispose()
    })
  }
})

test('what is not deflate cannot be read, nor, with context takeover, what comes compressed after it', async () => {
  const broken = partOf(Buffer.from('ffffff', 'hex'))
  const good = (): FramePart => partOf(deflated('good'))
  const apart = readerOf(NO_TAKEOVER)
  assert.equal(await textOf(apart.push(broken)), 'not_inflatable')
  assert.equal(await textOf(apart.push(good())), 'good')
  const together = readerOf(TAKEOVER)
  const read = [good(), broken, good(), plain('plain')].map((part) => textOf(together.push(part)))
  assert.deepEqual(await Promise.all(read), ['good', 'not_inflatable', 'not_inflatable', 'plain'])
  assert.equal(await textOf(together.push(good())), 'not_inflatable')
  assert.equal(together.keptBytes, 0)
})

test('text that is not UTF-8 is told from text that cannot be inflated', async () => {
  const reader = readerOf(NO_TAKEOVER)
  assert.equal(await textOf(reader.push(partOf(deflated(Buffer.from([0xff]))))), 'not_utf8')
})

test('a message in which the deflate stream ends before its bytes do cannot be read: readers differ about the rest', async () => {
  const ended = Buffer.from('f348cdc9c90700', 'hex')
  const hidden = deflated('hidden')
  for (const inflate of [TAKEOVER, NO_TAKEOVER]) {
    const whole = readerOf(inflate)
    assert.equal(await textOf(whole.push(partOf(Buffer.concat([ended, hidden])))), 'not_inflatable')
    const inFragments = readerOf(inflate)
    inFragments.push(partOf(ended, { endsMessage: false }))
    assert.equal(await textOf(inFragments.push(partOf(hidden))), 'not_inflatable')
    const atItsEnd = readerOf(inflate)
    assert.equal(await textOf(atItsEnd.push(partOf(ended))), 'Hello')
    assert.equal(await textOf(atItsEnd.push(partOf(deflated('next')))), 'next')
  }
})

test('a socket has a stream of zlib from its first compressed message on, without context takeover only during one', async () => {
  for (const inflate of [TAKEOVER, NO_TAKEOVER]) {
    await streamsOf(async (streams) => {
      const reader = readerOf(inflate)
      await reader.push(plain('not compressed'))
      assert.equal(streams().length, 0)
      for (const text of ['one', 'two', 'three']) await reader.push(partOf(deflated(text)))
      const open = (): boolean[] => streams().map((stream) => !stream.destroyed)
      assert.deepEqual(open(), inflate.contextTakeover ? [true] : [false, false, false])
      reader.dispose()
      assert.ok(!open().includes(true))
    })
  }
})

test('who waits for a message of a reader that is disposed of is told that it cannot be read', async () => {
  for (const inflate of [TAKEOVER, NO_TAKEOVER]) {
    const reader = readerOf(inflate)
    const waiting = [partOf(deflated('x'.repeat(MiB))), plain('p'), partOf(deflated('y'))].map((part) =>
      textOf(reader.push(part)),
    )
    reader.dispose()
    assert.equal(reader.keptBytes, 0)
    assert.deepEqual(await Promise.all(waiting), ['not_inflatable', 'p', 'not_inflatable'])
    await new Promise(setImmediate)
    assert.equal(reader.keptBytes, 0)
  }
})

test('a peer that is ahead of what is inflated is to wait, and one that does not is read no more', async () => {
  const reader = readerOf(TAKEOVER, 2 ** 28)
  assert.equal(reader.caughtUp(), null)
  const noise = randomBytes(2 * limits.inflateAheadBytes)
  const first = reader.push(partOf(deflated(noise), { opcode: 2 }))
  assert.ok(reader.keptBytes > limits.inflateAheadBytes)
  await reader.caughtUp()
  assert.equal((await first)?.kind, 'message')
  assert.equal(reader.caughtUp(), null)
  const flushed = Buffer.concat([deflated(noise), Buffer.from('0000ffff', 'hex')])
  for (let bytes = 0; bytes <= limits.inflateAheadBytesMax; bytes += flushed.length) {
    assert.equal(reader.push(partOf(flushed, { opcode: 2, endsMessage: false })), null)
  }
  assert.equal(await textOf(reader.push(partOf(flushed))), 'not_inflatable')
  assert.equal(reader.keptBytes, 0)
  assert.equal(reader.caughtUp(), null)
})
