import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { limits } from '../../src/kernel/limits.ts'
import { dig } from '../simulator/dig.ts'
import type { SocketClient } from '../simulator/socket-client.ts'
import { until } from '../support/until.ts'
import { append } from './metered-socket.ts'
import { type PlayedUpstream, playUpstream } from './played-upstream.ts'
import { startRawBench } from './raw-bench.ts'
import { stopTime } from './stop-time.ts'
import { closeCodeOf, created, createFrame, delta, ended, hasMessages } from './turn-events.ts'

const PATH = '/v1/realtime?model=gpt-realtime-mini'
const NAME = 'conversation.item.input_audio_transcription'
const transcription = { model: 'whisper-1' }
const GREETING = {
  type: 'session.created',
  session: { type: 'realtime', model: 'gpt-realtime-mini', audio: { input: { transcription } } },
}

let upstream: PlayedUpstream
before(async () => {
  upstream = await playUpstream(GREETING)
})
after(() => upstream.close())

const ITEM = { item_id: 'item_1' }

/** An upstream that confirms the audio to be transcribed, and never sends more than the first word of the transcript. */
function playSilence(played: PlayedUpstream): void {
  played.answer = (message, say) => {
    const type = dig(message, 'type')
    if (type === 'response.create') say({ type: 'heard' })
    if (type === 'input_audio_buffer.commit') say({ type: 'input_audio_buffer.committed', ...ITEM })
    if (type === 'input_audio_buffer.append') say({ type: `${NAME}.delta`, delta: 'Well', ...ITEM })
  }
}

async function open(played: PlayedUpstream, fields: Record<string, unknown> = {}) {
  const { id, key } = await played.gateway.createKey('socket', fields)
  const socket = await played.open(PATH, key)
  await socket.takeType('session.created')
  playSilence(played)
  return { id, socket }
}

type Begin = (socket: SocketClient) => Promise<unknown>

const begins: readonly (readonly [string, Begin])[] = [
  [
    'a response that upstream does not begin',
    (socket) => {
      socket.send({ type: 'response.create', event_id: 'never' })
      return socket.takeType('heard')
    },
  ],
  [
    'a transcript that upstream does not write',
    (socket) => {
      socket.send({ type: 'input_audio_buffer.commit' })
      return socket.takeType('input_audio_buffer.committed')
    },
  ],
  [
    'a transcript of which upstream says nothing more',
    (socket) => {
      socket.send(append(100))
      return socket.takeType(`${NAME}.delta`)
    },
  ],
]

for (const [what, begin] of begins) {
  test(`${what} keeps the socket of a revoked key open only for a while`, async (t) => {
    const { id, socket } = await open(upstream, { monthly_budget_usd: 50 })
    const pass = stopTime(t)
    await begin(socket)
    await upstream.gateway.revokeKey(id)
    socket.send({ type: 'response.create' })
    await socket.takeType('error')
    assert.equal(socket.ws.readyState, socket.ws.OPEN)
    pass(limits.silentTurnMs)
    assert.equal((await socket.closed()).code, 1008)
    pass(limits.readOnMs)
    await until('nothing is held', async () => (await upstream.heldUsd(id)) === 0)
  })
}

test('a shutdown does not wait for a transcript that has failed, though nothing was held for it', async () => {
  const stopping = await playUpstream(GREETING, { settings: { drainMs: 10 * limits.silentTurnMs } })
  const [{ socket: idle }, { id, socket }] = [await open(stopping), await open(stopping)]
  let fail = (): void => undefined
  stopping.answer = (_message, say) => {
    const items = ['item_1', 'item_2', 'item_3']
    for (const item of items) say({ type: 'input_audio_buffer.committed', item_id: item })
    const [last, ...others] = items.reverse()
    for (const item of others)
      say({ type: `${NAME}.completed`, item_id: item, usage: { type: 'duration', seconds: 60 } })
    fail = () => say({ type: `${NAME}.failed`, item_id: last, error: { message: 'It was too quiet.' } })
  }
  socket.send({ type: 'input_audio_buffer.commit' })
  await until('the others are paid for', async () => (await stopping.costs(id)).length === 2)
  const stopped = stopping.close()
  await idle.closed()
  fail()
  assert.equal((await socket.closed()).code, 1012)
  await stopped
})

test('a response of which nothing more is heard when the next one of its lane begins is settled after a while', async (t) => {
  await using bench = await startRawBench()
  const { id, client, upstream: wire } = await bench.open()
  const pass = stopTime(t)
  for (let i = 0; i < 2; i++) await client.send(createFrame())
  await hasMessages(wire, 2)
  await wire.send(Buffer.concat([created('resp_1'), delta('Well, '), created('resp_2'), ended('resp_2')]))
  await hasMessages(client, 4)
  pass(limits.silentTurnMs)
  const turns = await bench.turns(id, 2)
  assert.deepEqual(
    turns.map((turn) => [turn['state'], turn['estimated']]),
    [
      ['settled', true],
      ['settled', false],
    ],
  )
  assert.equal(closeCodeOf(client), null)
})
