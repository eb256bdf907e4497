import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { compare } from '../support/compare.ts'
import { connect, exchange } from '../support/raw-client.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { after, before, describe, test } from '../support/suite.ts'
import { type Mangle, startPipe } from '../support/tcp-pipe.ts'
import { chunked, message, sized } from '../support/wire-bytes.ts'

const request = sized(
  'POST /v1/x?a=%zz HTTP/1.1',
  ['Host: h', 'X-One: 1', 'x-two: 2'],
  Buffer.from([0, 1, 254, 255]),
)
const reply = () =>
  Buffer.concat([
    message('HTTP/1.1 103 Early Hints', ['Link: </a>']),
    chunked('HTTP/1.1 200 Fine by me', ['X-A: 1', 'x-a: 2'], ['ab', 'c\xe9'], ['X-Sum: 9']),
  ])

const swap = (from: string, to: string) => (bytes: Buffer) =>
  Buffer.from(bytes.toString('latin1').replace(from, to), 'latin1')

describe('the comparison itself', () => {
  let upstream: ScriptedUpstream
  before(async () => {
    upstream = await ScriptedUpstream.start()
  })
  after(() => upstream.close())

  const throughPipe = async (mangle: Mangle) => {
    const pipe = await startPipe(upstream, mangle)
    try {
      return await compare({
        upstream,
        gateway: pipe,
        addsOwnLines: false,
        request,
        script: () => [{ send: reply() }],
      })
    } finally {
      await pipe.close()
    }
  }

  test('a plain pipe passes it', async () => {
    const { direct, through } = await throughPipe({})
    assert.deepEqual(through.reply.rawBody, direct.reply.rawBody)
    assert.deepEqual(direct.reply.chunks, [2, 2])
    assert.deepEqual(direct.received.body, Buffer.from([0, 1, 254, 255]))
  })

  const faults: Record<string, Mangle> = {
    'the case of a reply header': { toClient: swap('x-a: 2', 'X-A: 2') },
    'the order of reply headers': { toClient: swap('X-A: 1\r\nx-a: 2', 'x-a: 2\r\nX-A: 1') },
    'two reply headers joined': { toClient: swap('X-A: 1\r\nx-a: 2', 'X-A: 1, 2') },
    'an added reply header': { toClient: swap('X-A: 1', 'Date: now\r\nX-A: 1') },
    'a reason phrase': { toClient: swap('Fine by me', 'OK') },
    'a body byte': { toClient: swap('c\xe9', 'ce') },
    'a trailer': { toClient: swap('X-Sum: 9\r\n', '') },
    'a lost interim reply': { toClient: swap('HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n', '') },
    'a reply framed by its length': {
      toClient: swap(
        'Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n2\r\nc\xe9\r\n0\r\n',
        'Content-Length: 4\r\n\r\nabc\xe9',
      ),
    },
    'the case of a request header': { toUpstream: swap('X-One', 'x-one') },
    'the order of request headers': { toUpstream: swap('X-One: 1\r\nx-two: 2', 'x-two: 2\r\nX-One: 1') },
    'an added request header': { toUpstream: swap('X-One: 1', 'X-One: 1\r\nUser-Agent: me') },
    'a target that was repaired': { toUpstream: swap('%zz', '%25zz') },
    'a request body byte': { toUpstream: swap('\xfe', '\xfd') },
    'a request body without its length': {
      toUpstream: swap(
        'Content-Length: 4\r\n\r\n\x00\x01\xfe\xff',
        'Transfer-Encoding: chunked\r\n\r\n4\r\n\x00\x01\xfe\xff\r\n0\r\n\r\n',
      ),
    },
  }
  for (const [name, mangle] of Object.entries(faults)) {
    test(`it notices ${name}`, async () => {
      await assert.rejects(throughPipe(mangle), assert.AssertionError)
    })
  }
})

describe('the raw client', () => {
  let upstream: ScriptedUpstream
  before(async () => {
    upstream = await ScriptedUpstream.start()
  })
  after(() => upstream.close())

  test('tells a complete, a connection-delimited and a cut reply apart', async () => {
    const ended = async (bytes: Buffer, last: { close: true } | { reset: true }) => {
      upstream.queue([{ send: bytes }, last])
      return (await exchange(upstream, message('GET / HTTP/1.1', ['Host: h']))).ended
    }
    const whole = chunked('HTTP/1.1 200 OK', [], ['abc'])
    assert.equal(await ended(whole, { close: true }), 'complete')
    assert.equal(await ended(whole.subarray(0, -1), { close: true }), 'cut')
    assert.equal(await ended(whole.subarray(0, -2), { reset: true }), 'cut')
    assert.equal(
      await ended(message('HTTP/1.1 200 OK', ['Content-Length: 5'], 'abc'), { close: true }),
      'cut',
    )
    assert.equal(await ended(message('HTTP/1.1 200 OK', [], 'abc'), { close: true }), 'closed')
    assert.equal(await ended(message('HTTP/1.1 200 OK', [], 'abc'), { reset: true }), 'cut')
  })

  test('says what it had seen when time is up', async () => {
    upstream.queue([{ send: message('HTTP/1.1 200 OK', ['Content-Length: 5'], 'abc') }])
    const call = exchange(upstream, message('GET / HTTP/1.1', ['Host: h']), { deadlineMs: 50 })
    await assert.rejects(call, /HTTP\/1\.1 200 OK.*Content-Length: 5.*3 body bytes.*abc/)
  })

  test('keeps a connection for the next request and reads pipelined replies in order', async () => {
    const connection = await connect(upstream)
    upstream.queue(
      [{ send: sized('HTTP/1.1 200 OK', [], 'one') }],
      [{ send: sized('HTTP/1.1 201 OK', [], 'two') }],
    )
    const get = message('GET / HTTP/1.1', ['Host: h'])
    await connection.send(Buffer.concat([get, get]))
    assert.equal((await connection.read()).body.toString(), 'one')
    assert.equal((await connection.read()).statusLine, 'HTTP/1.1 201 OK')
    assert.equal((await connection.request(get)).body.toString(), '{}')
    const [first, second] = upstream.requests.slice(-2)
    assert.equal(first?.connection, second?.connection)
    connection.leave()
  })

  test('reads any slicing of a reply to the same message', async () => {
    const bytes = reply()
    for (let cut = 1; cut < bytes.length; cut++) {
      upstream.queue([{ send: bytes.subarray(0, cut) }, { send: bytes.subarray(cut) }])
      const got = await exchange(upstream, message('GET / HTTP/1.1', ['Host: h']))
      assert.equal(got.ended, 'complete')
      assert.equal(got.body.toString('latin1'), 'abc\xe9')
      assert.deepEqual(got.trailerLines, ['X-Sum: 9'])
      assert.deepEqual(got.interim, [{ statusLine: 'HTTP/1.1 103 Early Hints', headerLines: ['Link: </a>'] }])
    }
  })

  test('sends slices that arrive one by one and the upstream puts them together', async () => {
    const connection = await connect(upstream)
    await connection.request([...request].map((byte) => Buffer.from([byte])))
    const received = upstream.requests.at(-1)
    assert.equal(received?.requestLine, 'POST /v1/x?a=%zz HTTP/1.1')
    assert.deepEqual(received?.headerLines, ['Host: h', 'X-One: 1', 'x-two: 2', 'Content-Length: 4'])
    assert.deepEqual(received?.body, Buffer.from([0, 1, 254, 255]))
    connection.leave()
  })
})

describe('the scripted upstream', () => {
  test('tells when the peer leaves and that the request was not whole', async () => {
    const upstream = await ScriptedUpstream.start()
    const connection = await connect(upstream)
    const arrival = upstream.nextRequest()
    await connection.send(message('POST / HTTP/1.1', ['Host: h', 'Content-Length: 9'], 'part'))
    const received = await arrival
    connection.leave()
    await received.whenPeerClosed
    await received.whenAnswered
    assert.equal(received.complete, false)
    assert.equal(received.body.toString(), 'part')
    await upstream.close()
  })
})
