import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { assertOwnAnswer, startPair } from '../support/pair.ts'
import { connect } from '../support/raw-client.ts'
import { closeAfter, test } from '../support/suite.ts'
import { surfaceOf } from '../support/surfaces.ts'
import type { Step } from '../support/upstream-script.ts'
import { message, sized } from '../support/wire-bytes.ts'
import { headerValues } from '../support/wire-message.ts'

const pair = await startPair()
closeAfter(pair)

/** Answers the second of two pipelined calls first, if the gateway makes both at once. */
function answerSecondFirst(second: readonly Step[]): void {
  const answered = Promise.withResolvers<void>()
  pair.upstream.answer((request) => {
    if (headerValues(request.headerLines, 'x-mark')[0] === 'first') {
      const pause = Promise.race([answered.promise, turns(1_000)])
      return [{ pause }, { send: sized('HTTP/1.1 200 OK', [], 'first') }]
    }
    // A few more turns, so that the gateway has read the whole reply while the first call is open.
    request.whenAnswered.then(() => turns(50)).then(answered.resolve)
    return second
  })
}

test('an interim reply to a pipelined call never mixes with other replies', async () => {
  const surface = surfaceOf('chat')
  const hints = message('HTTP/1.1 103 Early Hints', ['Link: </a>'])
  answerSecondFirst([{ send: hints }, { send: sized('HTTP/1.1 200 OK', [], 'second') }])
  const call = (mark: string) => pair.request(surface, { lines: [`x-mark: ${mark}`], body: surface.jsonBody })
  const client = await connect(pair.gateway)
  await client.send(Buffer.concat([call('first'), call('second')]))
  const first = await client.read({ method: 'POST' })
  assert.deepEqual([first.interim, first.body.toString()], [[], 'first'])
  const second = await client.read({ method: 'POST' })
  assert.equal(second.body.toString(), 'second')
  assertOwnAnswer(await client.request(pair.ownCall(surface, 'third')), 'third')
  client.leave()
})

test('100 Continue for a pipelined call precedes its reply and never mixes with others', async () => {
  const surface = surfaceOf('chat')
  answerSecondFirst([{ send: sized('HTTP/1.1 200 OK', [], 'second') }])
  const first = pair.request(surface, { lines: ['x-mark: first'], body: surface.jsonBody })
  const expecting = ['x-mark: second', 'Expect: 100-continue']
  const second = pair.request(surface, { lines: expecting, body: surface.jsonBody })
  const client = await connect(pair.gateway)
  // The client does not wait for 100 Continue, as it may.
  await client.send(Buffer.concat([first, second]))
  const one = await client.read({ method: 'POST' })
  assert.deepEqual([one.interim, one.body.toString()], [[], 'first'])
  const two = await client.read({ method: 'POST' })
  assert.equal(two.body.toString(), 'second')
  assert.deepEqual(
    two.interim.map(({ statusLine }) => statusLine),
    ['HTTP/1.1 100 Continue'],
  )
  assertOwnAnswer(await client.request(pair.ownCall(surface, 'third')), 'third')
  client.leave()
})

test('a pipelined call that breaks while it waits is broken for the client', async () => {
  const surface = surfaceOf('messages')
  const cut = message('HTTP/1.1 200 OK', ['Transfer-Encoding: chunked'], '5\r\nthis is cut')
  answerSecondFirst([{ send: cut }, { close: true }])
  const call = (mark: string) =>
    pair.request(surface, { lines: [`x-mark: ${mark}`], body: surface.streamingBody })
  const client = await connect(pair.gateway)
  await client.send(Buffer.concat([call('first'), call('second')]))
  assert.equal((await client.read({ method: 'POST' })).body.toString(), 'first')
  const second = await client.read({ method: 'POST' })
  assert.equal(second.ended, 'cut')
  assert.ok('this is cut'.startsWith(second.body.toString()))
  client.leave()
})

test('a pipelined call with a broken reply closes the connection, and the next one is not answered', async () => {
  const surface = surfaceOf('messages')
  pair.upstream.answer((request) =>
    headerValues(request.headerLines, 'x-mark')[0] === 'broken'
      ? [{ send: message('HTTP/1.1 200 OK', ['Content-Length: 50'], 'part') }, { close: true }]
      : [{ send: sized('HTTP/1.1 200 OK', [], 'whole') }],
  )
  const call = (mark: string) =>
    pair.request(surface, { lines: [`x-mark: ${mark}`], body: surface.streamingBody })
  const client = await connect(pair.gateway)
  await client.send(Buffer.concat([call('broken'), call('next')]))
  const reply = await client.read({ method: 'POST' })
  assert.equal(reply.ended, 'cut')
  assert.equal(reply.body.toString(), 'part')
  client.leave()
})

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve))
}
