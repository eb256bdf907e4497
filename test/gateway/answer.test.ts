import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { Writable } from 'node:stream'
import { Answer, figureLines, LAST_EVENT_BYTES_MAX } from '../../src/gateway/answer.ts'
import { ByteBudget } from '../../src/gateway/key-shares.ts'
import type { Exchange } from '../../src/http/exchange.ts'
import { OutgoingReply } from '../../src/http/outgoing-reply.ts'
import { type HeaderNames, headerNames } from '../../src/kernel/header-names.ts'
import { test } from '../support/suite.ts'

const head = { status: 200, reason: 'OK', headers: ['content-type', 'application/json'] }
const figures = { costNanos: 1_000n, listNanos: 1_000n, balanceNanos: null }

function openAnswer({ takes = true } = {}) {
  let sent = ''
  let passedMs = 7
  const socket = new Writable({
    write(chunk, _encoding, done) {
      sent += String(chunk)
      if (takes) done()
    },
  })
  const res = new OutgoingReply({
    socket: socket as unknown as Socket,
    method: 'POST',
    httpVersion: '1.1',
    keepAlive: true,
    expectsContinue: false,
    keepAliveSeconds: 75,
    nowMs: () => 0,
    reset() {},
    onFinished() {},
    raw: null,
  })
  const memory = new ByteBudget(2_000)
  const exchange = {
    ...{ req: { httpVersion: '1.1' }, res, method: 'POST', requestId: 'req_1' },
    names: headerNames('svc'),
  } as unknown as Exchange
  const answer = new Answer(exchange, { memory, keyName: 'k', upstreamMs: () => passedMs, onDrain() {} })
  const pass = (ms: number) => {
    passedMs += ms
  }
  return { answer, res, memory, pass, sent: () => sent }
}

test('a reply that is held back leaves as a whole, behind its figures', () => {
  const { answer, sent } = openAnswer()
  answer.begin(head, { when: 'whole' })
  answer.data(Buffer.from('{"a":'))
  answer.data(Buffer.from('1}'))
  assert.equal(sent(), '')
  assert.deepEqual([answer.bytesOut, answer.bytesHeld], [0, 7])
  answer.finish(figures, [])
  assert.match(
    sent(),
    /^HTTP\/1\.1 200 OK\r\n.*x-svc-cost-usd: 0\.000001\r\n.*\r\n\r\n7\r\n\{"a":1\}\r\n0\r\n\r\n$/s,
  )
  assert.deepEqual([answer.bytesOut, answer.bytesHeld], [7, 0])
})

test('a reply that is too large to be held streams, and its bytes are counted once', () => {
  const { answer, sent } = openAnswer()
  answer.begin(head, { when: 'whole' })
  answer.data(Buffer.alloc(900, 'a'))
  answer.data(Buffer.alloc(900, 'b'))
  assert.match(sent(), /\r\n\r\n384\r\na{900}\r\n384\r\nb{900}\r\n$/)
  assert.deepEqual([answer.bytesOut, answer.bytesHeld], [1_800, 0])
})

const upstreamMsIn = (text: string) => text.match(/x-svc-upstream-ms: \d+/g)

test('a reply that is held back says once how long upstream took, to its end', () => {
  const { answer, pass, sent } = openAnswer()
  answer.begin(head, { when: 'whole' })
  pass(10)
  answer.data(Buffer.from('{}'))
  pass(10)
  answer.finish(figures, [])
  assert.deepEqual(upstreamMsIn(sent()), ['x-svc-upstream-ms: 27'])
})

test('a stream says as a header how long upstream took to its headers, and as a trailer to its end', () => {
  for (const when of ['after', 'whole'] as const) {
    const { answer, pass, sent } = openAnswer()
    answer.begin(head, { when })
    pass(10)
    // The reply that should have been held is too large for that.
    answer.data(Buffer.alloc(2_000))
    pass(10)
    answer.finish(figures, [])
    const [top = '', ...body] = sent().split('\r\n\r\n')
    assert.deepEqual(upstreamMsIn(top), ['x-svc-upstream-ms: 7'], when)
    assert.deepEqual(upstreamMsIn(body.join()), ['x-svc-upstream-ms: 27'], when)
  }
})

test('of a reply that was held for a client that left nothing goes out, and its memory is given back', () => {
  const { answer, res, memory } = openAnswer()
  answer.begin(head, { when: 'whole' })
  answer.data(Buffer.alloc(600))
  assert.equal(memory.tryTake(600, 'k'), false)
  res.connectionClosed()
  answer.data(Buffer.alloc(100))
  assert.deepEqual([answer.bytesOut, answer.bytesHeld], [0, 0])
  assert.equal(memory.tryTake(1_000, 'k'), true)
})

test('of a reply that is cut before its first byte, the head has come all the same', () => {
  const { answer, sent } = openAnswer()
  answer.begin(head, { when: 'whole' })
  answer.cut()
  assert.match(sent(), /^HTTP\/1\.1 200 OK\r\ncontent-type: application\/json\r\n[\s\S]*\r\n\r\n$/)
})

test('what comes behind the last event waits for a client that has no room', () => {
  const { answer, res } = openAnswer({ takes: false })
  answer.begin({ ...head, headers: ['content-type', 'text/event-stream'] }, { when: 'after' })
  const last = Buffer.from('data: [DONE]\n\n')
  assert.equal(answer.keepLast(Buffer.alloc(LAST_EVENT_BYTES_MAX)), true)
  assert.equal(answer.keepLast(last), false)
  assert.equal(answer.bytesOut, last.length + LAST_EVENT_BYTES_MAX)
  res.connectionClosed()
})

test('the balance is among the figures unless `headers.balance` is false', () => {
  const figures = { costNanos: 1n, listNanos: 2n, balanceNanos: 3n }
  const namesOf = (names: HeaderNames) => figureLines(names, figures, 4).filter((_, at) => at % 2 === 0)
  const others = ['x-svc-cost-usd', 'x-svc-list-cost-usd', 'x-svc-upstream-ms']
  assert.deepEqual(namesOf(headerNames('svc')), [...others, 'x-svc-balance-usd'])
  assert.deepEqual(namesOf(headerNames('svc', [], false)), others)
})
