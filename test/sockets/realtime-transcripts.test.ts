import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { limits } from '../../src/kernel/limits.ts'
import { dig } from '../simulator/dig.ts'
import { until } from '../support/until.ts'
import { append } from './metered-socket.ts'
import { type PlayedUpstream, playUpstream } from './played-upstream.ts'
import { type StoppedTime, stopTime } from './stop-time.ts'

const PATH = '/v1/realtime?model=gpt-realtime-mini'
const NAME = 'conversation.item.input_audio_transcription'
const COMMIT = { type: 'input_audio_buffer.commit' }
const writtenBy = (model: string) => ({ audio: { input: { transcription: { model } } } })
const sessionOf = (model: string) => ({ type: 'realtime', model: 'gpt-realtime-mini', ...writtenBy(model) })

let upstream: PlayedUpstream
before(async () => {
  upstream = await playUpstream({ type: 'session.created', session: sessionOf('whisper-1') })
})
after(() => upstream.close())

async function open(fields: Record<string, unknown>, path = PATH) {
  const { id, key } = await upstream.gateway.createKey('socket', fields)
  const socket = await upstream.open(path, key)
  await socket.takeType('session.created')
  upstream.reached.length = 0
  const items: string[] = []
  upstream.answer = (message, say) => {
    if (dig(message, 'type') === 'session.update')
      say({
        type: 'session.updated',
        session: sessionOf(String(dig(message, 'session.audio.input.transcription.model'))),
      })
    if (dig(message, 'type') === 'write') say(completed(items.shift()))
    if (dig(message, 'type') !== COMMIT.type) return
    items.push(`item_${upstream.reached.length}`)
    say({ type: 'input_audio_buffer.committed', item_id: items.at(-1) })
  }
  const left = async (pass?: StoppedTime) => {
    socket.ws.terminate()
    await pass?.over(limits.readOnMs)
    await until('nothing is held', async () => (await upstream.heldUsd(id)) === 0)
  }
  return { id, socket, left }
}

/** A transcript of ten minutes, at 0.006 dollars a minute. */
const completed = (item: string | undefined) => ({
  type: `${NAME}.completed`,
  item_id: item,
  transcript: 'Ten minutes.',
  usage: { type: 'duration', seconds: 600 },
})

const commitsReached = () => upstream.reached.filter((message) => dig(message, 'type') === COMMIT.type).length

test('a transcript is paid for at the model that was named when it was all said', async () => {
  const { id, socket, left } = await open({ monthly_budget_usd: 50 })
  socket.send(append(100))
  socket.send(COMMIT)
  socket.send({ type: 'session.update', session: writtenBy('gpt-4o-mini-transcribe') })
  await socket.takeType('session.updated')
  socket.send({ type: 'write' })
  await socket.takeType(`${NAME}.completed`)
  await left()
  assert.deepEqual(await upstream.costs(id), [['whisper-1', 0.06]])
})

test('each piece of what is said has a hold, and none goes that nothing is left for', async () => {
  const { id, socket } = await open({ monthly_budget_usd: 1 }, '/v1/realtime?intent=transcription')
  const { answer } = upstream
  upstream.answer = (message, say) => {
    answer(message, say)
    answer({ type: 'write' }, say)
  }
  for (let i = 0; i < 60; i++) socket.send(COMMIT)
  const error = await socket.takeType('error')
  assert.equal(dig(error, 'error.code'), 'budget_exceeded')
  await socket.closed()
  await until('nothing is held', async () => (await upstream.heldUsd(id)) === 0)
  const spentUsd = await upstream.spentUsd(id)
  // The hold of the last transcript was the rest of the budget, which its cost may pass.
  assert.ok(spentUsd >= 1 && spentUsd < 1.06, `${spentUsd} dollars of 1`)
})

/** A member that has no place in these messages does not make them updates. */
for (const [how, more] of [
  ['', {}],
  [', also where a session is in the message', { session: {} }],
] as const) {
  test(`nothing more is heard while as much is being written down as may be${how}`, async (t) => {
    const pass = stopTime(t)
    const { socket, left } = await open({ monthly_budget_usd: 50 })
    for (let i = 0; i <= limits.turnsPerSocketMax; i++) socket.send({ ...COMMIT, ...more })
    socket.send({ type: 'session.update', session: writtenBy('whisper-1') })
    const isTold = (event: unknown) => ['error', 'session.updated'].includes(String(dig(event, 'type')))
    const told = (await socket.takeUntil(isTold)).at(-1)
    assert.equal(dig(told, 'error.code'), 'too_many_calls')
    await socket.takeType('session.updated')
    assert.equal(commitsReached(), limits.turnsPerSocketMax)
    await left(pass)
  })

  test(`what was said and not written down is paid for by its length when the client leaves, all of it${how}`, async (t) => {
    const pass = stopTime(t)
    const { id, socket, left } = await open({ monthly_budget_usd: 50 })
    for (let i = 0; i < 30; i++) {
      socket.send({ ...append(1_000), ...more })
      socket.send({ ...COMMIT, ...more })
    }
    for (let i = 0; i < 30; i++) await socket.takeType('input_audio_buffer.committed')
    await left(pass)
    const costs = await upstream.costs(id)
    assert.deepEqual(costs, Array(30).fill(['whisper-1', 0.0001]))
  })
}

test('what was said and taken back is paid for by its length, and expected no more', async () => {
  const { id, socket, left } = await open({ monthly_budget_usd: 50 })
  socket.send(append(1_000))
  socket.send(COMMIT)
  const item = dig(await socket.takeType('input_audio_buffer.committed'), 'item_id')
  upstream.answer = (_message, say) => say({ type: 'conversation.item.deleted', item_id: item })
  socket.send({ type: 'conversation.item.delete', item_id: item })
  await until('it is paid for', async () => (await upstream.costs(id)).length === 1)
  assert.deepEqual(await upstream.costs(id), [['whisper-1', 0.0001]])
  await left()
})

test('what is written down while it is said is paid for where the client leaves before it is all said', async (t) => {
  const pass = stopTime(t)
  const { id, socket, left } = await open({ monthly_budget_usd: 50 })
  upstream.answer = (_message, say) => say({ type: `${NAME}.delta`, item_id: 'item_1', delta: 'some words' })
  socket.send(append(10_000))
  await socket.takeType(`${NAME}.delta`)
  await left(pass)
  assert.deepEqual(await upstream.costs(id), [['whisper-1', 0.001]])
})

test('audio behind a change of its format is as long as it is by the format that makes it longer', async (t) => {
  const pass = stopTime(t)
  const { id, socket, left } = await open({ monthly_budget_usd: 50 })
  const answer = upstream.answer
  upstream.answer = (message, say) => {
    if (dig(message, 'type') !== 'session.update') answer(message, say)
  }
  const format = { type: 'audio/pcmu' }
  socket.send({ type: 'session.update', session: { audio: { input: { format } } } })
  // The audio is a minute at 8 bytes a millisecond, and ten seconds at 48.
  socket.send({ type: 'input_audio_buffer.append', audio: Buffer.alloc(480_000).toString('base64') })
  socket.send(COMMIT)
  await socket.takeType('input_audio_buffer.committed')
  await left(pass)
  assert.deepEqual(await upstream.costs(id), [['whisper-1', 0.006]])
})

test('a transcript whose figures cannot be true is paid for by the length of what was said', async () => {
  const { id, socket, left } = await open({ monthly_budget_usd: 50 })
  socket.send({ type: 'session.update', session: writtenBy('gpt-4o-transcribe') })
  await socket.takeType('session.updated')
  const usage = { type: 'tokens', total_tokens: 1e12, input_tokens: 1e12, output_tokens: 0 }
  upstream.answer = (message, say) => {
    if (dig(message, 'type') !== COMMIT.type) return
    say({ type: 'input_audio_buffer.committed', item_id: 'item_1' })
    say({ ...completed('item_1'), usage })
  }
  socket.send(append(60_000))
  socket.send(COMMIT)
  await socket.takeType(`${NAME}.completed`)
  await left()
  // 600 tokens at 6 dollars a million.
  assert.deepEqual(await upstream.costs(id), [['gpt-4o-transcribe', 0.0036]])
})

test('transcripts whose events do not say what they are of are paid for each', async () => {
  const { id, socket, left } = await open({ monthly_budget_usd: 50 })
  upstream.answer = (message, say) => {
    if (dig(message, 'type') === COMMIT.type) say({ type: 'input_audio_buffer.committed' })
    if (dig(message, 'type') === COMMIT.type) say(completed(undefined))
  }
  for (let i = 0; i < 2; i++) {
    socket.send(COMMIT)
    await socket.takeType(`${NAME}.completed`)
  }
  await left()
  const costs = await upstream.costs(id)
  assert.deepEqual(costs, Array(2).fill(['whisper-1', 0.06]))
})

test('an update that is refused does not make audio longer', async () => {
  const { id, socket, left } = await open({ allowed_models: ['gpt-realtime-mini', 'whisper-1'] })
  const input = { format: { type: 'audio/pcmu' }, transcription: { model: 'gpt-4o-transcribe' } }
  socket.send({ type: 'session.update', session: { audio: { input } } })
  assert.equal(dig(await socket.takeType('error'), 'error.code'), 'model_not_allowed')
  socket.send(append(10_000))
  socket.send(COMMIT)
  await socket.takeType('input_audio_buffer.committed')
  await left()
  assert.deepEqual(await upstream.costs(id), [['whisper-1', 0.001]])
})

test('what upstream says twice to have heard is paid for once, and what comes behind it by its own length', async () => {
  const { id, socket, left } = await open({ monthly_budget_usd: 50 })
  upstream.answer = (message, say) => {
    if (dig(message, 'type') !== 'begin') return
    for (const item of ['item_1', 'item_1', 'item_2'])
      say({ type: 'input_audio_buffer.committed', item_id: item })
    say({ type: 'said' })
  }
  for (const ms of [1_000, 2_000]) {
    socket.send(append(ms))
    socket.send(COMMIT)
  }
  socket.send({ type: 'begin' })
  await socket.takeType('said')
  await left()
  const costs = (await upstream.costs(id)).map(([, usd]) => usd)
  assert.deepEqual(costs.sort(), [0.0001, 0.0002])
})

test('a transcript that comes before upstream says that it has heard what was said is paid for once', async () => {
  const { id, socket, left } = await open({ monthly_budget_usd: 50 })
  upstream.answer = (message, say) => {
    if (dig(message, 'type') !== COMMIT.type) return
    say(completed('item_1'))
    say({ type: 'input_audio_buffer.committed', item_id: 'item_1' })
  }
  socket.send(append(1_000))
  socket.send(COMMIT)
  await socket.takeType('input_audio_buffer.committed')
  await left()
  assert.deepEqual(await upstream.costs(id), [['whisper-1', 0.06]])
})
