import assert from 'node:assert/strict'
import { ByteBudget } from '../../src/gateway/key-shares.ts'
import { type Received, receiveBody } from '../../src/gateway/read.ts'
import type { Exchange } from '../../src/http/exchange.ts'
import type { BodyReceiver } from '../../src/http/incoming-request.ts'
import { Listeners } from '../../src/http/outgoing-reply.ts'
import { type Denial, refuse } from '../../src/kernel/errors.ts'
import { withDeadline } from '../support/deadline.ts'
import { test } from '../support/suite.ts'

interface Conditions {
  readonly checkKey?: () => Promise<Denial | null>
  readonly memoryBytes?: number
  readonly looker?: { write(): Promise<void> | null }
  monotonicMs?(): number
}

/** A body that comes as the test says. */
function begin(
  idleTimeoutMs: number,
  {
    checkKey,
    looker = { write: () => null },
    memoryBytes = MEMORY_BYTES,
    monotonicMs = () => 0,
  }: Conditions = {},
) {
  let sink: BodyReceiver | null = null
  let paused = 0
  const whenClosed = new Listeners()
  const req = {
    receive(given: BodyReceiver) {
      sink = given
    },
    release() {
      sink = null
    },
    pause() {
      paused += 1
    },
    resume() {
      paused -= 1
    },
  }
  const res = { destroyed: false, closed: false, whenClosed }
  const memory = new ByteBudget(memoryBytes)
  const received = receiveBody(
    { req, res } as unknown as Exchange,
    { memory, times: { idleTimeoutMs, bytesPerSecondMin: 1_000, monotonicMs } },
    { share: { name: 'k', calls: 0 }, checkKey: checkKey ?? null },
    looker,
  )
  return {
    memory,
    isPaused: () => paused > 0,
    data(bytes: string | Buffer) {
      if (sink?.data(Buffer.from(bytes)) === false) req.pause()
    },
    end: () => sink?.end([]),
    leave: () => whenClosed.fire(),
    received: withDeadline(received, () => 'the body is still waited for'),
  }
}

function textOf(received: Received): string {
  assert.ok(received.kind === 'received')
  return String(received.body.bytes())
}

const LONG_MS = 60_000
const MEMORY_BYTES = 100_000
const NO_KEY: Denial = { refusal: refuse('invalid_api_key', 'No.'), balanceNanos: null }
const nextTurn = () => new Promise((resolve) => setImmediate(resolve))

test('a body that comes with its head is taken in at once', async () => {
  const body = begin(LONG_MS)
  body.data('all of it')
  body.end()
  assert.equal(textOf(await body.received), 'all of it')
})

test('a body that comes in pieces is waited for', async () => {
  const body = begin(LONG_MS)
  body.data('one ')
  await nextTurn()
  body.data('and two')
  body.end()
  assert.equal(textOf(await body.received), 'one and two')
})

for (const first of ['', 'half']) {
  test(`a body that stops arriving after "${first}" is refused`, async () => {
    const body = begin(10)
    body.data(first)
    const received = await body.received
    assert.equal(received.kind === 'refused' && received.refusal.code, 'request_timeout')
  })

  test(`a client that leaves after "${first}" is seen to have left`, async () => {
    const body = begin(LONG_MS)
    body.data(first)
    await nextTurn()
    body.leave()
    assert.equal((await body.received).kind, 'client_left')
  })
}

test('a body that comes slowly with a key that may not send it is refused, and no byte of it is kept', async () => {
  const body = begin(LONG_MS, { checkKey: () => Promise.resolve(NO_KEY) })
  body.data('half')
  const received = await body.received
  assert.equal(received.kind === 'refused' && received.refusal.code, 'invalid_api_key')
  assert.equal(body.memory.takenBytes, 0)
})

test('a byte now and then is no silence, and is refused all the same', async () => {
  let nowMs = 0
  const body = begin(LONG_MS, { monotonicMs: () => nowMs })
  await nextTurn()
  body.data(Buffer.alloc(60_000))
  nowMs = LONG_MS
  body.data('a')
  for (let i = 0; i < 2; i++) {
    nowMs += 40_000
    body.data('a')
  }
  const received = await body.received
  assert.ok(received.kind === 'refused')
  assert.equal(received.refusal.code, 'request_timeout')
  assert.equal(received.refusal.close, true)
  assert.match(received.refusal.message, /too slowly/)
})

test('a body for which there is no memory is refused, to be sent again, and no byte of it is kept', async () => {
  const body = begin(LONG_MS)
  for (let i = 0; i < 17; i++) body.data(Buffer.alloc(64 * 1024))
  const received = await body.received
  assert.ok(received.kind === 'refused')
  assert.equal(received.refusal.code, 'no_memory')
  assert.equal(body.memory.takenBytes, 0)
})
