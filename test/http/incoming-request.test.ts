import assert from 'node:assert/strict'
import { ConnectionMemory, IncomingRequest } from '../../src/http/incoming-request.ts'
import { test } from '../support/suite.ts'

const HEAD = {
  httpVersion: '1.1',
  headers: [],
  method: 'POST',
  target: '/',
  status: 0,
  reason: '',
  keepAlive: true,
  isUpgrade: false,
}
const SOURCE = {
  ...{ remoteAddress: '', isEncrypted: false, memory: new ConnectionMemory() },
  monotonicMs: () => 0,
  flowChanged() {},
  destroy() {},
}

const large = (byte: number) => Buffer.alloc(60_000, byte)

function keepAll(chunks: readonly Buffer[]): Buffer[] {
  const request = new IncomingRequest(HEAD, SOURCE)
  for (const chunk of chunks) request.arrived(chunk)
  const taken: Buffer[] = []
  request.receive({ data: (chunk) => taken.push(Buffer.from(chunk)) > 0, end() {}, broken() {} })
  return taken
}

test('waiting chunks do not change when their memory is reused', () => {
  const first = keepAll([large(1), large(2)])
  const second = keepAll([large(3), large(4)])
  assert.ok(Buffer.concat(first).equals(Buffer.concat([large(1), large(2)])))
  assert.ok(Buffer.concat(second).equals(Buffer.concat([large(3), large(4)])))
})

test('waiting chunks are delivered in order, as far as accepted, before later ones', () => {
  const request = new IncomingRequest(HEAD, SOURCE)
  const taken: Buffer[] = []
  let ended = 0
  request.arrived(Buffer.from('a'))
  request.arrived(large(1))
  request.receive({
    data(chunk) {
      taken.push(Buffer.from(chunk))
      return taken.length !== 1
    },
    end() {
      ended += 1
    },
    broken() {},
  })
  assert.equal(taken.length, 1)
  request.arrived(Buffer.from('z'))
  request.arrivedWhole()
  assert.equal(ended, 0)
  request.resume()
  assert.equal(ended, 1)
  assert.ok(Buffer.concat(taken).equals(Buffer.concat([Buffer.from('a'), large(1), Buffer.from('z')])))
})

/** A body that may be silent for a minute and needs 100 bytes a second. */
function timedBody(data: () => boolean = () => true) {
  let nowMs = 0
  const request = new IncomingRequest(HEAD, { ...SOURCE, monotonicMs: () => nowMs })
  const broken: (string | null)[] = []
  const receiver = { data, end() {}, broken: (why: string | null) => broken.push(why) }
  request.receive(receiver, { idleTimeoutMs: 60_000, bytesPerSecondMin: 100 })
  const pass = (ms: number) => {
    for (const untilMs = nowMs + ms; nowMs < untilMs; ) {
      nowMs += 1_000
      request.checkTimeouts(nowMs)
    }
  }
  return { request, broken, pass }
}

test('a body that is too slow on average is refused, however often the gateway pauses it', () => {
  const { request, broken, pass } = timedBody(() => false)
  for (let second = 0; second < 60; second += 10) {
    request.arrived(Buffer.alloc(100))
    request.resume()
    pass(10_000)
  }
  assert.match(broken[0] ?? '', /too slowly/)
})

test('time in which the gateway does not read the body does not count', () => {
  const { request, broken, pass } = timedBody(() => false)
  request.arrived(Buffer.alloc(10_000))
  pass(600_000)
  request.resume()
  pass(59_000)
  assert.deepEqual(broken, [])
})

test('a body that is silent for the idle time is refused, even if it was fast before', () => {
  const { request, broken, pass } = timedBody()
  pass(1_000)
  request.arrived(Buffer.alloc(100_000))
  pass(60_000)
  assert.deepEqual(broken, [])
  pass(1_000)
  assert.match(broken[0] ?? '', /^No byte/)
})
