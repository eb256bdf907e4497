import assert from 'node:assert/strict'
import OpenAI from 'openai'
import { ResponsesWS } from 'openai/resources/responses/ws'
import { dig } from '../simulator/dig.ts'
import { after, test } from '../support/suite.ts'
import { startBothWays, type Way } from './both-ways.ts'

const both = await startBothWays()
after(() => both.close())

type Sent = Parameters<ResponsesWS['send']>[0]

/** All events of a conversation, in which each message is sent when the message before it has been answered. */
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
