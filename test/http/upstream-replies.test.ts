import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { nextTurn } from '../support/deadline.ts'
import { test } from '../support/suite.ts'
import { describeEnd, startRawUpstream } from './raw-upstream.ts'

const sized = (body: string, lines = '') =>
  `HTTP/1.1 200 OK\r\n${lines}Content-Length: ${body.length}\r\n\r\n${body}`

/** Answers each request with the next of these replies; later requests get none. */
function replies(...answers: string[]) {
  return ({ socket }: { socket: import('node:net').Socket }) => {
    socket.on('data', (chunk) => {
      if (chunk.includes('\r\n\r\n')) socket.write(answers.shift() ?? '', 'latin1')
    })
  }
}

const wholes: Record<string, readonly [method: string, wire: string, head: string, body: string]> = {
  'a sized one': [
    'POST',
    sized('hello', 'X-A: 1\r\nx-a: caf\xe9\r\n'),
    '200 OK X-A|1|x-a|caf\xe9|Content-Length|5',
    'hello',
  ],
  'an empty one': ['POST', sized(''), '200 OK Content-Length|0', ''],
  'a chunked one': [
    'POST',
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n',
    '200 OK Transfer-Encoding|chunked',
    'abcde',
  ],
  'a HEAD reply with the length of the GET body': [
    'HEAD',
    'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n',
    '200 OK Content-Length|5',
    '',
  ],
  'one after an unsolicited 100': [
    'POST',
    `HTTP/1.1 100 Continue\r\n\r\n${sized('')}`,
    '200 OK Content-Length|0',
    '',
  ],
  'a 204': ['POST', 'HTTP/1.1 204 No Content\r\n\r\n', '204 No Content ', ''],
  'a 304': ['GET', 'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n', '304 Not Modified ETag|"a"', ''],
  'a status above 599': [
    'POST',
    'HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n',
    '999 Odd Content-Length|0',
    '',
  ],
}

for (const [name, [method, wire, head, body]] of Object.entries(wholes)) {
  for (const how of ['at once', 'byte by byte'] as const) {
    test(`${name}, sent ${how}, is complete, and its connection is reused unless it was for HEAD`, async (t) => {
      const upstream = await startRawUpstream(t, ({ socket }) => {
        socket.on('data', async () => {
          if (how === 'at once') socket.write(wire, 'latin1')
          else
            for (const byte of wire) {
              socket.write(byte, 'latin1')
              await nextTurn()
            }
        })
      })
      for (let round = 0; round < 2; round++) {
        const { ended, reply } = upstream.send({ method })
        assert.equal(describeEnd(await ended), 'complete')
        assert.deepEqual(reply.lines, [head])
        assert.equal(reply.bytes.toString('latin1'), body)
      }
      assert.equal(upstream.connections.length, method === 'HEAD' ? 2 : 1)
    })
  }
}

const broken: Record<string, readonly [wire: string, end: string]> = {
  'a 101': [
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n',
    'failed after sending: UPSTREAM_UNSOLICITED',
  ],
  'a status below 100': [
    'HTTP/1.1 042 Odd\r\n\r\n',
    'failed after sending: upstream answered with status 42',
  ],
  'no HTTP': ['SSH-2.0-x\r\n', 'failed after sending: HPE_INVALID_CONSTANT'],
  'a length and chunks': [
    'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
    'failed after sending: HPE_INVALID_TRANSFER_ENCODING',
  ],
  'a chunk without a length': [
    'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx',
    'cut: HPE_INVALID_CHUNK_SIZE',
  ],
  'a head above the limit': [
    `HTTP/1.1 200 OK\r\nX: ${'a'.repeat(70_000)}\r\n\r\n`,
    'failed after sending: HPE_HEADER_OVERFLOW',
  ],
}

for (const [name, [wire, end]] of Object.entries(broken)) {
  test(`${name} breaks the call and its connection`, async (t) => {
    const upstream = await startRawUpstream(t, replies(wire))
    assert.equal(describeEnd(await upstream.send({}).ended), end)
    await upstream.connections[0]?.closed
  })
}

for (const [name, wire] of Object.entries({
  sized: sized('hello'),
  chunked: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
})) {
  test(`a ${name} reply closed at any byte is cut, or fails if its head is incomplete`, async (t) => {
    for (let at = 0; at < wire.length; at++) {
      const upstream = await startRawUpstream(t, ({ socket }) => {
        socket.once('data', () => socket.end(wire.slice(0, at)))
      })
      const hasHead = at >= wire.indexOf('\r\n\r\n') + 4
      assert.equal(
        describeEnd(await upstream.send({}).ended),
        hasHead ? 'cut: UPSTREAM_CLOSED' : 'failed after sending: UPSTREAM_CLOSED',
        `closed at byte ${at}`,
      )
    }
  })
}

test('a kept reply does not change while others arrive', async (t) => {
  const letters = ['a', 'b', 'c', 'd']
  const upstream = await startRawUpstream(
    t,
    replies(...letters.map((letter) => sized(letter.repeat(500_000)))),
  )
  const replied = letters.map((): Buffer[] => [])
  const calls = replied.map(
    (chunks) => upstream.send({}, { data: (chunk) => chunks.push(Buffer.from(chunk)) > 0 }).ended,
  )
  assert.deepEqual(
    (await Promise.all(calls)).map(describeEnd),
    letters.map(() => 'complete'),
  )
  const contents = replied.map((chunks) => Buffer.concat(chunks).toString())
  assert.deepEqual(
    contents.sort(),
    letters.map((letter) => letter.repeat(500_000)),
  )
})

test('a receiver that throws breaks only its own call', async (t) => {
  const upstream = await startRawUpstream(t, ({ socket }) => {
    socket.on('data', () => socket.write(sized('hello')))
  })
  const fault = () => {
    throw new Error('a defect')
  }
  assert.equal(describeEnd(await upstream.send({}, { head: fault }).ended), 'cut: a defect')
  assert.equal(describeEnd(await upstream.send({}, { data: fault }).ended), 'cut: a defect')
  assert.equal(describeEnd(await upstream.send({}).ended), 'complete')
})

test('a reset noticed by a write does not complete a body that ends with its connection', async (t) => {
  const upstream = await startRawUpstream(t, ({ socket }) => {
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\n\r\nhalf'))
  })
  const body = new Readable({ read() {} })
  body.push('first')
  const arrived = Promise.withResolvers<void>()
  // The call does not read, so the write notices the reset first, and the kernel reports it only once.
  const { call, ended, reply } = upstream.send({ body }, { data: () => arrived.resolve() !== undefined })
  await arrived.promise
  upstream.connections[0]?.socket.resetAndDestroy()
  await upstream.connections[0]?.closed
  body.push('second')
  await nextTurn()
  call.resume()
  assert.equal(describeEnd(await ended), 'cut: UPSTREAM_CLOSED')
  assert.equal(reply.bytes.toString(), 'half')
})
