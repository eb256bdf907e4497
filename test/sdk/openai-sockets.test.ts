import assert from 'node:assert/strict'
import OpenAI from 'openai'
import { OpenAIRealtimeWebSocket } from 'openai/realtime/websocket'
import { ResponsesWS } from 'openai/resources/responses/ws'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { dig } from '../simulator/dig.ts'
import { startGateway } from '../support/gateway.ts'
import { closeAfter, test } from '../support/suite.ts'
import { startBothWays, type Way } from './both-ways.ts'

const both = await startBothWays()
closeAfter(both)

type Sent = Parameters<ResponsesWS['send']>[0]

/** All events of a conversation that sends each message after the answer to the previous one. */
async function converse(
  { chatUrl: baseURL, chatKey: apiKey }: Way,
  sent: readonly Sent[],
): Promise<unknown[]> {
  const socket = new ResponsesWS(new OpenAI({ baseURL, apiKey }))
  const seen: unknown[] = []
  let next = 0
  for await (const event of socket.stream()) {
    if (event.type === 'open' || event.type === 'connecting') {
      if (event.type === 'open') socket.send(sent[next++] as Sent)
      continue
    }
    if (event.type === 'message') seen.push(event.message)
    else if (event.type === 'error') seen.push(['error', event.error.error ?? event.error.message])
    else if (event.type === 'close') seen.push(['close', event.code])
    const isOver =
      event.type === 'message' && /^response\.(?:completed|incomplete|failed)$/.test(event.message.type)
    if (!isOver && event.type !== 'error') continue
    const following = sent[next++]
    if (following === undefined) break
    socket.send(following)
  }
  socket.close()
  return seen
}

const conversations: Record<string, readonly Sent[]> = {
  'two turns': [
    { type: 'response.create', model: 'gpt-4o', input: 'One.' },
    { type: 'response.create', model: 'gpt-4o', input: 'Two.' },
  ],
  'a lane, a limit and a tool': [
    { type: 'response.create', model: 'gpt-4o', input: 'Hello.', stream_id: 'a', max_output_tokens: 16 },
    {
      type: 'response.create',
      model: 'gpt-6.1-sol',
      input: 'What is the weather?',
      tools: [{ type: 'function', name: 'get_weather', parameters: { type: 'object' }, strict: false }],
    },
  ],
  'a warm-up': [{ type: 'response.create', model: 'gpt-4o', input: 'Be kind.', generate: false }],
  'what upstream refuses': [
    { type: 'response.create', model: 'gpt-4o', input: 'x', previous_response_id: 'resp_none' },
    { type: 'response.create', model: 'gpt-4o', input: 'x', metadata: { 'x-simulator': 'status=429' } },
    { type: 'response.create', model: 'gpt-4o', input: 'Still here?' },
  ],
}

for (const [name, sent] of Object.entries(conversations)) {
  test(`the SDK sees the same events directly and through the gateway: ${name}`, async () => {
    const events = await both.compare((way) => converse(way, sent))
    assert.ok(events.length >= sent.length)
    assert.match(String(dig(events.at(-1), 'type')), /^response\.(?:completed|incomplete)$/)
  })
}

test('a Realtime client with its key in a subprotocol, as in a browser, works over TLS', async () => {
  const simulator = await startSimulator()
  const gateway = await startGateway({ chatUrl: simulator.chatUrl, secure: true })
  try {
    const client = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: gateway.apiKey })
    const realtime = new OpenAIRealtimeWebSocket({ model: 'gpt-realtime' }, client)
    await new Promise((resolve) => realtime.once('session.created', resolve))
    const content = [{ type: 'input_text' as const, text: 'Hello.' }]
    realtime.send({ type: 'conversation.item.create', item: { type: 'message', role: 'user', content } })
    const done = new Promise((resolve) => realtime.once('response.done', resolve))
    realtime.send({ type: 'response.create', response: { output_modalities: ['text'] } })
    assert.equal(dig(await done, 'response.status'), 'completed')
    assert.equal(realtime.socket.protocol, 'realtime')
    const closed = new Promise((resolve) => realtime.socket.addEventListener('close', resolve))
    realtime.close()
    await closed
  } finally {
    await gateway.close()
    await simulator.close()
  }
})
