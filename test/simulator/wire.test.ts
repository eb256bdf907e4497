import assert from 'node:assert/strict'
import { connect } from 'node:net'
import type { RequestEntry } from '../../simulator/answer-request.ts'
import { type SimulatorOptions, startSimulator } from '../../simulator/start-simulator.ts'
import { exchange } from '../support/raw-client.ts'
import { untilCounted } from '../support/simulator-counts.ts'
import { closeAfter, test } from '../support/suite.ts'
import { dig } from './dig.ts'
import {
  anthropicHeaders,
  chatBody,
  messageBody,
  parseEvents,
  postEvents,
  postJson,
  rawPost,
  type Sent,
} from './wire-client.ts'

const entries: RequestEntry[] = []
const simulator = await startSimulator({
  ...{ messagesKey: 'sk-ant-right', chatKey: 'sk-right', onRequest: (entry) => entries.push(entry) },
})
closeAfter(simulator)

const messagesKey = { ...anthropicHeaders, 'x-api-key': 'sk-ant-right' }
const chatKey = { authorization: 'Bearer sk-right' }
const keys = ['anthropic-version: 2026-10-21', 'x-api-key: sk-ant-right']
const streamed = messageBody({ stream: true })
const asking = (behaviour: string): Sent => ({ headers: { ...messagesKey, ...chatKey }, behaviour })
const raw = (behaviour: string, body: object = streamed) =>
  exchange(simulator, rawPost('/v1/messages', body, [...keys, `x-simulator: ${behaviour}`]))

test('a deterministic simulator sends the same bytes for the same request, head included', async () => {
  const run = async () => {
    await using own = await started({ deterministic: true })
    const answers: string[] = []
    for (const [path, body] of [
      ['/v1/messages', messageBody()],
      ['/v1/messages', streamed],
      ['/v1/messages/batches', { requests: [{ custom_id: 'a', params: messageBody() }] }],
      ['/v1/chat/completions', chatBody({ stream: true })],
      ['/v1/responses', { model: 'gpt-4o', input: 'x', background: true }],
      ['/v1/nothing', {}],
    ] as const) {
      const { headerLines, body: answer } = await exchange(own, rawPost(path, body, keys))
      answers.push(`${headerLines.join('\n')}\n${answer}`)
    }
    return answers
  }
  const first = await run()
  assert.deepEqual(await run(), first)
  assert.equal(new Set(first).size, first.length)
})

test('every request is counted and passed to the observer unchanged', async () => {
  entries.length = 0
  const before = simulator.requests
  const body = JSON.stringify(chatBody())
  const lines = ['Authorization: Bearer sk-right', 'X-A: 1', 'x-a: 2']
  await exchange(simulator, rawPost('/v1/chat/completions?a=%20b&&', body, lines))
  await exchange(simulator, rawPost('/v1/chat/completions', body))
  assert.equal(simulator.requests - before, 2)
  const [first, second] = entries
  assert.deepEqual([first?.method, first?.path], ['POST', '/v1/chat/completions?a=%20b&&'])
  assert.deepEqual(first?.headersRaw.slice(-4), ['X-A', '1', 'x-a', '2'])
  assert.deepEqual([String(first?.bodyBytes), first?.isComplete], [body, true])
  // A wrong key is refused at once: the body is never read.
  assert.deepEqual([second?.bodyBytes.length, second?.isComplete], [0, false])
})

test('a client that leaves is counted, while it waits, reads or uploads', async () => {
  await using own = await started({ pace: 'realistic' })
  const leave = async (behaviour: string, count: number) => {
    const leaving = new AbortController()
    const headers = { ...anthropicHeaders, 'x-simulator': behaviour }
    const body = JSON.stringify(streamed)
    const sent = { method: 'POST', headers, body, signal: leaving.signal }
    const response = fetch(`${own.messagesUrl}/v1/messages`, sent)
    await untilCounted(own, (counts) => counts.requests === count)
    if (behaviour.startsWith('drip')) await response
    leaving.abort()
    await response.then((left) => left.text()).catch(() => undefined)
    await untilCounted(own, (counts) => counts.aborted === count)
  }
  await leave('delay=600000', 1)
  await leave('drip=600000', 2)
  const head = 'POST /v1/files HTTP/1.1\r\nhost: s\r\ncontent-length: 100\r\n\r\nhalf of'
  const socket = connect(own.port, own.host, () => socket.write(head))
  await untilCounted(own, (counts) => counts.requests === 3)
  socket.destroy()
  await untilCounted(own, (counts) => counts.aborted === 3)
})

test('a cut breaks the connection after the requested events or bytes, or beyond the end', async () => {
  const { aborted } = simulator
  for (const count of [0, 1, 4]) {
    const { body, ended } = await raw(`cut=event:${count}`)
    assert.deepEqual([parseEvents(String(body)).length, ended], [count, 'cut'])
  }
  const bytes = await raw('cut=byte:10')
  assert.deepEqual([bytes.body.length, bytes.ended], [10, 'cut'])
  assert.equal((await raw('cut=event:9999')).ended, 'cut')
  const whole = await raw('', messageBody())
  const half = await raw('cut=event:1', messageBody())
  assert.deepEqual([half.body.length, half.ended], [whole.body.length >> 1, 'cut'])
  assert.equal((await raw('reset')).statusLine, '')
  assert.equal(
    simulator.aborted,
    aborted,
    'a connection that the simulator closed is not counted as one that a client left',
  )
})

test("usage, tier, model and tokens are reported as requested, in upstream's events", async () => {
  const over = 'usage={"output_tokens":-5,"server_tool_use":{"web_search_requests":3}}'
  const sent = asking(`${over};tier=batch;model=claude-other`)
  const { json } = await postJson(simulator, '/v1/messages', messageBody(), sent)
  assert.equal(dig(json, 'usage.output_tokens'), -5)
  assert.deepEqual([dig(json, 'usage.service_tier'), dig(json, 'model')], ['batch', 'claude-other'])
  const events = await postEvents(simulator, '/v1/messages', streamed, sent)
  assert.equal(dig(events[0]?.data, 'message.usage.output_tokens'), 1)
  assert.equal(dig(events.at(-2)?.data, 'usage.output_tokens'), -5)
  assert.equal(dig(events.at(-2)?.data, 'usage.server_tool_use.web_search_requests'), 3)
  const long = await postJson(simulator, '/v1/chat/completions', chatBody(), asking('tokens=5000;tier=flex'))
  assert.equal(dig(long.json, 'usage.completion_tokens'), 5_000)
  assert.deepEqual(
    [dig(long.json, 'service_tier'), dig(long.json, 'choices.0.finish_reason')],
    ['flex', 'stop'],
  )
})

async function started(options: SimulatorOptions) {
  const own = await startSimulator(options)
  // Spreading would freeze the counters, which are getters.
  return Object.assign(own, { [Symbol.asyncDispose]: () => own.close() })
}
