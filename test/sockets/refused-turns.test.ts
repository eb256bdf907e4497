import assert from 'node:assert/strict'
import { clockAt } from '../limits/clock-at.ts'
import { nanosOf } from '../limits/read-ledger.ts'
import { dig } from '../simulator/dig.ts'
import { isTerminal } from '../simulator/socket-client.ts'
import { afterEach, closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { create, refusalOf, simulated, startTurnsBench } from './turns-bench.ts'

const clock = clockAt('2026-11-12T12:00:00.000Z')
const bench = await startTurnsBench({ clock })
closeAfter(bench)
afterEach(() => bench.assertBalanced())
const { gateway } = bench

const upstreamGot = () => bench.entries.filter(({ kind }) => kind === 'message').length

type Open = Awaited<ReturnType<typeof bench.open>>

/** Sends a message that must be refused, and asserts that it does not reach upstream. */
async function refused(socket: Open, message: object | string) {
  const before = upstreamGot()
  socket.send(message)
  const [event, ...more] = await socket.takeUntil(isTerminal)
  assert.equal(upstreamGot(), before, `upstream has got ${JSON.stringify(message)}`)
  assert.deepEqual(more, [], 'the error event is the only event')
  assert.match(String(dig(event, 'request_id')), /^req_/)
  assert.equal(typeof dig(event, 'error.message'), 'string')
  return { event, ...refusalOf(event) }
}

async function assertServes(socket: Open): Promise<void> {
  const events = await socket.turn(create())
  assert.equal(dig(events.at(-1), 'type'), 'response.completed', JSON.stringify(events.at(-1)))
}

test('a spent cap refuses turns with 402 on their lane, and the socket stays open', async () => {
  const { id, key } = await gateway.createKey('spent', { monthly_budget_usd: 0.0001 })
  const socket = await bench.open({ key })
  await socket.turn(simulated('usage={"output_tokens":5000}', { max_output_tokens: 6_000 }))
  await until('the budget is spent', async () => {
    const shown = await bench.manage('GET', `/v1/keys/${id}`)
    return nanosOf(shown['month_held_usd']) === 0 && nanosOf(shown['month_spend_usd']) >= 100_000
  })
  for (const streamId of [undefined, 'lane']) {
    const { event, ...rest } = await refused(socket, create(streamId ? { stream_id: streamId } : {}))
    assert.deepEqual(rest, { type: 'error', status: 402, code: 'budget_exceeded', streamId })
    const record = await bench.record(String(dig(event, 'request_id')))
    assert.deepEqual(
      [record['state'], record['code'], record['socket_id']],
      ['refused', 'budget_exceeded', socket.id],
    )
    assert.ok(dig(event, 'error.details') !== undefined || dig(event, 'error.type') === 'billing_error')
  }
  await bench.manage('PATCH', `/v1/keys/${id}`, { monthly_budget_usd: 1 })
  await assertServes(socket)
  socket.ws.close()
})

test('a turn waits while others hold the rest of a cap, then starts', async () => {
  const { id, key } = await gateway.createKey('held', { monthly_budget_usd: 0.001 })
  const [busy, waiting] = [await bench.open({ key }), await bench.open({ key })]
  busy.send(simulated('stall=5; usage={"output_tokens":1}', { max_output_tokens: 4_000 }))
  await busy.takeType('response.created')
  const before = upstreamGot()
  waiting.send(create())
  await until(
    'the call waits',
    async () => (await bench.manage('GET', `/v1/keys/${id}`))['month_waiting'] === 1,
  )
  assert.equal(upstreamGot(), before)
  waiting.ws.ping('control frames do not wait')
  await new Promise((resolve) => waiting.ws.once('pong', resolve))
  busy.ws.close()
  const events = await waiting.takeUntil(isTerminal)
  assert.equal(dig(events.at(-1), 'type'), 'response.completed')
  waiting.ws.close()
})

test('messages behind a waiting one keep their order, and are dropped when the client leaves', async () => {
  const { id, key } = await gateway.createKey('left', { monthly_budget_usd: 0.001 })
  const [busy, waiting] = [await bench.open({ key }), await bench.open({ key })]
  busy.send(simulated('stall=5; usage={"output_tokens":1}', { max_output_tokens: 4_000 }))
  await busy.takeType('response.created')
  const before = upstreamGot()
  for (const input of ['one', 'two']) waiting.send(create({ input }))
  await until(
    'one call waits',
    async () => (await bench.manage('GET', `/v1/keys/${id}`))['month_waiting'] === 1,
  )
  waiting.ws.terminate()
  await until(
    'nobody waits',
    async () => (await bench.manage('GET', `/v1/keys/${id}`))['month_waiting'] === 0,
  )
  busy.ws.close()
  await busy.closed()
  await bench.turns(busy.id, 1)
  assert.equal(upstreamGot(), before, 'a message whose client has left is not sent')
})

test('a model outside the allowlist is refused with 403', async () => {
  const { key } = await gateway.createKey('listed', { allowed_models: ['gpt-4o'] })
  const socket = await bench.open({ key })
  const { event: _, ...rest } = await refused(socket, create({ model: 'gpt-6.1-sol', stream_id: 's' }))
  assert.deepEqual(rest, { type: 'error', status: 403, code: 'model_not_allowed', streamId: 's' })
  await assertServes(socket)
  socket.ws.close()
})

const twice = (member: string) => `{"type":"response.create","model":"gpt-4o","input":"x",${member}}`
const odd: Record<string, object | string> = {
  'background: true': create({ background: true }),
  'invalid JSON': '{"type":"response.create",',
  'an empty message': '',
  'type twice': twice('"type":"response.steer"'),
  'type twice, once with an escape': twice('"t\\u0079pe":"response.create"'),
  'Type beside type': twice('"Type":"response.steer"'),
  'a list instead of an object': `[${JSON.stringify(create())}]`,
  'two values': `${JSON.stringify(create())}${JSON.stringify(create())}`,
  'a numeric stream_id': create({ stream_id: 7 }),
  'an overlong stream_id': create({ stream_id: 's'.repeat(5_000) }),
  'stream_id twice': twice('"stream_id":"a","stream_id":"b"'),
  'previous_response_id twice': twice('"previous_response_id":"resp_a","previous_response_id":"resp_b"'),
}

for (const [name, message] of Object.entries(odd)) {
  test(`with a capped key, ${name} is refused with 400, and the socket stays open`, async () => {
    const { key } = await gateway.createKey('capped', { monthly_budget_usd: 5 })
    const socket = await bench.open({ key })
    const { event: _, ...rest } = await refused(socket, message)
    assert.equal(rest.type, 'error')
    assert.equal(rest.status, 400)
    assert.equal(rest.code, 'bad_request')
    await assertServes(socket)
    socket.ws.close()
  })
}
