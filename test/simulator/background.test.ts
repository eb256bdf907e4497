import assert from 'node:assert/strict'
import { type Simulator, startSimulator } from '../../simulator/start-simulator.ts'
import { countTokens } from '../../simulator/tokens.ts'
import { untilCounted } from '../support/simulator-counts.ts'
import { afterEach, beforeEach, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { dig, digList, digNumber, digText } from './dig.ts'
import { parseEvents, post, postEvents, postJson, type Sent, send, type WireEvent } from './wire-client.ts'

let simulator: Simulator
let nowMs = 0
beforeEach(async () => {
  nowMs = 0
  simulator = await startSimulator({ clock: () => nowMs })
})
afterEach(() => simulator.close())

const bodyWith = (more: object) => ({ model: 'gpt-4o', input: 'Tell me about tollgates.', ...more })
const create = (more: object = {}, sent: Sent = {}) =>
  postJson(simulator, '/v1/responses', bodyWith(more), sent)
const look = async (id: string) => (await send(simulator, 'GET', `/v1/responses/${id}`)).json
const resume = async (id: string, after: number): Promise<WireEvent[]> => {
  const query = `stream=true&starting_after=${after}`
  return parseEvents(await (await fetch(`${simulator.chatUrl}/responses/${id}?${query}`)).text())
}
// The simulator writes 80 tokens a second after 350 ms, and a second in the queue before that.
const behaviour = 'tokens=80'

test('a background response is queued, then in progress, then complete with usage', async () => {
  const { json } = await create({ background: true }, { behaviour })
  const id = digText(json, 'id')
  const seen: unknown[] = [dig(json, 'status')]
  for (const at of [999, 1_000, 2_349, 2_350]) {
    nowMs = at
    seen.push(dig(await look(id), 'status'))
  }
  assert.deepEqual(seen, ['queued', 'queued', 'in_progress', 'in_progress', 'completed'])
  assert.equal(dig(await look(id), 'usage.output_tokens'), 80)
  nowMs = 1_500
  const running = await look(id)
  assert.equal(dig(running, 'usage'), null)
  assert.deepEqual(dig(running, 'output'), [])
})

test('a background response that is cancelled keeps the words and the usage of its time', async () => {
  const { json } = await create({ background: true }, { behaviour })
  const id = digText(json, 'id')
  nowMs = 1_850
  const cancelled = await postJson(simulator, `/v1/responses/${id}/cancel`, {})
  assert.equal(dig(cancelled.json, 'status'), 'cancelled')
  assert.equal(dig(cancelled.json, 'usage.output_tokens'), 40)
  assert.equal(countTokens(digText(cancelled.json, 'output.0.content.0.text')), 40)
  nowMs = 60_000
  assert.deepEqual(await look(id), cancelled.json)
  const early = await create({ background: true }, { behaviour })
  const before = await postJson(simulator, `/v1/responses/${digText(early.json, 'id')}/cancel`, {})
  assert.equal(dig(before.json, 'usage.output_tokens'), 0)
  assert.deepEqual(dig(before.json, 'output'), [])
})

test('a response that is not in the background cannot be cancelled, and one that ended stays as it is', async () => {
  const plain = await create()
  const refused = await postJson(simulator, `/v1/responses/${digText(plain.json, 'id')}/cancel`, {})
  assert.equal(refused.status, 400)
  const { json } = await create({ background: true })
  nowMs = 60_000
  const late = await postJson(simulator, `/v1/responses/${digText(json, 'id')}/cancel`, {})
  assert.equal(dig(late.json, 'status'), 'completed')
  assert.equal((await create({ background: true, store: false })).status, 400)
})

test('a background response streams from the queue on, and is resumed after the event last seen', async () => {
  const events = await postEvents(simulator, '/v1/responses', bodyWith({ background: true, stream: true }))
  const names = events.slice(0, 4).map(({ event }) => event)
  assert.deepEqual(names, [
    'response.created',
    'response.queued',
    'response.in_progress',
    'response.output_item.added',
  ])
  assert.equal(dig(events[1]?.data, 'response.status'), 'queued')
  const id = digText(events[0]?.data, 'response.id')
  // A response whose end was streamed is completed without another wait.
  assert.equal(dig(await look(id), 'status'), 'completed')
  const rest = await resume(id, 5)
  assert.equal(dig(rest[0]?.data, 'sequence_number'), 6)
  assert.deepEqual(rest.at(-1), events.at(-1))
})

test('a background response goes on when its stream is left', async () => {
  const id = await readAndLeave({ background: true, stream: true }, 'tokens=80;drip=5', 6)
  assert.equal(dig(await look(id), 'status'), 'queued')
  nowMs = 60_000
  assert.equal(dig(await look(id), 'usage.output_tokens'), 80)
})

test('a stream that is left stops, and what is stored tells what it used by then', async () => {
  const id = await readAndLeave({ stream: true, model: 'gpt-6.1-sol' }, 'tokens=2000;drip=5', 12)
  const stored = await look(id)
  assert.equal(dig(stored, 'status'), 'cancelled')
  const text = digText(stored, 'output.1.content.0.text')
  assert.ok(countTokens(text) > 5 && countTokens(text) < 2_000, text)
  assert.equal(dig(stored, 'usage.output_tokens'), 32 + countTokens(text))
  assert.equal(dig(stored, 'usage.output_tokens_details.reasoning_tokens'), 32)
  const total = digNumber(stored, 'usage.input_tokens') + digNumber(stored, 'usage.output_tokens')
  assert.equal(dig(stored, 'usage.total_tokens'), total)
})

test('a stream that breaks before any output is stored with its input alone', async () => {
  const response = await post(simulator, '/v1/responses', bodyWith({ stream: true }), {
    behaviour: 'cut=event:2',
  })
  const text = await readUntilBroken(response)
  const stored = await look(digText(parseEvents(text)[0]?.data, 'response.id'))
  assert.equal(dig(stored, 'status'), 'cancelled')
  assert.equal(dig(stored, 'usage.output_tokens'), 0)
  assert.ok(digNumber(stored, 'usage.input_tokens') > 0)
})

test('a stream that is being written is in progress until its end', async () => {
  const response = await post(simulator, '/v1/responses', bodyWith({ stream: true }), {
    behaviour: 'tokens=20;drip=20',
  })
  const reader = response.body?.getReader()
  const first = Buffer.from((await reader?.read())?.value ?? []).toString()
  const id = digText(parseEvents(first)[0]?.data, 'response.id')
  assert.equal(dig(await look(id), 'status'), 'in_progress')
  while ((await reader?.read())?.done === false);
  assert.equal(dig(await look(id), 'status'), 'completed')
})

test('the input of a response is listed with ids that stay, the earlier turns included', async () => {
  const first = await create()
  const next = await create({
    previous_response_id: dig(first.json, 'id'),
    input: [{ role: 'user', content: [{ type: 'input_text', text: 'And bridges?' }] }],
  })
  const path = `/v1/responses/${digText(next.json, 'id')}/input_items`
  const { json } = await send(simulator, 'GET', path)
  const items = digList(json, 'data')
  assert.deepEqual(
    items.map((item) => [dig(item, 'role'), dig(item, 'content.0.type')]),
    [
      ['user', 'input_text'],
      ['assistant', 'output_text'],
      ['user', 'input_text'],
    ],
  )
  assert.equal(dig(items[2], 'content.0.text'), 'Tell me about tollgates.')
  const ordered = await send(simulator, 'GET', `${path}?order=asc&limit=1`)
  assert.deepEqual(dig(ordered.json, 'data'), [items[2]])
  const after = await send(simulator, 'GET', `${path}?order=asc&after=${dig(items[2], 'id')}`)
  assert.deepEqual(dig(after.json, 'data'), [items[1], items[0]])
})

/** Reads some events of a stream, leaves, and resolves with the response's id once the simulator has noticed. */
async function readAndLeave(more: object, asked: string, events: number): Promise<string> {
  const { aborted } = simulator
  const leaving = new AbortController()
  const response = await fetch(`${simulator.chatUrl}/responses`, {
    method: 'POST',
    headers: { 'x-simulator': asked },
    body: JSON.stringify(bodyWith(more)),
    signal: leaving.signal,
  })
  let text = ''
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString()
    if (text.split('\n\n').length > events) break
  }
  leaving.abort()
  const id = digText(parseEvents(text.slice(0, text.lastIndexOf('\n\n')))[0]?.data, 'response.id')
  await untilCounted(simulator, (counts) => counts.aborted > aborted)
  await until(
    'the stream has ended in the simulator',
    async () => dig(await look(id), 'status') !== 'in_progress',
  )
  return id
}

async function readUntilBroken(response: Response): Promise<string> {
  let text = ''
  try {
    for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString()
    assert.fail('the stream ended as if nothing had happened')
  } catch (error) {
    assert.match(String(error), /terminated/)
  }
  return text
}
