import assert from 'node:assert/strict'
import { after, test } from '../support/suite.ts'
import { opcodeOf, splitFrames, startRawBench } from './raw-bench.ts'
import type { Wire } from './wire.ts'
import { chunksOf, sequenceOf, singleBytes, type WireFrame, wireOf } from './wire-frames.ts'

const bench = await startRawBench()
after(() => bench[Symbol.asyncDispose]())

const create = (input = 'Hello.', more: object = {}) =>
  JSON.stringify({ type: 'response.create', model: 'gpt-4o', input, max_output_tokens: 16, ...more })
const [TEXT, BINARY, CONTINUED, PING, PONG] = [1, 2, 0, 9, 10]
const isControl = (frame: Buffer) => opcodeOf(frame) >= 8

/** All bytes of one side arrive unchanged; control frames of a client may overtake a waiting message. */
async function assertPasses(from: Wire, to: Wire, pieces: readonly Buffer[], mayOvertake = false) {
  const bytes = Buffer.concat(pieces)
  const already = to.received.length
  const arrived = to.receivedBytes(already + bytes.length)
  await from.send(...pieces)
  const got = (await arrived).subarray(already)
  if (!mayOvertake) {
    assert.equal(got.compare(bytes), 0, difference(got, bytes))
    return
  }
  const sent = splitFrames(bytes)
  const came = splitFrames(got)
  for (const isWanted of [isControl, (frame: Buffer) => !isControl(frame)]) {
    assert.deepEqual(came.filter(isWanted), sent.filter(isWanted))
  }
}

function difference(got: Buffer, wanted: Buffer): string {
  const at = wanted.findIndex((byte, i) => got[i] !== byte)
  return `${got.length} bytes for ${wanted.length}, other from ${at} on: ${got.subarray(at, at + 40).toString('latin1')}`
}

/** A message in fragments of these sizes, with frames between them. */
function fragmented(payload: string, sizes: readonly number[], between: readonly WireFrame[] = []) {
  const bytes = Buffer.from(payload)
  const cuts = sizes.map((_, i) => sizes.slice(0, i + 1).reduce((sum, size) => sum + size, 0))
  const pieces = chunksOf(bytes, cuts)
  return pieces.flatMap((piece, i): WireFrame[] => [
    { opcode: i === 0 ? TEXT : CONTINUED, fin: i === pieces.length - 1 ? 1 : 0, payload: piece },
    ...(i < pieces.length - 1 ? between : []),
  ])
}

const sequences: Record<string, readonly WireFrame[]> = {
  'a text frame': [{ opcode: TEXT, payload: create() }],
  'binary JSON': [{ opcode: BINARY, payload: create() }],
  'a 16-bit length and a 64-bit one': [
    { opcode: TEXT, payload: create('a'.repeat(1_000)) },
    { opcode: TEXT, payload: create('b'.repeat(70_000)) },
  ],
  'lengths in more bits than they need': [
    { opcode: TEXT, payload: create(), lengthBits: 64 },
    { opcode: TEXT, payload: create('x'.repeat(300)), lengthBits: 64 },
  ],
  'fragments, some of them empty': fragmented(create('one two three'), [1, 0, 5, 0, 20]),
  'a ping between fragments': fragmented(
    create('pinged'),
    [10, 10, 10],
    [{ opcode: PING, payload: 'in between' }],
  ),
  'control frames of every valid size': Array.from({ length: 126 }, (_, size) => ({
    opcode: size % 2 === 0 ? PING : PONG,
    payload: Buffer.alloc(size, size),
  })),
  'twenty messages': Array.from({ length: 20 }, (_, i) => ({ opcode: TEXT, payload: create(`${i}`) })),
  'JSON with its own spaces, escapes and order': [
    {
      opcode: TEXT,
      payload:
        '\n{ "input" :\t"\\u0048i \u{1f600}", "model":"gpt-4o" ,"type" : "response\\u002ecreate" }\r\n',
    },
  ],
}

for (const [name, frames] of Object.entries(sequences)) {
  test(`${name} of a client arrives unchanged, in one packet and byte by byte`, async () => {
    for (const split of [(bytes: Buffer) => [bytes], singleBytes]) {
      const { client, upstream } = await bench.open()
      const bytes = sequenceOf('client', frames)
      await assertPasses(client, upstream, bytes.length > 5_000 ? [bytes] : split(bytes), true)
      client.socket.destroy()
    }
  })

  test(`${name} of upstream arrives unchanged, in one packet and byte by byte`, async () => {
    for (const split of [(bytes: Buffer) => [bytes], singleBytes]) {
      const { client, upstream } = await bench.open()
      const bytes = sequenceOf('server', frames)
      await assertPasses(upstream, client, bytes.length > 5_000 ? [bytes] : split(bytes))
      upstream.socket.destroy()
    }
  })
}

test('a message of one megabyte arrives unchanged in odd pieces, both ways', async () => {
  const { client, upstream } = await bench.open()
  const payload = create('m'.repeat(1_000_000))
  const cuts = Array.from({ length: 60 }, (_, i) => 1 + i * 17_001)
  const one = wireOf('client', { opcode: TEXT, payload })
  await assertPasses(client, upstream, chunksOf(one, cuts))
  const other = wireOf('server', { opcode: TEXT, payload })
  await assertPasses(upstream, client, chunksOf(other, cuts))
  client.socket.destroy()
})

test('close frames pass with code and reason in both directions, and end both connections', async () => {
  const reason = Buffer.concat([Buffer.from([0x0f, 0xa1]), Buffer.from('enough')])
  for (const closer of ['client', 'upstream'] as const) {
    const { client, upstream } = await bench.open()
    const [from, to] = closer === 'client' ? [client, upstream] : [upstream, client]
    const [side, otherSide] =
      closer === 'client' ? (['client', 'server'] as const) : (['server', 'client'] as const)
    await assertPasses(from, to, [wireOf(side, { opcode: 8, payload: reason })])
    await assertPasses(to, from, [wireOf(otherSide, { opcode: 8, payload: reason })])
    upstream.socket.end()
    await client.ended
    client.socket.end()
    await upstream.ended
  }
})
