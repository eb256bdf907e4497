import assert from 'node:assert/strict'
import { after, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { opcodeOf, payloadOf, type RawSocket, splitFrames, startRawBench } from './raw-bench.ts'
import { sequenceOf, wireOf } from './wire-frames.ts'

/** Frames that the gateway itself sends to a client, among those of upstream. */

const bench = await startRawBench()
const { key } = await bench.gateway.createKey('spent', { monthly_budget_usd: 0 })
after(() => bench[Symbol.asyncDispose]())

const text = (payload: string) => wireOf('client', { opcode: 1, payload })
const refused = text(JSON.stringify({ type: 'response.create', model: 'gpt-4o', input: 'x' }))

/** Sends messages that are refused, and waits until their refusals are recorded. */
async function refuseTurn({ id, client }: RawSocket, times = 1): Promise<void> {
  for (let i = 0; i < times; i++) await client.send(refused)
  const path = `/gateway/v1/requests?state=refused&socket=${id}`
  await until('its messages are refused', async () => {
    const { data } = (await bench.gateway.manage('GET', path)) as { data: unknown[] }
    return data.length === times
  })
}

const typesOf = (bytes: Buffer) =>
  splitFrames(bytes).map((frame) => {
    if (opcodeOf(frame) !== 1) return opcodeOf(frame)
    const payload = payloadOf(frame).toString()
    return payload.includes('budget_exceeded') ? 'refusal' : payload
  })

test('an error event waits for the end of a fragmented message, control frames do not', async () => {
  const socket = await bench.open({ key })
  const { client, upstream } = socket
  await upstream.send(wireOf('server', { opcode: 1, fin: 0, payload: '{"type":' }))
  await client.receivedBytes(1)
  await refuseTurn(socket)
  const middle = sequenceOf('server', [
    { opcode: 9, payload: 'p' },
    { opcode: 0, fin: 0, payload: '"response.' },
  ])
  const already = client.received.length
  await upstream.send(middle)
  assert.deepEqual((await client.receivedBytes(already + middle.length)).subarray(already), middle)
  await upstream.send(wireOf('server', { opcode: 0, payload: 'x"}' }))
  await client.until(() => client.received.includes('budget_exceeded'), 'the refusal')
  assert.deepEqual(typesOf(client.received), ['{"type":', 9, 0, 0, 'refusal'])
  client.socket.destroy()
})

test('an error event waits for the end of a partial frame', async () => {
  const socket = await bench.open({ key })
  const { client, upstream } = socket
  const frame = wireOf('server', { opcode: 1, payload: `{"type":"${'x'.repeat(1_000)}"}` })
  await upstream.send(frame.subarray(0, 500))
  await client.receivedBytes(500)
  await refuseTurn(socket, 2)
  assert.equal(client.received.length, 500)
  const next = wireOf('server', { opcode: 1, payload: '{"type":"next"}' })
  await upstream.send(Buffer.concat([frame.subarray(500), next]))
  await client.until(() => client.received.includes('"next"'), 'what upstream sent')
  await client.until(() => typesOf(client.received).filter((type) => type === 'refusal').length === 2, 'both')
  assert.deepEqual(client.received.subarray(0, frame.length), frame)
  assert.deepEqual(typesOf(client.received).slice(1).sort(), ['refusal', 'refusal', '{"type":"next"}'])
  client.socket.destroy()
})

test('a protocol violation closes the socket with its code, and upstream gets only a close frame', async () => {
  const broken: [string, Buffer, number][] = [
    ['a frame that is not masked', wireOf('client', { opcode: 1, payload: '{}', key: null }), 1002],
    ['a reserved opcode', wireOf('client', { opcode: 3, payload: '' }), 1002],
    ['a reserved bit', wireOf('client', { opcode: 1, rsv: 4, payload: '{}' }), 1002],
    ['a continuation of nothing', wireOf('client', { opcode: 0, payload: '{}' }), 1002],
    ['a ping of fragments', wireOf('client', { opcode: 9, fin: 0, payload: '' }), 1002],
    ['a close frame of one byte', wireOf('client', { opcode: 8, payload: 'x' }), 1002],
  ]
  for (const [name, bytes, code] of broken) {
    const { client, upstream } = await bench.open()
    await client.send(bytes)
    await client.ended
    const [close = Buffer.alloc(4), ...more] = splitFrames(client.received)
    assert.deepEqual([opcodeOf(close), payloadOf(close).readUInt16BE(0), more], [8, code, []], name)
    client.socket.end()
    await upstream.ended
    const kinds = splitFrames(upstream.received).map(opcodeOf)
    assert.deepEqual(kinds, [8], name)
  }
})

test('text that is not UTF-8 is refused as an unreadable turn', async () => {
  const { client } = await bench.open({ key })
  await client.send(wireOf('client', { opcode: 1, payload: Buffer.from([0x7b, 0xff, 0xfe, 0x7d]) }))
  await client.until(() => client.received.subarray(-2).toString() === '"}', 'the refusal')
  const [first = Buffer.alloc(4), ...more] = splitFrames(client.received)
  assert.deepEqual([opcodeOf(first), more], [1, []])
  const { error } = JSON.parse(payloadOf(first).toString()) as { error: Record<string, string> }
  assert.equal(error['code'], 'bad_request')
  assert.equal(error['message'], 'The body cannot be read: it is not UTF-8. Encode it as UTF-8.')
  client.socket.destroy()
})
