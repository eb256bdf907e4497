import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import type { UpstreamRequest } from '../../src/http/upstream-call.ts'
import { test } from '../support/suite.ts'
import { describeEnd, startRawUpstream } from './raw-upstream.ts'

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const head = (method: string, lines: string) =>
  `${method} /v1/x HTTP/1.1\r\nhost: up\r\nconnection: keep-alive\r\n${lines}`
const large = 'x'.repeat(20_000)
const many = Array.from({ length: 40 }, (_, at) => Buffer.alloc(30_000, 97 + (at % 26)))

const requests: Record<string, readonly [Partial<UpstreamRequest>, string]> = {
  'a GET without a body': [{ method: 'GET' }, head('GET', '\r\n')],
  'a POST without a body': [{}, head('POST', 'content-length: 0\r\n\r\n')],
  'a DELETE without a body': [{ method: 'DELETE' }, head('DELETE', '\r\n')],
  'header lines in their case, order and number': [
    { headers: ['B', '1', 'a', '', 'b', '2', 'A', 'caf\xe9\t '] },
    head('POST', 'B: 1\r\na: \r\nb: 2\r\nA: caf\xe9\t \r\ncontent-length: 0\r\n\r\n'),
  ],
  'a small body, whose length goes last': [
    { headers: ['X', '1'], lengthBytes: 5, body: [Buffer.from('h\xffllo', 'latin1')] },
    head('POST', 'X: 1\r\ncontent-length: 5\r\n\r\nh\xffllo'),
  ],
  'a small body without a length given': [
    { body: [Buffer.from('hello')] },
    head('POST', 'content-length: 5\r\n\r\nhello'),
  ],
  'a GET with a body': [
    { method: 'GET', body: [Buffer.from('hello')] },
    head('GET', 'content-length: 5\r\n\r\nhello'),
  ],
  'a large body': [{ body: [Buffer.from(large)] }, head('POST', `content-length: 20000\r\n\r\n${large}`)],
  'a body in pieces': [
    { body: many },
    head('POST', `content-length: 1200000\r\n\r\n${Buffer.concat(many).toString()}`),
  ],
}

for (const [name, [parts, wire]] of Object.entries(requests)) {
  test(`${name} is written unchanged`, async (t) => {
    const upstream = await startRawUpstream(t, async (accepted) => {
      await accepted.saw(wire)
      accepted.socket.write(OK)
    })
    const { ended } = upstream.send(parts)
    assert.equal(describeEnd(await ended), 'complete')
    assert.equal(upstream.connections[0]?.received(), wire)
  })
}

const streams: Record<string, readonly [string[], number | null, string]> = {
  'chunked if no length is given': [
    ['ab', 'cde'],
    null,
    'transfer-encoding: chunked\r\n\r\n2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n',
  ],
  'unchanged if its length is given': [['ab', 'cde'], 5, 'content-length: 5\r\n\r\nabcde'],
  'as no body if it is empty': [[], null, 'content-length: 0\r\n\r\n'],
}

for (const [name, [pieces, lengthBytes, wire]] of Object.entries(streams)) {
  test(`a stream is sent ${name}`, async (t) => {
    const upstream = await startRawUpstream(t, async (accepted) => {
      await accepted.saw(wire)
      accepted.socket.write(OK)
    })
    const body = Readable.from(pieces.map((piece) => Buffer.from(piece)))
    assert.equal(describeEnd(await upstream.send({ lengthBytes, body }).ended), 'complete')
    assert.equal(upstream.connections[0]?.received(), head('POST', wire))
  })
}

const unsendable: Record<string, Partial<UpstreamRequest>> = {
  'a line break in a value': { headers: ['X', 'a\r\nY: b'] },
  'a character that one byte would make a line break': { headers: ['X', 'a\u010aY: b'] },
  'a NUL in a value': { headers: ['X', 'a\0'] },
  'a line break in a name': { headers: ['X: 1\r\nY', 'a'] },
  'a blank in the target': { target: '/a HTTP/1.1' },
  'a target that is not a path': { target: '*' },
  'a method that is not a token': { method: 'GET /' },
}

for (const [name, parts] of Object.entries(unsendable)) {
  test(`a request with ${name} is refused before any connection`, async (t) => {
    const upstream = await startRawUpstream(t, () => {})
    assert.equal(describeEnd(await upstream.send(parts).ended), 'failed before sending: UPSTREAM_UNSENDABLE')
    assert.equal(upstream.connections.length, 0)
  })
}

for (const [name, pieces] of Object.entries({
  shorter: ['ab'],
  longer: ['abc', 'def'],
  'less, namely nothing,': [],
})) {
  test(`a stream that is ${name} than its length does not end as complete`, async (t) => {
    const upstream = await startRawUpstream(t, () => {})
    const body = Readable.from(pieces.map((piece) => Buffer.from(piece)))
    const { ended } = upstream.send({ lengthBytes: 5, body })
    assert.equal(describeEnd(await ended), 'failed while sending: UPSTREAM_UNSENDABLE')
    const [accepted] = upstream.connections
    await accepted?.closed
    assert.ok((accepted?.received() ?? '').length < head('POST', 'content-length: 5\r\n\r\nabcde').length)
  })
}

test('a chunked stream that fails closes the connection without a last chunk, and the call fails with its error', async (t) => {
  const sawFirst = Promise.withResolvers<void>()
  const upstream = await startRawUpstream(t, (accepted) => {
    accepted.saw('first').then(sawFirst.resolve, () => {})
  })
  const body = new Readable({ read() {} })
  body.push('first')
  const { ended } = upstream.send({ body })
  await sawFirst.promise
  const cause = Object.assign(new Error('it broke'), { code: 'BROKE' })
  body.destroy(cause)
  assert.equal(describeEnd(await ended), 'failed while sending: BROKE')
  const [accepted] = upstream.connections
  await accepted?.closed
  assert.doesNotMatch(accepted?.received() ?? '', /\r\n0\r\n/)
})
