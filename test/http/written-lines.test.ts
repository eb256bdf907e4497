import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'
import { writeParts } from '../../src/http/node-sockets.ts'
import { dateLine } from '../../src/http/outgoing-reply.ts'
import { serialiseHeaders } from '../../src/http/raw-headers.ts'
import { test } from '../support/suite.ts'

test('header lines are written unchanged, with every byte of Latin-1', () => {
  assert.equal(serialiseHeaders(['A', 'caf\xe9', 'a', '']), 'A: caf\xe9\r\na: \r\n')
})

for (const value of ['a\r\nB: 1', 'a\nB', 'a\rB', 'a\0', 'a\u010d\u010aB: 1', '\x7f']) {
  test(`a value that would change its meaning on the wire is refused: ${JSON.stringify(value)}`, () => {
    assert.throws(() => serialiseHeaders(['A', value]), /cannot be sent/)
    assert.throws(() => serialiseHeaders([value, 'a']), /cannot be sent/)
  })
}

test('the Date header follows the clock, even if it was set back', () => {
  const hourMs = 3_600_000
  for (const nowMs of [2 * hourMs, 2 * hourMs + 999, hourMs, hourMs + 1_000])
    assert.equal(dateLine(nowMs), `Date: ${new Date(nowMs).toUTCString()}\r\n`)
})

/** Two ends of a real connection. The far end is not reading yet. */
async function openPair(t: TestContext) {
  const server = createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  const accepted = once(server, 'connection')
  const near = connect(port, '127.0.0.1')
  const [far] = (await accepted) as [Socket]
  await once(near, 'ready')
  t.after(() => {
    near.destroy()
    far.destroy()
    server.close()
  })
  return { near, far }
}

async function readToEnd(far: Socket): Promise<string> {
  let text = ''
  far.setEncoding('latin1')
  far.on('data', (piece: string) => {
    text += piece
  })
  far.resume()
  await once(far, 'end')
  return text
}

test('head, chunk and what follows are written as one, in any combination', async (t) => {
  const { near, far } = await openPair(t)
  const parts = [
    ['head\r\n\r\n', 'body', '\r\n0\r\n\r\n'],
    ['', 'body alone', ''],
    ['head alone', '', ''],
    ['h\u00e9ad', '\u00ff\u0000', 'behind'],
    ['long ', 'x'.repeat(12_000), ' behind'],
  ] as const
  for (const [head, chunk, after] of parts) writeParts(near, head, Buffer.from(chunk, 'latin1'), after)
  near.end()
  assert.equal(await readToEnd(far), parts.flat().join(''))
})
