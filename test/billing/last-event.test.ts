import assert from 'node:assert/strict'
import net from 'node:net'
import { withDeadline } from '../support/deadline.ts'
import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { closeAfter, test } from '../support/suite.ts'
import { chunk, lastChunk, message } from '../support/wire-bytes.ts'
import { startBillingBench } from './bench-of-one.ts'

const upstream = await ScriptedUpstream.start()
const bench = await startBillingBench({ messagesUrl: upstream.url, chatUrl: `${upstream.url}/v1` })
closeAfter(bench, upstream)

const streamHead = message('HTTP/1.1 200 OK', [
  'Content-Type: text/event-stream',
  'Transfer-Encoding: chunked',
])

/** The chunks in which a client receives a stream, as texts. */
async function readsOf(
  path: string,
  body: unknown,
  onRead: (read: string) => void = () => {},
): Promise<string[]> {
  const text = JSON.stringify(body)
  const reads: string[] = []
  const over = Promise.withResolvers<void>()
  const socket = net.connect(bench.gateway.port, bench.gateway.host)
  socket.on('data', (bytes) => {
    const read = bytes.toString('latin1')
    reads.push(read)
    onRead(read)
    if (/(?:^|\r\n)0\r\n/.test(read)) over.resolve()
  })
  socket.write(
    `POST ${path} HTTP/1.1\r\nHost: gateway\r\nauthorization: Bearer ${bench.gateway.apiKey}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  )
  await withDeadline(over.promise, () => `no end in ${JSON.stringify(reads)}`)
  socket.destroy()
  return reads
}

const said = (data: unknown, name = '') =>
  `${name === '' ? '' : `event: ${name}\n`}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`

const usage = { input_tokens: 10, output_tokens: 2 }
const streams = {
  'data: [DONE]': {
    path: '/v1/chat/completions',
    body: { model: 'gpt-4o', messages: [], stream: true },
    events: [
      said({ id: 'c', choices: [{ index: 0, delta: { content: 'Hello' } }] }),
      said({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
      said({ id: 'c', choices: [], usage: { prompt_tokens: 3, completion_tokens: 1 } }),
      said('[DONE]'),
    ],
  },
  'event: message_stop': {
    path: '/v1/messages',
    body: { model: 'claude-haiku-5-5', max_tokens: 9, messages: [], stream: true },
    events: [
      said({ type: 'message_start', message: { model: 'claude-haiku-5-5', usage } }, 'message_start'),
      said(
        { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
        'content_block_delta',
      ),
      said({ type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage }, 'message_delta'),
      said({ type: 'message_stop' }, 'message_stop'),
    ],
  },
  'event: response.completed': {
    path: '/v1/responses',
    body: { model: 'gpt-5', input: 'hi', stream: true },
    events: [
      said(
        { type: 'response.output_text.delta', output_index: 0, delta: 'Hello' },
        'response.output_text.delta',
      ),
      said({ type: 'response.completed', response: { model: 'gpt-5', usage } }, 'response.completed'),
    ],
  },
}

for (const [last, { path, body, events }] of Object.entries(streams)) {
  for (const [how, chunks] of [
    ['each event for itself', events],
    ['all events at once', [events.join('')]],
    ['the last event cut in two', [events.join('').slice(0, -5), events.join('').slice(-5)]],
  ] as const) {
    test(`${last} leaves in one write with the end of the body and the figures: ${how}`, async () => {
      const seen = Promise.withResolvers<void>()
      upstream.queue([
        { send: streamHead },
        ...chunks.map((text) => ({ send: chunk(text) })),
        { pause: seen.promise },
        { send: lastChunk() },
      ])
      const arrival = upstream.nextRequest()
      const reading = readsOf(path, body)
      await arrival
      await new Promise((resolve) => setImmediate(resolve))
      seen.resolve()
      const reads = await reading
      const end = reads.at(-1) ?? ''
      const tail = how === 'the last event cut in two' ? events.join('').slice(-5) : last
      assert.ok(end.includes(tail), JSON.stringify(reads))
      assert.match(end, /\r\n0\r\nx-svc-cost-usd: 0\.0/)
      assert.ok(reads.join('').includes('Hello'))
    })
  }
}

test('a last event without the end of its stream is sent without waiting for it', async () => {
  const arrived = Promise.withResolvers<void>()
  const { path, body, events } = streams['event: message_stop']
  upstream.queue([
    { send: streamHead },
    ...events.map((text) => ({ send: chunk(text) })),
    // Upstream sends nothing more until the client has the event.
    { pause: arrived.promise },
    { send: lastChunk() },
  ])
  const reads = await readsOf(path, body, (read) => {
    if (read.includes('message_stop')) arrived.resolve()
  })
  assert.match(reads.at(-1) ?? '', /^0\r\nx-svc-cost-usd: /)
})
