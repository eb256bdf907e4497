import assert from 'node:assert/strict'
import { systemClock } from '../../src/kernel/clock.ts'
import { SILENT_LANE_MS } from '../../src/sockets/lanes.ts'
import { nanosOf } from '../limits/read-ledger.ts'
import { dig, digText } from '../simulator/dig.ts'
import { isTerminal } from '../simulator/socket-client.ts'
import { afterEach, before, closeAfter, test } from '../support/suite.ts'
import { create, simulated, startTurnsBench } from './turns-bench.ts'

let aheadMs = 0
const clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() + aheadMs }
const bench = await startTurnsBench({ env: { TOLLGATE_DISCOUNT: '0.137' }, clock })
closeAfter(bench)
afterEach(() => bench.assertBalanced())

type Json = Readonly<Record<string, unknown>>

/** The members of a record that are equal by socket and by POST. */
const billOf = (record: Json) =>
  Object.fromEntries(
    [
      ...['state', 'model', 'model_served', 'status', 'stop_reason', 'estimated', 'unpriced', 'overrun'],
      ...['usage', 'cost_usd', 'list_cost_usd', 'key_id', 'price_version'],
    ].map((name) => [name, record[name]]),
  )

/** The record of the same request by POST. */
async function posted(event: object, key?: string): Promise<Json> {
  const { type: _, generate: __, stream_id: ___, ...body } = event as Json
  const options = { surface: 'chat', ...(key === undefined ? {} : { key }) } as const
  const simulate = dig(body, 'metadata.x-simulator')
  const behaviour = typeof simulate === 'string' ? { simulate } : {}
  const reply = await bench.call('/v1/responses', { ...body, stream: true }, { ...options, ...behaviour })
  assert.equal(reply.status, 200, reply.body.toString())
  return await bench.record(reply.requestId)
}

before(() => posted(simulated('no-usage')))

const requests: Record<string, object> = {
  'plain text': create(),
  'another model, with reasoning': create({ model: 'gpt-6.1-sol', max_output_tokens: 2_000 }),
  'a limit that truncates it': create({ max_output_tokens: 16 }),
  'usage with cached and reasoning tokens': simulated(
    'usage={"input_tokens":1001,"output_tokens":77,"input_tokens_details":{"cached_tokens":500},"output_tokens_details":{"reasoning_tokens":40}}',
  ),
  'another tier than was asked for': simulated('tier=priority', { service_tier: 'auto' }),
  'another model than was asked for': simulated('model=gpt-6.1-sol'),
  'a search': create({ tools: [{ type: 'web_search' }], input: 'web_search: use the tool' }),
}

for (const [name, event] of Object.entries(requests)) {
  test(`a turn costs as much as the same request by POST: ${name}`, async () => {
    const wanted = await posted(event)
    const socket = await bench.open()
    await socket.turn(event)
    const [turn = {}] = await bench.turns(socket.id, 1)
    assert.deepEqual(billOf(turn), billOf(wanted))
    assert.ok(nanosOf(turn['cost_usd']) > 0)
    socket.ws.close()
  })
}

test('a turn without stated usage is estimated', async () => {
  const socket = await bench.open()
  await socket.turn(simulated('no-usage'))
  const [turn = {}] = await bench.turns(socket.id, 1)
  assert.equal(turn['estimated'], true)
  // The estimate counts bytes: a message has a few more than the body of the same request by POST.
  assert.equal(
    dig(turn, 'usage.output_tokens'),
    dig(await posted(simulated('no-usage')), 'usage.output_tokens'),
  )
  assert.ok(nanosOf(turn['cost_usd']) > 0)
  socket.ws.close()
})

test('each turn has its own record, with the socket, the path and the client', async () => {
  const socket = await bench.open({ headers: { 'user-agent': 'sockets/1' } })
  for (const input of ['One.', 'Two.', 'Three.']) await socket.turn(create({ input }))
  const turns = await bench.turns(socket.id, 3)
  assert.equal(new Set(turns.map(({ id }) => id)).size, 3)
  for (const turn of turns) {
    assert.equal(turn['socket_id'], socket.id)
    assert.equal(turn['path'], '/v1/responses')
    assert.equal(turn['streamed'], true)
    assert.equal(turn['user_agent'], 'sockets/1')
    assert.match(String(turn['id']), /^req_/)
    assert.ok(Number(turn['bytes_in']) > 0 && Number(turn['bytes_out']) > 0)
  }
  socket.ws.close()
  const handshake = await bench.record(socket.id)
  assert.equal(handshake['socket_id'], socket.id)
  assert.equal(handshake['status'], 101)
  assert.equal(handshake['state'], 'settled')
  assert.equal(nanosOf(handshake['cost_usd']), 0)
  assert.equal(nanosOf(handshake['list_cost_usd']), 0)
})

test('concurrent lanes are each billed by their own usage', async () => {
  const socket = await bench.open()
  const models = ['gpt-4o', 'gpt-6.1-sol', 'gpt-4o-mini']
  const events = Array.from({ length: 12 }, (_, i) =>
    simulated(`usage={"input_tokens":${100 + i},"output_tokens":${10 + i * i}}; drip=0`, {
      stream_id: `lane ${i % 4}`,
      model: models[i % 3],
      input: `Turn ${i}.`,
    }),
  )
  for (const event of events) socket.send(event)
  for (const _ of events) await socket.takeUntil(isTerminal)
  const lanes = socket.received.map((event) => dig(event, 'stream_id'))
  assert.ok(lanes.some((lane, i) => i > 0 && lane !== lanes[i - 1] && lanes.lastIndexOf(lanes[i - 1]) > i))
  const turns = await bench.turns(socket.id, 12)
  const byInput = (records: Json[]) =>
    records
      .map((record) => [dig(record, 'usage.input_tokens'), billOf(record)] as const)
      .sort(([one], [other]) => Number(one) - Number(other))
  const wanted: Json[] = []
  for (const event of events) wanted.push(await posted(event))
  assert.deepEqual(byInput(turns), byInput(wanted))
  socket.ws.close()
})

test('a warm-up is billed for its input, and the next turn too', async () => {
  const socket = await bench.open()
  const warm = await socket.turn(create({ generate: false, input: 'Be kind. '.repeat(50) }))
  const [turn = {}] = await bench.turns(socket.id, 1)
  assert.equal(dig(turn, 'usage.input_tokens'), dig(warm.at(-1), 'response.usage.input_tokens'))
  assert.equal(dig(turn, 'usage.output_tokens'), 0)
  assert.ok(nanosOf(turn['cost_usd']) > 0)
  await socket.turn(create({ previous_response_id: digText(warm.at(-1), 'response.id') }))
  const [, next = {}] = await bench.turns(socket.id, 2)
  assert.ok(nanosOf(next['cost_usd']) > nanosOf(turn['cost_usd']))
  socket.ws.close()
})

test('an error event before the response begins costs nothing, and the next turn is billed', async () => {
  const socket = await bench.open()
  for (const behaviour of ['status=429', 'status=500']) await socket.turn(simulated(behaviour))
  await socket.turn(create())
  socket.ws.close()
  await socket.closed()
  const turns = await bench.turns(socket.id, 3)
  const [one = {}, two = {}, three = {}] = turns
  assert.deepEqual(
    [one, two, three].map(({ status }) => status),
    [429, 500, 200],
  )
  assert.deepEqual(
    [one, two].map((turn) => nanosOf(turn['cost_usd'])),
    [0, 0],
  )
  assert.deepEqual(billOf(three), billOf(await posted(create())))
})

test('an error event mid-turn ends it as it ends a stream, once its lane is silent', async () => {
  const event = simulated('error-event=3')
  const socket = await bench.open()
  await socket.turn(event)
  aheadMs += SILENT_LANE_MS
  const [turn = {}] = await bench.turns(socket.id, 1)
  const wanted = await posted(event)
  assert.deepEqual(billOf(turn), billOf(wanted))
  await socket.turn(create())
  assert.deepEqual(billOf((await bench.turns(socket.id, 2))[1] ?? {}), billOf(await posted(create())))
  socket.ws.close()
})
