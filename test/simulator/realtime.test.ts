import assert from 'node:assert/strict'
import { once } from 'node:events'
import { OpenAIRealtimeWS } from 'openai/realtime/ws'
import type { RealtimeServerEvent } from 'openai/resources/realtime/realtime'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { after, before, test } from '../support/suite.ts'
import { dig, digList, digNumber, digText } from './dig.ts'
import { startSecureFront } from './secure-front.ts'
import { openSocket, type SocketClient } from './socket-client.ts'

let simulator: Simulator
let front: Awaited<ReturnType<typeof startSecureFront>>
before(async () => {
  simulator = await startSimulator()
  front = await startSecureFront(simulator)
})
after(async () => {
  front.close()
  await simulator.close()
})

const path = '/v1/realtime?model=gpt-realtime'
const open = async (target = path): Promise<SocketClient> => {
  const socket = await openSocket(simulator, target)
  await socket.takeType('session.created')
  return socket
}
const say = (text: string) => ({
  type: 'conversation.item.create',
  item: { type: 'message', role: 'user', content: [{ type: 'input_text', text }] },
})
const inText = { type: 'response.create', response: { output_modalities: ['text'] } }
/** A sound of so many milliseconds, 24,000 samples of 16 bits a second. */
const append = (ms: number, byte: number) => ({
  type: 'input_audio_buffer.append',
  audio: Buffer.alloc(ms * 48, byte).toString('base64'),
})
const isDone = (event: unknown): boolean => dig(event, 'type') === 'response.done'
const typesOf = (events: readonly unknown[]) =>
  events.map((event) => dig(event, 'type')).filter((type, at, all) => type !== all[at - 1])

test('the SDK opens a session, changes it, and has an answer in words', async () => {
  const realtime = new OpenAIRealtimeWS({ model: 'gpt-realtime', options: front.options }, front.client)
  const events: RealtimeServerEvent[] = []
  realtime.on('event', (event) => events.push(event))
  realtime.on('error', (error) => assert.fail(error))
  const created = new Promise((resolve) => realtime.once('session.created', resolve))
  assert.equal(dig(await created, 'session.model'), 'gpt-realtime')
  const updated = new Promise((resolve) => realtime.once('session.updated', resolve))
  realtime.send({ type: 'session.update', session: { type: 'realtime', output_modalities: ['text'] } })
  assert.deepEqual(dig(await updated, 'session.output_modalities'), ['text'])
  realtime.send({
    type: 'conversation.item.create',
    item: { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hello.' }] },
  })
  const done = new Promise((resolve) => realtime.once('response.done', resolve))
  realtime.send({ type: 'response.create' })
  const response = await done
  assert.equal(dig(response, 'response.status'), 'completed')
  assert.match(digText(response, 'response.output.0.content.0.text'), /Hello\./)
  const closed = once(realtime.socket, 'close')
  realtime.close()
  await closed
  assert.equal(new Set(events.map((event) => dig(event, 'event_id'))).size, events.length)
})

test('a spoken answer is sound and its transcript, and counts both', async () => {
  const socket = await open()
  socket.send(say('Hello.'))
  await socket.takeType('conversation.item.done')
  socket.send({ type: 'response.create' })
  const events = await socket.takeUntil(isDone)
  const transcript = events
    .filter((event) => dig(event, 'type') === 'response.output_audio_transcript.delta')
    .map((event) => digText(event, 'delta'))
    .join('')
  const done = events.at(-1)
  assert.equal(dig(done, 'response.output.0.content.0.transcript'), transcript)
  const pieces = events.filter((event) => dig(event, 'type') === 'response.output_audio.delta').length
  assert.equal(dig(done, 'response.usage.output_token_details.audio_tokens'), pieces * 5)
  assert.deepEqual(typesOf(events).slice(0, 4), [
    'response.created',
    'response.output_item.added',
    'conversation.item.added',
    'response.content_part.added',
  ])
  assert.deepEqual(typesOf(events).slice(-6), [
    'response.output_audio.done',
    'response.output_audio_transcript.done',
    'response.content_part.done',
    'response.output_item.done',
    'conversation.item.done',
    'response.done',
  ])
  socket.ws.close()
})

test('what an answer has read before is cached for the next one', async () => {
  const socket = await open()
  const usages: unknown[] = []
  for (const text of ['One.', 'Two.', 'Three.']) {
    socket.send(say(text))
    socket.send(inText)
    usages.push(dig((await socket.takeUntil(isDone)).at(-1), 'response.usage'))
  }
  const [first, second, third] = usages
  assert.equal(dig(first, 'input_token_details.cached_tokens'), 0)
  assert.equal(
    dig(second, 'input_token_details.cached_tokens_details.text_tokens'),
    dig(first, 'input_tokens'),
  )
  assert.equal(dig(third, 'input_token_details.cached_tokens'), dig(second, 'input_tokens'))
  assert.ok(digNumber(third, 'input_tokens') > digNumber(second, 'input_tokens'))
  socket.ws.close()
})

test('speech and then silence are a turn: it is committed, written down and answered', async () => {
  const socket = await open()
  const transcription = { model: 'gpt-4o-transcribe' }
  socket.send({ type: 'session.update', session: { audio: { input: { transcription } } } })
  await socket.takeType('session.updated')
  socket.send(append(600, 1))
  assert.equal(dig(await socket.takeType('input_audio_buffer.speech_started'), 'audio_start_ms'), 0)
  socket.send(append(250, 0))
  const stopped = await socket.takeType('input_audio_buffer.speech_stopped')
  const committed = await socket.takeType('input_audio_buffer.committed')
  assert.equal(dig(stopped, 'item_id'), dig(committed, 'item_id'))
  const events = [...(await socket.takeUntil(isDone))]
  const completedType = 'conversation.item.input_audio_transcription.completed'
  const written = events.find((event) => dig(event, 'type') === completedType)
  assert.equal(dig(written, 'item_id'), dig(committed, 'item_id'))
  assert.deepEqual(dig(written, 'usage.input_token_details'), { text_tokens: 0, audio_tokens: 9 })
  assert.equal(dig(events.at(-1), 'response.usage.input_token_details.audio_tokens'), 9)
  socket.ws.close()
})

test('without voice detection only a commit and a create begin anything', async () => {
  const socket = await open()
  socket.send({ type: 'session.update', session: { audio: { input: { turn_detection: null } } } })
  await socket.takeType('session.updated')
  socket.send({ type: 'input_audio_buffer.commit' })
  assert.equal(dig(await socket.takeType('error'), 'error.code'), 'input_audio_buffer_commit_empty')
  socket.send(append(600, 1))
  socket.send(append(600, 0))
  socket.send({ type: 'input_audio_buffer.clear' })
  socket.send(append(600, 1))
  socket.send({ type: 'input_audio_buffer.commit' })
  const before = await socket.takeUntil((event) => dig(event, 'type') === 'conversation.item.done')
  assert.deepEqual(typesOf(before), [
    'input_audio_buffer.cleared',
    'input_audio_buffer.committed',
    'conversation.item.added',
    'conversation.item.done',
  ])
  socket.send(inText)
  const done = (await socket.takeUntil(isDone)).at(-1)
  assert.equal(dig(done, 'response.usage.input_token_details.audio_tokens'), 6)
  socket.ws.close()
})

test('a response that is cancelled says what it has used until then', async () => {
  const socket = await open()
  socket.send(say('Hello.'))
  socket.send({ type: 'response.create', response: { metadata: { 'x-simulator': 'stall=9' } } })
  const created = await socket.takeType('response.created')
  await socket.takeType('response.output_audio.delta')
  socket.send({ type: 'response.create', event_id: 'mine' })
  const refused = await socket.takeType('error')
  assert.equal(dig(refused, 'error.code'), 'conversation_already_has_active_response')
  assert.equal(dig(refused, 'error.event_id'), 'mine')
  socket.send({ type: 'response.cancel', response_id: dig(created, 'response.id') })
  const done = (await socket.takeUntil(isDone)).at(-1)
  assert.deepEqual(dig(done, 'response.status_details'), { type: 'cancelled', reason: 'client_cancelled' })
  assert.ok(digNumber(done, 'response.usage.output_tokens') > 0)
  socket.send({ type: 'response.cancel' })
  assert.equal(dig(await socket.takeType('error'), 'error.code'), 'response_cancel_not_active')
  socket.ws.close()
})

test('speech interrupts the answer that is being given', async () => {
  const socket = await open()
  socket.send(say('Hello.'))
  socket.send({ type: 'response.create', response: { metadata: { 'x-simulator': 'stall=9' } } })
  await socket.takeType('response.output_audio.delta')
  socket.send(append(600, 1))
  const first = (await socket.takeUntil(isDone)).at(-1)
  assert.equal(dig(first, 'response.status_details.reason'), 'turn_detected')
  socket.send(append(300, 0))
  const second = (await socket.takeUntil(isDone)).at(-1)
  assert.equal(dig(second, 'response.status'), 'completed')
  socket.ws.close()
})

test('a limit cuts an answer, and one beside the conversation leaves no item in it', async () => {
  const socket = await open()
  socket.send({ type: 'response.create', response: { max_output_tokens: 40 } })
  const cut = (await socket.takeUntil(isDone)).at(-1)
  assert.deepEqual(dig(cut, 'response.status_details'), { type: 'incomplete', reason: 'max_output_tokens' })
  assert.ok(digNumber(cut, 'response.usage.output_tokens') <= 40)
  const input = [say('Beside.').item]
  socket.send({
    type: 'response.create',
    response: { conversation: 'none', input, output_modalities: ['text'] },
  })
  const beside = await socket.takeUntil(isDone)
  assert.ok(!typesOf(beside).includes('conversation.item.added'))
  assert.equal(dig(beside.at(-1), 'response.conversation_id'), null)
  assert.equal(dig(beside.at(-1), 'response.usage.input_tokens'), 4 + 2)
  socket.ws.close()
})

test('a function is called with arguments, and its result is answered with words', async () => {
  const socket = await open()
  const tools = [{ type: 'function', name: 'get_weather', parameters: { type: 'object' } }]
  socket.send({ type: 'session.update', session: { tools, output_modalities: ['text'] } })
  socket.send(say('What is the weather?'))
  socket.send({ type: 'response.create' })
  const call = dig((await socket.takeUntil(isDone)).at(-1), 'response.output.0')
  assert.equal(dig(call, 'type'), 'function_call')
  const item = { type: 'function_call_output', call_id: dig(call, 'call_id'), output: 'mild' }
  socket.send({ type: 'conversation.item.create', item })
  socket.send({ type: 'response.create' })
  const done = (await socket.takeUntil(isDone)).at(-1)
  assert.deepEqual(
    digList(done, 'response.output').map((entry) => dig(entry, 'type')),
    ['message'],
  )
  socket.ws.close()
})

test('a model that is not there closes the socket, an event that is not known does not', async () => {
  const socket = await openSocket(simulator, '/v1/realtime?model=gpt-none')
  assert.equal(dig(await socket.takeType('error'), 'error.code'), 'model_not_found')
  assert.deepEqual(await socket.closed(), { code: 4_000, reason: 'invalid_request_error.model_not_found' })
  const other = await open()
  other.send({ type: 'response.steer', event_id: 'mine' })
  assert.equal(dig(await other.takeType('error'), 'error.event_id'), 'mine')
  other.send({ type: 'session.update', session: { audio: { input: { transcription: { model: 'none' } } } } })
  assert.equal(dig(await other.takeType('error'), 'error.code'), 'model_not_found')
  other.ws.close()
})

test('in a deterministic simulator the same talk gets the same bytes', async () => {
  const talk = async (): Promise<readonly unknown[]> => {
    const own = await startSimulator({ deterministic: true })
    const socket = await openSocket(own, path)
    await socket.takeType('session.created')
    for (const event of [append(600, 1), append(250, 0)]) socket.send(event)
    await socket.takeUntil(isDone)
    socket.send(say('Goodbye.'))
    socket.send(inText)
    await socket.takeUntil(isDone)
    await own.close()
    return socket.received
  }
  assert.deepEqual(await talk(), await talk())
})
