import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { TurnCall } from '../../src/gateway/turns/turn-call.ts'
import { limits } from '../../src/kernel/limits.ts'
import { dig, digList, digNumber } from '../simulator/dig.ts'
import { until } from '../support/until.ts'
import { append } from './metered-socket.ts'
import { usageOf } from './played-upstream.ts'
import { type RawSocket, splitFrames, startRawBench } from './raw-bench.ts'
import { stopTime } from './stop-time.ts'
import { closeCodeOf, closeFrameOf, eventFrame, hasMessages } from './turn-events.ts'
import { wireOf } from './wire-frames.ts'

const bench = await startRawBench()
after(() => bench[Symbol.asyncDispose]())

const clientFrame = (event: object) => wireOf('client', { opcode: 1, payload: JSON.stringify(event) })

interface Bench extends RawSocket {
  /** The id of the socket's key. */
  readonly keyId: string
}

async function open(target: string, session: object, capUsd = 5): Promise<Bench> {
  const { id: keyId, key } = await bench.gateway.createKey('faults', { monthly_budget_usd: capUsd })
  const socket = await bench.open({ key, target })
  await socket.upstream.send(eventFrame({ type: 'session.created', session }))
  await hasMessages(socket.client, 1)
  return { ...socket, keyId }
}

async function sendThrough({ client, upstream }: RawSocket, frame: Buffer): Promise<void> {
  const arrived = upstream.receivedBytes(upstream.received.length + frame.length)
  await client.send(frame)
  await arrived
}

/** A second of sound of a response, 20 tokens. */
const sound = (responseId: string) =>
  eventFrame({
    type: 'response.output_audio.delta',
    response_id: responseId,
    delta: Buffer.alloc(48_000).toString('base64'),
  })

async function inResponse(capUsd?: number): Promise<Bench> {
  const socket = await open('/v1/realtime?model=gpt-realtime', { model: 'gpt-realtime' }, capUsd)
  await sendThrough(socket, clientFrame({ type: 'response.create' }))
  await socket.upstream.send(eventFrame({ type: 'response.created', response: { id: 'resp_1' } }))
  await socket.upstream.send(sound('resp_1'))
  await hasMessages(socket.client, 3)
  return socket
}

const HEARD_SECONDS = 7
async function inTranslation(): Promise<Bench> {
  const model = 'gpt-realtime-translate'
  const socket = await open(`/v1/realtime/translations?model=${model}`, { model })
  const { audio } = append(HEARD_SECONDS * 1_000)
  await sendThrough(socket, clientFrame({ type: 'session.input_audio_buffer.append', audio }))
  await socket.upstream.send(eventFrame({ type: 'session.output_transcript.delta', delta: 'Guten Tag.' }))
  await hasMessages(socket.client, 2)
  return socket
}

/** The calls that a key was billed for, when nothing is held for it any more. */
async function billed(keyId: string): Promise<readonly unknown[]> {
  const { manage } = bench.gateway
  await until('nothing is held', async () => {
    return digNumber(await manage('GET', `/v1/keys/${keyId}`), 'month_held_usd') === 0
  })
  const calls = digList(await manage('GET', `/v1/keys/${keyId}/requests?limit=100`), 'data')
  return calls.filter((call) => dig(call, 'method') === 'WS' && dig(call, 'state') === 'settled')
}

function isEstimateOfResponse(turns: readonly unknown[]): void {
  assert.equal(turns.length, 1)
  assert.equal(dig(turns[0], 'estimated'), true)
  // The 20 tokens that were delivered: upstream sent no more.
  assert.equal(digNumber(turns[0], 'usage.output_tokens'), 20)
  assert.ok(digNumber(turns[0], 'cost_usd') > 0)
}

function isBillOfTranslation(turns: readonly unknown[]): void {
  assert.equal(turns.length, 1)
  const usd = (HEARD_SECONDS * 0.034) / 60
  assert.ok(Math.abs(digNumber(turns[0], 'list_cost_usd') - usd) < 1e-6, JSON.stringify(turns))
}

const kinds = [
  ['a response', inResponse, isEstimateOfResponse],
  ['a translation', inTranslation, isBillOfTranslation],
] as const

/** How upstream ends the socket, and the close code that the client gets; null without one. */
const ends: Record<string, readonly [(socket: RawSocket) => Promise<void> | void, number | null]> = {
  'a reset': [({ upstream }) => upstream.reset(), null],
  'the end of its connection': [({ upstream }) => void upstream.socket.end(), null],
  'a close frame': [({ upstream }) => upstream.send(closeFrameOf(1011)), 1011],
  'a frame that is masked': [
    ({ upstream }) => upstream.send(wireOf('client', { opcode: 1, payload: '{}' })),
    1011,
  ],
  'a frame of a kind that there is not': [
    ({ upstream }) => upstream.send(wireOf('server', { opcode: 3 })),
    1011,
  ],
  'text that is not UTF-8': [
    ({ upstream }) => upstream.send(wireOf('server', { opcode: 1, payload: Buffer.from([0xff, 0xfe]) })),
    1011,
  ],
  'the end of its connection within a frame': [
    ({ upstream }) => {
      upstream.socket.write(sound('resp_1').subarray(0, 1_000))
      upstream.socket.end()
    },
    null,
  ],
}

for (const [kind, begin, isRight] of kinds) {
  for (const [way, [end, code]] of Object.entries(ends)) {
    test(`${kind} that upstream ends by ${way} is billed as far as it came, and nothing stays held`, async () => {
      const socket = await begin()
      await end(socket)
      if (code !== null) await socket.client.until(() => closeCodeOf(socket.client) !== null, 'a close frame')
      if (code !== null) assert.equal(closeCodeOf(socket.client), code)
      if (way !== 'a close frame') await socket.client.ended
      socket.client.socket.destroy()
      isRight(await billed(socket.keyId))
    })
  }

  test(`${kind} goes on though upstream says what nobody knows`, async () => {
    const socket = await begin()
    const already = splitFrames(socket.client.received).length
    const odd = ['{"type":"response.', '[]', 'null', '{"type":7}', '{"type":"error"', '{"response":{"id":1}}']
    await socket.upstream.send(
      ...odd.map((payload) => wireOf('server', { opcode: 1, payload })),
      wireOf('server', { opcode: 2, payload: Buffer.from([0xff, 0, 0xfe]) }),
      wireOf('server', { opcode: 1, payload: '' }),
    )
    const usage = usageOf(10, 20)
    await socket.upstream.send(
      eventFrame({ type: 'response.done', response: { id: 'resp_1', status: 'completed', usage } }),
    )
    await hasMessages(socket.client, already + odd.length + 3)
    assert.equal(closeCodeOf(socket.client), null)
    socket.client.socket.end()
    socket.upstream.socket.end()
    const turns = await billed(socket.keyId)
    if (kind === 'a translation') return isRight(turns)
    assert.equal(turns.length, 1)
    assert.equal(dig(turns[0], 'estimated'), false)
    assert.equal(digNumber(turns[0], 'usage.output_tokens'), 20)
  })

  test(`${kind} during which upstream falls silent ends with its client`, async (t) => {
    const pass = stopTime(t)
    const socket = await begin()
    await socket.client.send(closeFrameOf(1000, 'client'))
    await pass.over(kind === 'a translation' ? limits.socketCloseMs : limits.readOnMs)
    await socket.upstream.ended
    socket.upstream.socket.end()
    socket.client.socket.destroy()
    isRight(await billed(socket.keyId))
  })
}

test('a response is billed once, however often upstream says that it began and has ended', async () => {
  const socket = await inResponse()
  const created = eventFrame({ type: 'response.created', response: { id: 'resp_1' } })
  const done = (heard: number) =>
    eventFrame({
      type: 'response.done',
      response: { id: 'resp_1', status: 'completed', usage: usageOf(heard, 20) },
    })
  await socket.upstream.send(done(10), done(1_000), created, sound('resp_1'), done(2_000))
  await hasMessages(socket.client, 8)
  socket.client.socket.end()
  socket.upstream.socket.end()
  const turns = await billed(socket.keyId)
  assert.deepEqual(
    turns.map((turn) => [dig(turn, 'cost_usd'), dig(turn, 'estimated')]),
    // 10 tokens of sound heard at $32 for a million, 20 said at $64.
    [[0.0016, false]],
  )
})

test('a response that upstream began by itself is ended as cut, though it was cut before it was admitted', async (t) => {
  const socket = await inResponse(0.05)
  await socket.upstream.send(eventFrame({ type: 'response.created', response: { id: 'resp_2' } }))
  await until('it waits', async () => {
    const path = `/v1/keys/${socket.keyId}/requests?state=waiting`
    return digList(await bench.gateway.manage('GET', path), 'data').length === 1
  })
  const { mock } = t.mock.method(TurnCall.prototype, 'endWith')
  socket.upstream.socket.end()
  await socket.client.ended
  socket.client.socket.destroy()
  // The second response has no hold, and is admitted when the first is settled.
  await until('both are billed', async () => (await billed(socket.keyId)).length === 2)
  assert.deepEqual(
    mock.calls.map((call) => call.arguments[1]?.kind),
    ['cut', 'cut'],
  )
})

test('a response that has ended before it was admitted is billed by its usage, though upstream is cut then', async () => {
  const socket = await inResponse(0.05)
  const response = { id: 'resp_2', status: 'completed', usage: usageOf(10, 20) }
  await socket.upstream.send(
    eventFrame({ type: 'response.created', response: { id: 'resp_2' } }),
    eventFrame({ type: 'response.done', response }),
  )
  await hasMessages(socket.client, 5)
  socket.upstream.socket.end()
  await socket.client.ended
  socket.client.socket.destroy()
  await until('both are billed', async () => (await billed(socket.keyId)).length === 2)
  const stated = (await billed(socket.keyId)).filter((turn) => dig(turn, 'estimated') === false)
  assert.deepEqual(
    stated.map((turn) => dig(turn, 'cost_usd')),
    [0.0016],
  )
})
