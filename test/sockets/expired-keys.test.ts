import assert from 'node:assert/strict'
import { assertBalanced } from '../billing/bench-of-one.ts'
import { clockAt } from '../limits/clock-at.ts'
import { after, afterEach, test } from '../support/suite.ts'
import { type RawSocket, startRawBench } from './raw-bench.ts'
import { closeCodeOf, created, createFrame, delta, ended, hasMessages } from './turn-events.ts'

const MINUTE_MS = 60_000
const clock = clockAt('2026-11-12T12:00:00.000Z')
const bench = await startRawBench({ clock })
after(() => bench[Symbol.asyncDispose]())
afterEach(() => assertBalanced(bench.gateway))

/** A key that expires in a minute. */
const shortKey = () =>
  bench.gateway.createKey('short', { expires_at: new Date(clock.nowMs() + MINUTE_MS).toISOString() })

async function begin({ client, upstream }: RawSocket, responseId: string): Promise<void> {
  const create = createFrame()
  const arrived = upstream.receivedBytes(upstream.received.length + create.length)
  await client.send(create)
  await arrived
  await upstream.send(Buffer.concat([created(responseId), delta('Well, ')]))
  await hasMessages(client, 2)
}

const closed = ({ client }: RawSocket) => client.until(() => closeCodeOf(client) !== null, 'a close frame')

test('an idle socket is closed with 1008 when its key expires, one of another key is not', async () => {
  const { key } = await shortKey()
  const [short, other] = [await bench.open({ key }), await bench.open()]
  clock.advance(MINUTE_MS - 1)
  await begin(short, 'resp_in_time')
  await short.upstream.send(ended('resp_in_time'))
  await bench.turns(short.id, 1)
  assert.equal(closeCodeOf(short.client), null)
  clock.advance(1)
  await closed(short)
  assert.equal(closeCodeOf(short.client), 1008)
  short.client.socket.end()
  await short.upstream.ended
  await begin(other, 'resp_other')
  await other.upstream.send(ended('resp_other'))
  await bench.turns(other.id, 1)
  other.client.socket.destroy()
})
