import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import OpenAI from 'openai'
import { OpenAIRealtimeTranslationWS } from 'openai/realtime/translations/ws'
import { ForksWS } from 'openai/resources/live/forks/ws'
import { SidebandWS } from 'openai/resources/live/sideband/ws'
import { LiveWS } from 'openai/resources/live/ws'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { dig, digList, digText } from './dig.ts'
import { startSecureFront } from './secure-front.ts'
import { openSocket, refusedSocket } from './socket-client.ts'

let simulator: Simulator
let client: OpenAI
before(async () => {
  simulator = await startSimulator()
  client = new OpenAI({ apiKey: 'sk-simulator', baseURL: simulator.chatUrl })
})
after(() => simulator.close())

/** A sound of so many milliseconds, 24,000 samples of 16 bits a second. */
const sound = (ms: number, byte: number): string => Buffer.alloc(ms * 48, byte).toString('base64')
const delegation = { type: 'responses', responses: { model: 'gpt-6-luna' } } as const

type Stream = AsyncIterable<{ type: string; message?: unknown; error?: unknown }>

/** The server's events up to the first of a type. */
async function until(stream: Stream, type: string): Promise<unknown[]> {
  const events: unknown[] = []
  for await (const event of stream) {
    if (event.type === 'error') throw event.error
    if (event.message === undefined) continue
    events.push(event.message)
    if (dig(event.message, 'type') === type) return events
  }
  throw new Error(`no ${type} in ${JSON.stringify(events.map((event) => dig(event, 'type')))}`)
}

async function start(): Promise<{ live: LiveWS; id: string }> {
  const live = new LiveWS(client)
  live.send({ type: 'session.start', session: { model: 'gpt-live-1', delegation } })
  const started = (await until(live.stream(), 'session.started')).at(-1)
  return { live, id: digText(started, 'session.id') }
}

test('what is said to a Live session is delegated, and its seconds add up', async () => {
  const { live } = await start()
  live.send({ type: 'session.input_audio.append', audio: sound(1_000, 1) })
  const first = (await until(live.stream(), 'session.usage.updated')).at(-1)
  assert.deepEqual(dig(first, 'usage'), { seconds: 1 })
  live.send({ type: 'session.input_audio.append', audio: sound(500, 0) })
  const events = await until(live.stream(), 'session.usage.updated')
  assert.deepEqual(dig(events.at(-1), 'usage'), { seconds: 1.5 })
  const created = events.find((event) => dig(event, 'type') === 'session.delegation.created')
  const nested = events.filter((event) => dig(event, 'type') === 'response.event')
  assert.equal(dig(nested[0], 'event.type'), 'response.created')
  assert.equal(dig(nested[0], 'delegation_id'), dig(created, 'delegation.id'))
  assert.equal(dig(nested.at(-1), 'event.type'), 'response.completed')
  assert.equal(dig(nested.at(-1), 'event.response.model'), 'gpt-6-luna')
  assert.ok(Number(dig(nested.at(-1), 'event.response.usage.output_tokens')) > 0)
  assert.ok(events.some((event) => dig(event, 'type') === 'session.output_audio.delta'))

  live.send({ type: 'response.item.create', item: { type: 'message', role: 'user', content: 'And more?' } })
  live.send({ type: 'response.create' })
  const [again] = await until(live.stream(), 'response.event')
  assert.equal(dig(again, 'event.response.previous_response_id'), dig(nested[0], 'event.response.id'))

  live.send({ type: 'session.close', event_id: 'mine' })
  const closed = (await until(live.stream(), 'session.closed')).at(-1)
  assert.equal(dig(closed, 'reason'), 'close_requested')
  assert.equal(dig(closed, 'client_event_id'), 'mine')
  assert.deepEqual(dig(closed, 'usage'), { seconds: 1.5 })
})

test('a sideband sees what the session says and hears, and can interfere', async () => {
  const { live, id } = await start()
  const sideband = new SidebandWS(client, { session_id: id })
  await until(sideband.stream(), 'session.started')
  const seen = until(sideband.stream(), 'session.usage.updated')
  live.send({ type: 'session.input_audio.append', audio: sound(1_000, 1) })
  assert.deepEqual(
    (await seen).map((event) => dig(event, 'type')),
    ['session.input_audio.append', 'session.usage.updated'],
  )
  const told = until(live.stream(), 'session.commentary.appended')
  sideband.send({ type: 'session.commentary.append', content: 'Done.', delegation_id: null })
  await told
  const ended = until(sideband.stream(), 'session.closed')
  live.send({ type: 'session.close' })
  await ended
})

test('a fork goes on with the configuration of the session, under an id of its own', async () => {
  const { live, id } = await start()
  live.close()
  const fork = new ForksWS(client, { session_id: id })
  fork.send({ type: 'session.start', session: {} })
  const started = (await until(fork.stream(), 'session.started')).at(-1)
  assert.notEqual(dig(started, 'session.id'), id)
  assert.deepEqual(dig(started, 'session.delegation'), delegation)
  fork.close()
  assert.equal((await refusedSocket(simulator, '/v1/live/sessions/none/fork')).status, 404)
  assert.equal((await refusedSocket(simulator, '/v1/live/sessions/none/attach')).status, 404)
})

test('commands before the start, or that the session cannot follow, are errors that name them', async () => {
  const socket = await openSocket(simulator, '/v1/live/sessions')
  const refused = async (event: object) => {
    socket.send({ ...event, event_id: 'mine' })
    const error = await socket.takeType('error')
    assert.equal(dig(error, 'client_event_id'), 'mine')
    return dig(error, 'error.code')
  }
  assert.equal(await refused({ type: 'session.close' }), 'session_not_started')
  assert.equal(await refused({ type: 'session.start', session: { model: 'none' } }), 'model_not_found')
  socket.send({ type: 'session.start', session: { model: 'gpt-live-1' } })
  await socket.takeType('session.started')
  assert.equal(await refused({ type: 'response.create' }), 'delegation_not_configured')
  assert.equal(await refused({ type: 'nothing' }), 'invalid_value')
  socket.ws.close()
})

test('the SDK has sound translated until it closes the session', async () => {
  const front = await startSecureFront(simulator)
  const translation = await OpenAIRealtimeTranslationWS.create(front.client, {
    model: 'gpt-realtime-translate',
    options: front.options,
  })
  const events: unknown[] = []
  translation.on('event', (event) => events.push(event))
  await new Promise((resolve) => translation.on('session.created', resolve))
  const transcription = { model: 'gpt-realtime-whisper' }
  translation.send({ type: 'session.update', session: { audio: { input: { transcription } } } })
  for (const ms of [700, 700, 100]) {
    translation.send({ type: 'session.input_audio_buffer.append', audio: sound(ms, 1) })
  }
  await translation.finish({ timeoutMs: 10_000 })
  const types = events.map((event) => dig(event, 'type'))
  const perPart = [
    'session.input_transcript.delta',
    'session.output_transcript.delta',
    'session.output_audio.delta',
  ]
  assert.deepEqual(types, ['session.created', 'session.updated', ...perPart, ...perPart, 'session.closed'])
  assert.deepEqual(
    digList({ events }, 'events').flatMap((event) => dig(event, 'elapsed_ms') ?? []),
    [1_000, 1_000, 1_000, 1_500, 1_500, 1_500],
  )
  front.close()
})
