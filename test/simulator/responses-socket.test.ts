import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import OpenAI from 'openai'
import { ResponsesWS } from 'openai/resources/responses/ws'
import type { ResponsesServerEvent } from 'openai/resources/responses/responses'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
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

function openSdk(): { sdk: ResponsesWS; until: (type: string, count?: number) => Promise<ResponsesServerEvent[]> } {
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
  assert.ok(digNumber(second, 'response.usage.input_tokens') > digNumber(first, 'response.usage.output_tokens') - 32)
  sdk.close()
})

test('the events of a response are those of a stream of server-sent events', async () => {
  const socket = await open()
  socket.send(create())
  const events = await socket.takeUntil(isTerminal)
  const streamed = await postEvents(simulator, path, { ...create(), type: undefined, stream: true }, auth)
  const shape = (event: unknown) => [dig(event, 'type'), dig(event, 'sequence_number'), dig(event, 'delta')]
  assert.deepEqual(events.map(shape), streamed.map(({ data }) => shape(data)))
  assert.deepEqual(dig(events.at(-1), 'response.usage'), dig(streamed.at(-1)?.data, 'response.usage'))
  socket.ws.close()
})
