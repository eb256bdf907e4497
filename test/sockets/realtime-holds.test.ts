import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { TurnCall } from '../../src/gateway/turns/turn-call.ts'
import { limits } from '../../src/kernel/limits.ts'
import { dig, digList } from '../simulator/dig.ts'
import type { SocketClient } from '../simulator/socket-client.ts'
import { createLogLines } from '../support/log-lines.ts'
import { until } from '../support/until.ts'
import { type PlayedUpstream, playUpstream, usageOf } from './played-upstream.ts'

const PATH = '/v1/realtime?model=gpt-realtime'

const { log, lines } = createLogLines()
let upstream: PlayedUpstream
let tell = (_event: object): void => undefined
const finish = (id: string): void =>
  tell({ type: 'response.done', response: { id, status: 'completed', usage: usageOf(200, 100) } })
before(async () => {
  const session = { type: 'realtime', model: 'gpt-realtime' }
  upstream = await playUpstream({ type: 'session.created', session }, { log })
  let begun = 0
  upstream.answer = (message, say) => {
    const type = dig(message, 'type')
    tell = say
    if (type === 'open') begun = 0
    if (type === 'response.create') say({ type: 'response.created', response: { id: `resp_${++begun}` } })
    else say({ type: 'heard', what: type })
  }
})
after(() => upstream.close())

/** A session whose hold is more than the budget of its key. */
async function openPoor(budgetUsd = 0.05): Promise<{ id: string; socket: SocketClient }> {
  const { id, key } = await upstream.gateway.createKey('poor', { monthly_budget_usd: budgetUsd })
  const socket = await upstream.open(PATH, key)
  await socket.takeType('session.created')
  socket.send({ type: 'open' })
  await socket.takeType('heard')
  return { id, socket }
}

const waits = (id: string, count = 1) =>
  until(`${count} wait`, async () => {
    const waiting = await upstream.gateway.manage('GET', `/v1/keys/${id}/requests?state=waiting`)
    return digList(waiting, 'data').length === count
  })

async function leave(id: string, { ws, closed }: SocketClient): Promise<void> {
  ws.close()
  await closed()
  await until('nothing is held', async () => (await upstream.heldUsd(id)) === 0)
}

test('an update that waits for the hold of a response goes when that has ended, and what is behind it too', async () => {
  const { id, socket } = await openPoor()
  socket.send({ type: 'response.create' })
  await socket.takeType('response.created')
  socket.send({ type: 'session.update', session: { model: 'gpt-4o-realtime-preview' } })
  await waits(id)
  finish('resp_1')
  assert.equal(dig(await socket.takeType('heard'), 'what'), 'session.update')
  socket.send({ type: 'input_audio_buffer.append', audio: 'AAAA' })
  assert.equal(dig(await socket.takeType('heard'), 'what'), 'input_audio_buffer.append')
  await leave(id, socket)
})

test('the hold for what is written down does not wait behind the one that an update has the socket wait for', async () => {
  const { id, socket } = await openPoor(1)
  const update = (session: object) => socket.send({ type: 'session.update', session })
  update({ audio: { input: { transcription: { model: 'whisper-1' } } } })
  await socket.takeType('heard')
  tell({ type: 'session.updated', session: { max_output_tokens: 100 } })
  socket.send({ type: 'response.create' })
  await socket.takeType('response.created')
  update({ max_output_tokens: 'inf' })
  await waits(id)
  tell({ type: 'input_audio_buffer.committed', item_id: 'item_1' })
  await waits(id, 2)
  const usage = { type: 'duration', seconds: 1 }
  tell({ type: 'conversation.item.input_audio_transcription.completed', item_id: 'item_1', usage })
  finish('resp_1')
  assert.equal(dig(await socket.takeType('heard'), 'what'), 'session.update')
  socket.send({ type: 'input_audio_buffer.append', audio: 'AAAA' })
  assert.equal(dig(await socket.takeType('heard'), 'what'), 'input_audio_buffer.append')
  await leave(id, socket)
})

test('what is written down without a hold does not wait for the one that its own socket has in advance', async () => {
  const { id, socket } = await openPoor(1)
  const transcription = { model: 'whisper-1' }
  socket.send({ type: 'session.update', session: { audio: { input: { transcription } } } })
  await socket.takeType('heard')
  // The holds of a response and of transcripts, each of 15 minutes.
  const heldFor = (transcripts: number) =>
    until('it is held', async () => (await upstream.heldUsd(id)) === 1.286144 + 0.09 * transcripts)
  await heldFor(1)
  const items = Array.from({ length: 5 }, (_, i) => `item_${i}`)
  const usage = { type: 'duration', seconds: 60 }
  for (const item_id of items) tell({ type: 'input_audio_buffer.committed', item_id })
  // The first transcript has its hold, and there is an advance hold for the next one and one for a response.
  await heldFor(2)
  socket.send({ type: 'ping' })
  await socket.takeType('heard')
  for (const item_id of items)
    tell({ type: 'conversation.item.input_audio_transcription.completed', item_id, usage })
  tell({ type: 'told' })
  await socket.takeType('told')
  socket.send({ type: 'input_audio_buffer.append', audio: 'AAAA' })
  assert.equal(dig(await socket.takeType('heard'), 'what'), 'input_audio_buffer.append')
  await until('all are paid for', async () => (await upstream.costs(id)).length === items.length)
  await leave(id, socket)
})

test('an update that is refused when the response has ended leaves the session its hold', async () => {
  const { id, socket } = await openPoor()
  const heldUsd = await upstream.heldUsd(id)
  socket.send({ type: 'response.create' })
  await socket.takeType('response.created')
  socket.send({ type: 'session.update', session: { model: 'gpt-4o-realtime-preview' } })
  await waits(id)
  await upstream.gateway.manage('PATCH', `/v1/keys/${id}`, { allowed_models: ['gpt-realtime'] })
  finish('resp_1')
  assert.equal(dig(await socket.takeType('error'), 'error.code'), 'model_not_allowed')
  await until('it is held', async () => (await upstream.heldUsd(id)) === heldUsd)
  await leave(id, socket)
})

test('a response that waits for the hold of another can be cancelled when it runs', async () => {
  const { id, socket } = await openPoor()
  socket.send({ type: 'response.create' })
  await socket.takeType('response.created')
  socket.send({ type: 'response.create', response: { conversation: 'none' } })
  await waits(id)
  finish('resp_1')
  await socket.takeType('response.created')
  socket.send({ type: 'response.cancel', response_id: 'resp_2' })
  assert.equal(dig(await socket.takeType('heard'), 'what'), 'response.cancel')
  const heldUsd = await upstream.heldUsd(id)
  finish('resp_2')
  await until('both are settled', async () => (await upstream.costs(id)).length === 2)
  await until('there is a hold for the next', async () => (await upstream.heldUsd(id)) === heldUsd)
  await leave(id, socket)
})

/** The fields in which an update of a session names a model, each with an update that has it. */
const NAMING = [
  ['session.model', (model: string) => ({ model })],
  [
    'session.audio.input.transcription.model',
    (model: string) => ({ audio: { input: { transcription: { model } } } }),
  ],
] as const

for (const [param, naming] of NAMING)
  test(`more models than are priced for one session are refused in ${param}, and it goes on`, async () => {
    const { id, key } = await upstream.gateway.createKey('curious')
    const socket = await upstream.open(PATH, key)
    const update = async (at: number) => {
      socket.send({ type: 'session.update', event_id: `update_${at}`, session: naming(`model-${at}`) })
      const answers = await socket.takeUntil((event) =>
        ['heard', 'error'].includes(String(dig(event, 'type'))),
      )
      return answers.at(-1)
    }
    // A session without a transcription model takes one more: the first such model replaces no other.
    const accepted = limits.modelsPerSessionMax + (param === 'session.model' ? 0 : 1)
    for (let at = 0; at < accepted; at++) assert.equal(dig(await update(at), 'type'), 'heard')
    for (const at of [accepted, accepted + 1]) {
      const told = await update(at)
      assert.equal(dig(told, 'error.code'), 'bad_request')
      assert.equal(dig(told, 'error.param'), param)
      assert.equal(dig(told, 'error.event_id'), `update_${at}`)
    }
    assert.equal(dig(await update(0), 'type'), 'heard')
    await leave(id, socket)
  })

const transcription = { model: 'whisper-1' }
const GIVING_BACK: Readonly<Record<string, object>> = {
  'the session is to write down too': {
    type: 'session.update',
    session: { audio: { input: { transcription } } },
  },
  'the session is to go by another model': {
    type: 'session.update',
    session: { model: 'gpt-4o-realtime-preview' },
  },
  'a response is to go by another model': {
    type: 'response.create',
    response: { model: 'gpt-4o-realtime-preview' },
  },
}

for (const [when, message] of Object.entries(GIVING_BACK))
  test(`a hold that the store does not take back when ${when} is logged, and the session goes on`, async (t) => {
    const { id, socket } = await openPoor()
    const { release } = TurnCall.prototype
    const mocked = t.mock.method(TurnCall.prototype, 'release', async function (this: TurnCall) {
      mocked.mock.restore()
      await release.call(this)
      throw new Error('the store refused it')
    })
    lines.length = 0
    socket.send(message)
    await socket.takeUntil((event) => ['heard', 'response.created'].includes(String(dig(event, 'type'))))
    assert.match(lines.join(), /a turn of a socket could not be settled/)
    if (dig(message, 'type') === 'response.create') finish('resp_1')
    await leave(id, socket)
  })

test('a response that waits for a hold gets the one of a response that upstream refuses', async () => {
  const { answer } = upstream
  const { id, socket } = await openPoor()
  let tell = (_event: object): void => undefined
  const done = (responseId: string) =>
    tell({ type: 'response.done', response: { id: responseId, status: 'completed', usage: usageOf(2, 1) } })
  upstream.answer = (message, say) => {
    tell = say
    if (dig(message, 'event_id') === 'second') {
      say({ type: 'error', error: { event_id: 'second', code: 'conversation_already_has_active_response' } })
      done('resp_first')
    } else say({ type: 'heard' })
  }
  socket.send({ type: 'response.create', event_id: 'first' })
  await socket.takeType('heard')
  socket.send({ type: 'response.create', event_id: 'second' })
  await waits(id)
  // `resp_heard` begins by itself and takes the hold of the first response, which then has none.
  tell({ type: 'response.created', response: { id: 'resp_heard' } })
  tell({ type: 'response.created', response: { id: 'resp_first' } })
  await socket.takeUntil((event) => dig(event, 'response.id') === 'resp_first')
  done('resp_heard')
  await socket.takeType('error')
  await until('both are paid for', async () => {
    const costs = await upstream.costs(id)
    return costs.filter(([, usd]) => usd > 0).length === 2
  })
  socket.send({ type: 'still here' })
  await socket.takeType('heard')
  upstream.answer = answer
  await leave(id, socket)
})

test('nothing more is heard while a response that began by itself waits for its hold, but what ends one goes', async () => {
  const { answer } = upstream
  const { id, socket } = await openPoor()
  socket.send({ type: 'response.create', response: { conversation: 'none' } })
  await socket.takeType('response.created')
  let begin = (): void => undefined
  upstream.answer = (message, say) => {
    answer(message, say)
    begin = () => say({ type: 'response.created', response: { id: 'resp_voice' } })
  }
  const append = { type: 'input_audio_buffer.append', audio: 'AAAA' }
  socket.send(append)
  await socket.takeType('heard')
  begin()
  await waits(id)
  socket.send({ type: 'response.cancel' })
  assert.equal(dig(await socket.takeType('heard'), 'what'), 'response.cancel')
  upstream.reached.length = 0
  socket.send(append)
  await upstream.heldUsd(id)
  assert.deepEqual(upstream.reached, [])
  finish('resp_1')
  assert.equal(dig(await socket.takeType('heard'), 'what'), append.type)
  upstream.answer = answer
  finish('resp_voice')
  await until('both are paid for', async () => (await upstream.costs(id)).length === 2)
  await leave(id, socket)
})
