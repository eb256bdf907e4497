import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import { createByteBudget } from '../../src/gateway/byte-budget.ts'
import { type Received, receiveBody } from '../../src/gateway/receive-body.ts'
import type { Exchange } from '../../src/http/exchange.ts'
import type { BodySink } from '../../src/http/incoming-request.ts'
import { Listeners } from '../../src/kernel/listeners.ts'
import { withDeadline } from '../support/deadline.ts'

/** A body that comes when the test says so. */
function begin(idleTimeoutMs: number) {
  let sink: BodySink | null = null
  const whenClosed = new Listeners()
  const req = {
    receive(given: BodySink) {
      sink = given
    },
    release() {
      sink = null
    },
  }
  const res = { destroyed: false, closed: false, whenClosed }
  const received = receiveBody({ req, res } as unknown as Exchange, {
    memory: createByteBudget(1_000),
    tempDir: tmpdir(),
    idleTimeoutMs,
    look: () => null,
  })
  return {
    data: (text: string) => sink?.data(Buffer.from(text)),
    end: () => sink?.end(),
    leave: () => whenClosed.tell(),
    received: withDeadline(received, () => 'the body is still waited for'),
  }
}

function textOf(received: Received): string {
  assert.ok(received.kind === 'received')
  return String(received.body.bytes())
}

const LONG_MS = 60_000
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
