import assert from 'node:assert/strict'
import OpenAI from 'openai'
import type { ResponsesServerEvent } from 'openai/resources/responses/responses'
import { ResponsesWS } from 'openai/resources/responses/ws'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { after, before, test } from '../support/suite.ts'
import { dig, digNumber, digText } from './dig.ts'
import { isTerminal, openSocket } from './socket-client.ts'
import { postEvents } from './wire-client.ts'

let simulator: Simulator
before(async () => {
  simulator = await startSimulator({ chatKey: 'sk-simulator' })
})
after(() => simulator.close())

const path = '/v1/responses'
const auth = { headers: { authorization: 'Bearer sk-simulator' } }
const create = (more: object = {}) => ({
  type: 'response.create',
  model: 'gpt-6.1-sol',
  input: 'Tell me about tollgates.',
  ...more,
})
const open = (behaviour?: string) =>
  openSocket(simulator, path, { ...auth, ...(behaviour === undefined ? {} : { behaviour }) })

function openSdk(): {
  sdk: ResponsesWS
  until: (type: string, count?: number) => Promise<ResponsesServerEvent[]>
} {
  const client = new OpenAI({ apiKey: 'sk-simulator', baseURL: simulator.chatUrl })
  const sdk = new ResponsesWS(client)
  const until = async (type: string, count = 1): Promise<ResponsesServerEvent[]> => {
    const events: ResponsesServerEvent[] = []
    let left = count
    for await (const event of sdk.stream()) {
      if (event.type === 'error' && event.error.error === undefined) throw event.error
      if (event.type !== 'message') continue
      events.push(event.message)
      if (event.message.type === type) left -= 1
      if (left === 0) break
    }
    return events
  }
  return { sdk, until }
}

test('the SDK has two turns on one socket, and the second continues the first', async () => {
  const { sdk, until } = openSdk()
  sdk.send({ type: 'response.create', model: 'gpt-6.1-sol', input: 'One.' })
  const first = (await until('response.completed')).at(-1)
  const id = digText(first, 'response.id')
  sdk.send({ type: 'response.create', model: 'gpt-6.1-sol', input: 'Two.', previous_response_id: id })
  const second = (await until('response.completed')).at(-1)
  assert.equal(dig(second, 'response.previous_response_id'), id)
  assert.ok(
    digNumber(second, 'response.usage.input_tokens') > digNumber(first, 'response.usage.output_tokens') - 32,
  )
  sdk.close()
})

test('the events of a response are those of a stream of server-sent events', async () => {
  const socket = await open()
  socket.send(create())
  const events = await socket.takeUntil(isTerminal)
  const streamed = await postEvents(simulator, path, { ...create(), type: undefined, stream: true }, auth)
  const shape = (event: unknown) => [dig(event, 'type'), dig(event, 'sequence_number'), dig(event, 'delta')]
  assert.deepEqual(
    events.map(shape),
    streamed.map(({ data }) => shape(data)),
  )
  assert.deepEqual(dig(events.at(-1), 'response.usage'), dig(streamed.at(-1)?.data, 'response.usage'))
  socket.ws.close()
})

test('lanes are written side by side, each event with its stream_id, and one lane in its order', async () => {
  const socket = await open()
  for (const streamId of ['a', 'b', 'a']) socket.send(create({ stream_id: streamId }))
  const events: unknown[] = []
  for (const _ of [1, 2, 3]) events.push(...(await socket.takeUntil(isTerminal)))
  const lanes = events.map((event) => digText(event, 'stream_id'))
  assert.ok(lanes.lastIndexOf('a') > lanes.indexOf('b') && lanes.lastIndexOf('b') > lanes.indexOf('a'))
  const ofA = events.filter((event) => dig(event, 'stream_id') === 'a')
  const [first = '', second = ''] = ofA.flatMap((event) => dig(event, 'response.id') ?? []).map(String)
  assert.equal(first, second, 'created and in_progress of the first response come first')
  const begun = ofA.flatMap((event, at) => (dig(event, 'type') === 'response.created' ? at : []))
  const ended = ofA.flatMap((event, at) => (isTerminal(event) ? at : []))
  assert.ok((begun[1] ?? 0) > (ended[0] ?? Number.POSITIVE_INFINITY), 'the second begins after the first')
  socket.ws.close()
})

test('a steered response ends incomplete, and its successor follows without a create', async () => {
  const { sdk, until } = openSdk()
  const metadata = { 'x-simulator': 'stall=9' }
  sdk.send({ type: 'response.create', model: 'gpt-4o', input: 'Begin.', stream_id: 'lane', metadata })
  const begun = await until('response.output_text.delta')
  const id = digText(begun[0], 'response.id')
  const ending = until('response.incomplete')
  sdk.send({ type: 'response.steer', previous_response_id: id, input: 'Shorter, please.' })
  const events = await ending
  const accepted = events.find((event) => event.type === 'response.steer.accepted')
  assert.equal(dig(accepted, 'steer.previous_response_id'), id)
  const last = events.at(-1)
  assert.deepEqual(dig(last, 'response.incomplete_details'), { reason: 'steered' })
  assert.equal(dig(last, 'response.status'), 'incomplete')
  assert.ok(digNumber(last, 'response.usage.output_tokens') > 0)
  assert.equal(dig(last, 'response.output.0.status'), 'incomplete')

  const successor = (await until('response.created')).at(-1)
  assert.equal(dig(successor, 'response.previous_response_id'), id)
  assert.equal(dig(successor, 'stream_id'), 'lane')
  sdk.close()
})

test('input that is steered into a response with a call of a tool waits for the result', async () => {
  const socket = await open()
  const tools = [{ type: 'function', name: 'get_weather', parameters: { type: 'object' } }]
  socket.send(create({ tools, input: 'What is the weather?', metadata: { 'x-simulator': 'stall=3' } }))
  const created = await socket.takeType('response.in_progress')
  const id = digText(created, 'response.id')
  socket.send({ type: 'response.steer', previous_response_id: id, input: 'In Bern.' })
  await socket.takeType('response.completed')
  const pending = await socket.takeType('response.steer.pending')
  const stub = dig(pending, 'required_input.0')
  assert.equal(dig(stub, 'type'), 'function_call_output')
  assert.equal(dig(stub, 'name'), 'get_weather')
  const output = { type: 'function_call_output', call_id: dig(stub, 'call_id'), output: 'mild' }
  socket.send(create({ tools, input: [output], previous_response_id: id }))
  await socket.takeType('response.completed')
  socket.ws.close()
})

test('steering what is over, unknown or not of the user is answered with the input', async () => {
  const socket = await open()
  socket.send(create())
  const id = digText(await socket.takeType('response.completed'), 'response.id')
  socket.send({ type: 'response.steer', previous_response_id: id, input: 'More.' })
  const over = await socket.takeType('response.steer.failed')
  assert.equal(dig(over, 'error.code'), 'response_already_completed')
  assert.equal(dig(over, 'steer.input'), 'More.')
  socket.send({ type: 'response.steer', previous_response_id: 'resp_none', input: 'More.' })
  assert.equal(dig(await socket.takeType('response.steer.failed'), 'error.code'), 'response_not_found')
  socket.ws.close()
})

test('a warm-up writes nothing, and its id is continued even if it is not stored', async () => {
  const { sdk, until } = openSdk()
  sdk.send({ type: 'response.create', model: 'gpt-4o', input: 'Be kind.', generate: false, store: false })
  const warm = (await until('response.completed')).at(-1)
  assert.deepEqual(dig(warm, 'response.output'), [])
  assert.equal(dig(warm, 'response.usage.output_tokens'), 0)
  const id = digText(warm, 'response.id')
  sdk.send({ type: 'response.create', model: 'gpt-4o', input: 'Hello.', previous_response_id: id })
  const next = (await until('response.completed')).at(-1)
  assert.ok(digNumber(next, 'response.usage.input_tokens') > digNumber(warm, 'response.usage.input_tokens'))
  sdk.close()
})

test('what cannot be answered is an error event, and the socket stays open', async () => {
  const socket = await open()
  const refused = async (message: object | string) => {
    socket.send(message)
    const event = await socket.takeType('error')
    return [dig(event, 'status'), dig(event, 'error.code'), dig(event, 'stream_id')]
  }
  assert.deepEqual(await refused('no JSON'), [400, 'invalid_json', undefined])
  assert.deepEqual(await refused({ type: 'response.cancel' }), [400, 'invalid_value', undefined])
  assert.deepEqual(await refused(create({ model: 'gpt-none', stream_id: 's' })), [
    404,
    'model_not_found',
    's',
  ])
  assert.deepEqual(await refused(create({ background: true })), [400, null, undefined])
  assert.deepEqual(await refused(create({ previous_response_id: 'resp_none' })), [
    400,
    'previous_response_not_found',
    undefined,
  ])
  assert.deepEqual(await refused(create({ metadata: { 'x-simulator': 'status=429' } })), [
    429,
    'rate_limit_exceeded',
    undefined,
  ])
  socket.send(create())
  await socket.takeType('response.completed')
  socket.ws.close()
})
