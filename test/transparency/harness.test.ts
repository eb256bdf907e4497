import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { compare } from '../support/compare.ts'
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

  test('a plain TCP pipe passes the comparison', async () => {
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
    test(`the comparison notices ${name}`, async () => {
      await assert.rejects(throughPipe(mangle), assert.AssertionError)
    })
  }
})
