import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { mock } from 'node:test'
import { nextTurn, withDeadline } from '../support/deadline.ts'
import { test } from '../support/suite.ts'
import { type Accepted, describeEnd, startRawUpstream } from './raw-upstream.ts'

const sized = (lines = '') => `HTTP/1.1 200 OK\r\n${lines}Content-Length: 2\r\n\r\nok`

const always =
  (reply: string) =>
  ({ socket }: Accepted) =>
    socket.on('data', () => socket.write(reply))

const notReused: Record<string, readonly [method: string, reply: string]> = {
  'Connection: close': ['POST', sized('Connection: close\r\n')],
  'HTTP/1.0': ['POST', 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok'],
  'a keep-alive timeout of two seconds': ['POST', sized('Keep-Alive: timeout=2\r\n')],
  'a 204 with a length': ['POST', 'HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n'],
  'a reply to HEAD': ['HEAD', 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\n'],
  'a reply to HEAD without a length': ['HEAD', 'HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\n'],
  'a 304 to HEAD': ['HEAD', 'HTTP/1.1 304 Not Modified\r\nKeep-Alive: timeout=60\r\n\r\n'],
  'a reply to HEAD with its body': ['HEAD', sized()],
  'bytes behind the reply': ['POST', `${sized()}HTTP`],
  'a whole reply behind the reply': ['POST', `${sized()}HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n`],
}

for (const [name, [method, reply]] of Object.entries(notReused)) {
  test(`after ${name}, the connection is not reused`, async (t) => {
    const upstream = await startRawUpstream(t, always(reply))
    for (let round = 1; round <= 3; round++) {
      assert.equal(describeEnd(await upstream.send({ method }).ended), 'complete')
      assert.equal(upstream.connections.length, round)
    }
  })
}

for (const [name, tail] of Object.entries({
  'a byte': 'H',
  'a whole reply': sized(),
  'half a head': 'HTTP/1.1 200 OK\r\nContent-Le',
  'bytes that are not HTTP': '\0\0\0',
})) {
  for (const when of ['behind a reply', 'on an idle connection'] as const) {
    test(`${name} ${when} is logged as an error, and no idle connection is reused`, async (t) => {
      const reply = sized('Keep-Alive: timeout=600\r\n')
      let isOutOfStep = false
      const upstream = await startRawUpstream(t, ({ socket }) => {
        socket.on('data', () => socket.write(isOutOfStep ? reply + tail : reply))
      })
      await Promise.all(Array.from({ length: 5 }, () => upstream.send({}).ended))
      assert.equal(upstream.connections.length, 5)
      assert.deepEqual(upstream.logged, [])

      isOutOfStep = true
      if (when === 'behind a reply') assert.equal(describeEnd(await upstream.send({}).ended), 'complete')
      else upstream.connections[2]?.socket.write(tail)
      isOutOfStep = false
      await Promise.race(upstream.connections.map(({ closed }) => closed))
      const old = [...upstream.connections]
      assert.equal(describeEnd(await upstream.send({}).ended), 'complete')
      assert.equal(upstream.connections.length, 6)
      await withDeadline(Promise.all(old.map(({ closed }) => closed)), () => 'idle connections stay open')
      assert.deepEqual(upstream.logged, [
        'error: upstream sent bytes without a request; they were dropped, and its idle connections were closed',
      ])
    })
  }
}

test('unsolicited bytes on an idle connection leave calls in flight and their connections', async (t) => {
  const upstream = await startRawUpstream(t, (accepted) => {
    accepted.socket.on('data', (chunk) => {
      if (!chunk.includes('/slow')) accepted.socket.write(sized())
    })
  })
  const slow = upstream.send({ target: '/slow' })
  await upstream.send({}).ended
  const [onSlow, idle] = upstream.connections
  assert.ok(onSlow !== undefined && idle !== undefined)
  idle.socket.write('H')
  await idle.closed
  onSlow.socket.write(sized())
  assert.equal(describeEnd(await slow.ended), 'complete')
  assert.equal(describeEnd(await upstream.send({}).ended), 'complete')
  assert.equal(upstream.connections.length, 2)
})

for (const [name, disturb] of Object.entries({
  'a byte': ({ socket }: Accepted) => socket.write('H'),
  'a whole reply': ({ socket }: Accepted) => socket.write(sized()),
  'its end': ({ socket }: Accepted) => socket.end(),
  'a reset': ({ socket }: Accepted) => socket.resetAndDestroy(),
})) {
  test(`${name} on an idle connection closes it, even while the next call begins`, async (t) => {
    const upstream = await startRawUpstream(t, always(sized('X: own\r\n')))
    for (let round = 0; round < 10; round++) {
      await upstream.send({}).ended
      const accepted = upstream.connections.at(-1) ?? assert.fail()
      disturb(accepted)
      if (round % 2 === 0) await accepted.closed
      else await new Promise((resolve) => setImmediate(resolve))
      const { ended, reply } = upstream.send({})
      assert.equal(describeEnd(await ended), 'complete')
      assert.deepEqual(reply.lines, ['200 OK X|own|Content-Length|2'])
      assert.equal(upstream.connections.at(-1)?.received().split('POST ').length, 2)
    }
  })
}

test('an idle connection closes after four seconds, or two seconds before upstream’s timeout', async (t) => {
  for (const [lines, seconds] of [
    ['', 4],
    ['Keep-Alive: timeout=9\r\n', 7],
  ] as const) {
    const timers = mock.timers
    const upstream = await startRawUpstream(t, always(sized(lines)))
    let nowMs = 1_000
    const clock = t.mock.method(performance, 'now', () => nowMs)
    timers.enable({ apis: ['setTimeout'] })
    try {
      await upstream.send({}).ended
      const [accepted] = upstream.connections
      let isClosed = false
      accepted?.closed.then(() => {
        isClosed = true
      })
      const pass = async (ms: number) => {
        nowMs += ms
        timers.tick(ms)
        for (let turn = 0; turn < 10; turn++) await nextTurn()
      }
      for (let second = 1; second < seconds; second++) await pass(1_000)
      assert.equal(isClosed, false)
      await pass(1_000)
      await accepted?.closed
    } finally {
      timers.reset()
      clock.mock.restore()
    }
  }
})

test('an aborted call ends at once in any state, and upstream sees no complete request', async (t) => {
  const sawFirst = Promise.withResolvers<void>()
  const upstream = await startRawUpstream(t, (accepted) => {
    accepted.saw('first').then(sawFirst.resolve, () => {})
  })
  const connecting = upstream.send({ body: [Buffer.from('whole')] })
  connecting.call.abandon()
  assert.equal(describeEnd(await connecting.ended), 'abandoned before sending')

  const body = new Readable({ read() {} })
  body.push('first')
  const uploading = upstream.send({ body })
  await sawFirst.promise
  uploading.call.abandon()
  assert.equal(describeEnd(await uploading.ended), 'abandoned after sending')
  for (const accepted of upstream.connections) {
    await accepted.closed
    assert.doesNotMatch(accepted.received(), /whole|\r\n0\r\n/)
  }
})

test('a destroyed pool closes idle connections, cuts calls and refuses new ones', async (t) => {
  const upstream = await startRawUpstream(t, always('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf'))
  const arrived = Promise.withResolvers<void>()
  const cut = upstream.send({}, { data: () => arrived.resolve() === undefined })
  await arrived.promise
  const waiting = upstream.send({})
  upstream.pool.destroy()
  assert.equal(describeEnd(await cut.ended), 'cut: UPSTREAM_DESTROYED')
  assert.equal(describeEnd(await waiting.ended), 'failed before sending: UPSTREAM_DESTROYED')
  assert.equal(describeEnd(await upstream.send({}).ended), 'failed before sending: UPSTREAM_DESTROYED')
  await upstream.connections[0]?.closed
})
