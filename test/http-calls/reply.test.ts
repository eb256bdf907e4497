import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { Writable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { ByteBudget, ReservedBytes } from '../../src/calls/key-shares.ts'
import type { Exchange } from '../../src/http/exchange.ts'
import { Listeners, OutgoingReply } from '../../src/http/outgoing-reply.ts'
import { BUFFERED_BACKLOG_BYTES_MAX, OBSERVER_BACKLOG_BYTES_MAX, Reply } from '../../src/http-calls/reply.ts'
import { LAST_EVENT_BYTES_MAX } from '../../src/http-calls/reply-delivery.ts'
import { headerNames } from '../../src/kernel/header-names.ts'
import { test } from '../support/suite.ts'

const head = { status: 200, reason: 'OK', headers: ['content-type', 'application/json'] }
const streamHead = { ...head, headers: ['content-type', 'text/event-stream'] }
const figures = { costNanos: 1_000n, listNanos: 1_000n, balanceNanos: null }

function replyTo(res: object, memory: ByteBudget, upstreamMs = () => 0): Reply {
  const exchange = {
    ...{ req: { head: { httpVersion: '1.1' } }, res, method: 'POST', requestId: 'req_1' },
    names: headerNames('svc'),
  } as unknown as Exchange
  return new Reply(exchange, {
    ...{ reader: 'chat', objectReader: null, origin: null, balanceNanos: null, requestFigures: null },
    ...{ bufferJson: false, memory: new ReservedBytes(memory, 'k'), upstreamMs, nowMs: upstreamMs },
    ...{ onChunk() {}, onObject: null },
  })
}

function openReply({ takes = true } = {}) {
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
    owner: { nowMs: () => 0, reset() {}, replied() {} },
    raw: null,
  })
  const memory = new ByteBudget(2_000)
  const reply = replyTo(res, memory, () => passedMs)
  const pass = (ms: number) => {
    passedMs += ms
  }
  return { reply, res, memory, pass, sent: () => sent }
}

test('a buffered reply leaves as a whole, with its figures as headers', () => {
  const { reply, sent } = openReply()
  reply.head(head)
  reply.data(Buffer.from('{"a":'))
  reply.data(Buffer.from('1}'))
  assert.equal(sent(), '')
  assert.deepEqual([reply.bytesOut, reply.bytesBuffered], [0, 7])
  reply.finish(figures, [])
  assert.match(
    sent(),
    /^HTTP\/1\.1 200 OK\r\n.*x-svc-cost-usd: 0\.000001\r\n.*\r\n\r\n7\r\n\{"a":1\}\r\n0\r\n\r\n$/s,
  )
  assert.deepEqual([reply.bytesOut, reply.bytesBuffered], [7, 0])
})

test('a reply too large to buffer is streamed, and its bytes are counted once', () => {
  const { reply, sent } = openReply()
  reply.head(head)
  reply.data(Buffer.alloc(900, 'a'))
  reply.data(Buffer.alloc(900, 'b'))
  assert.match(sent(), /\r\n\r\n384\r\na{900}\r\n384\r\nb{900}\r\n$/)
  assert.deepEqual([reply.bytesOut, reply.bytesBuffered], [1_800, 0])
})

test('trailers of upstream pass, except names of ours and digests of a changed body', () => {
  for (const isChanged of [false, true]) {
    const { reply, sent } = openReply()
    reply.attach({ ended: new Promise<never>(() => {}), resume() {}, abandon() {} }, isChanged)
    reply.head(streamHead)
    reply.finish(figures, ['X-Sum', '1', 'Content-MD5', 'old', 'X-Svc-Cost-Usd', '9'])
    const trailers = sent().split('\r\n0\r\n').at(-1) ?? ''
    const passed = isChanged ? 'X-Sum: 1' : 'X-Sum: 1\r\nContent-MD5: old'
    assert.ok(trailers.startsWith(`${passed}\r\nx-svc-cost-usd: 0.000001\r\n`), trailers)
  }
})

test('only the last event of a stream waits for the figures', () => {
  const { reply, sent } = openReply()
  reply.head(streamHead)
  for (const data of ['{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}', '[DONE]'])
    reply.data(Buffer.from(`data: ${data}\n\n`))
  assert.match(sent(), /"usage":(?!.*DONE)/s)
  reply.finish(figures, [])
  assert.match(sent(), /\[DONE\]\n\n\r\n0\r\nx-svc-cost-usd/)
})

test('silence counts until the last content event', () => {
  const { reply, pass } = openReply()
  reply.head(streamHead)
  for (const finish of ['null', '"stop"']) {
    const choice = `{"index":0,"delta":{"content":"a"},"finish_reason":${finish}}`
    reply.data(Buffer.from(`data: {"choices":[${choice}]}\n\n`))
    pass(5_000)
    assert.equal(reply.times.silentMs, 5_000)
  }
})

test('nothing of a buffered reply is sent after the client left, and its memory is freed', () => {
  const { reply, res, memory } = openReply()
  reply.head(head)
  reply.data(Buffer.alloc(600))
  assert.equal(memory.tryReserve(600, 'k'), false)
  res.connectionClosed()
  reply.data(Buffer.alloc(100))
  assert.deepEqual([reply.bytesOut, reply.bytesBuffered], [0, 0])
  assert.equal(memory.tryReserve(1_000, 'k'), true)
})

test('bytes after the last event wait for a client that is not reading', () => {
  const { reply, res } = openReply({ takes: false })
  reply.head(streamHead)
  const last = Buffer.from('data: [DONE]\n\n')
  assert.equal(reply.data(last), true)
  assert.equal(reply.data(Buffer.alloc(LAST_EVENT_BYTES_MAX, '\n')), false)
  assert.equal(reply.bytesOut, last.length + LAST_EVENT_BYTES_MAX)
  res.connectionClosed()
})

/** A compressed reply to a client that reads or not. Without memory it is not buffered. */
function carried(contentType: string, { hasRoom = true, memoryBytes = 1e9 } = {}) {
  const [whenDrained, whenClosed] = [new Listeners(), new Listeners()]
  const res = { whenDrained, whenClosed, writeHead() {}, flushHead() {}, write: () => hasRoom }
  const reply = replyTo(res, new ByteBudget(memoryBytes))
  let resumes = 0
  let resumed = Promise.withResolvers<void>()
  const resume = () => {
    resumes += 1
    resumed.resolve()
    resumed = Promise.withResolvers()
  }
  reply.attach({ ended: new Promise<never>(() => {}), resume, abandon() {} }, false)
  reply.head({ ...head, headers: ['content-type', contentType, 'content-encoding', 'gzip'] })
  const drain = () => whenDrained.fire()
  return { reply, drain, nextResume: () => resumed.promise, resumes: () => resumes }
}

/** A document longer, when compressed, than the backlog of a buffered reply. */
function longDocument(): Buffer {
  const content = randomBytes(2 * BUFFERED_BACKLOG_BYTES_MAX).toString('base64')
  const usage = { prompt_tokens: 7, completion_tokens: 8, total_tokens: 15 }
  return gzipSync(JSON.stringify({ model: 'gpt-5.5', choices: [{ message: { content } }], usage }))
}

test('upstream waits for the meter of a buffered reply, which finds the usage at its end', async () => {
  const { reply, nextResume, resumes } = carried('application/json')
  const encoded = longDocument()
  let waits = 0
  for (let at = 0; at < encoded.length; at += 65_536) {
    if (reply.data(encoded.subarray(at, at + 65_536))) continue
    waits += 1
    await nextResume()
  }
  assert.ok(waits > 0)
  assert.equal(resumes(), waits)
  const metered = await reply.observed(true)
  assert.deepEqual(metered?.usage.parts[0]?.quantities, { input_tokens: 7, output_tokens: 8 })
})

test('upstream resumes when both the client and the meter have room', async () => {
  const encoded = longDocument()
  const first = carried('application/json', { hasRoom: false, memoryBytes: 1 })
  assert.equal(first.reply.data(encoded), false)
  await first.reply.observed(true)
  assert.equal(first.resumes(), 0, 'the client has no room')
  first.drain()
  assert.equal(first.resumes(), 1)

  const second = carried('application/json', { hasRoom: false, memoryBytes: 1 })
  assert.equal(second.reply.data(encoded), false)
  second.drain()
  assert.equal(second.resumes(), 0, 'the reader lags behind')
  await second.nextResume()
  assert.equal(second.resumes(), 1)
})

test('a reply that ends or is cut while the meter is behind is read as far as it arrived', async () => {
  for (const whole of [true, false]) {
    const { reply } = carried('application/json')
    assert.equal(reply.data(longDocument()), false)
    const metered = await reply.observed(whole)
    assert.equal(metered?.inputKnown, true)
  }
})

test('a stream waits for its meter only beyond the backlog', () => {
  const { reply } = carried('text/event-stream')
  const chunk = gzipSync(randomBytes(OBSERVER_BACKLOG_BYTES_MAX / 2), { level: 0 })
  assert.equal(reply.data(chunk), true)
  assert.equal(reply.data(chunk), false)
})
