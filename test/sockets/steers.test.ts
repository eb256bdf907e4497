import assert from 'node:assert/strict'
import { assertBalanced } from '../billing/bench-of-one.ts'
import { nanosOf } from '../limits/read-ledger.ts'
import { after, afterEach, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { payloadOf, type RawSocket, splitFrames, startRawBench } from './raw-bench.ts'
import { created, createFrame, ended, hasMessages, USAGE } from './turn-events.ts'
import { wireOf } from './wire-frames.ts'

const bench = await startRawBench()
after(() => bench[Symbol.asyncDispose]())
afterEach(() => assertBalanced(bench.gateway))

/** The cost of gpt-4o's full input window, and of its output in these tests, in nanodollars. */
const WINDOW_NANOS = 128_000 * 2_500
const OUTPUT_NANOS = 500 * 10_000

const steerFrame = (responseId: string, input: unknown) =>
  wireOf('client', {
    opcode: 1,
    payload: JSON.stringify({ type: 'response.steer', previous_response_id: responseId, input }),
  })
const message = (...content: object[]) => [{ type: 'message', role: 'user', content }]
const ofKey = async (id: string, member: 'month_held_usd' | 'month_spend_usd') =>
  nanosOf((await bench.gateway.manage('GET', `/v1/keys/${id}`))[member])
const heldFor = (id: string) => ofKey(id, 'month_held_usd')
const nothingHeld = (id: string) => until('nothing is held', async () => (await heldFor(id)) === 0)
const reachedBytes = ({ upstream }: RawSocket, more: number) =>
  upstream.receivedBytes(upstream.received.length + more)

async function inMidTurn(budgetUsd: number, responseId: string) {
  const { id, key } = await bench.gateway.createKey('steers', { monthly_budget_usd: budgetUsd })
  const socket = await bench.open({ key })
  await begin(socket, responseId)
  return { id, socket }
}

async function begin(socket: RawSocket, responseId: string, streamId?: string): Promise<void> {
  const create = createFrame(streamId === undefined ? {} : { stream_id: streamId })
  const arrived = reachedBytes(socket, create.length)
  await socket.client.send(create)
  await arrived
  const already = splitFrames(socket.client.received).length
  await socket.upstream.send(created(responseId, streamId))
  await hasMessages(socket.client, already + 1)
}

const inputs: Record<string, unknown> = {
  'a few words': 'Shorter, please.',
  'an image elsewhere': message({ type: 'input_image', image_url: 'https://example.com/a.png' }),
}

for (const [name, input] of Object.entries(inputs)) {
  test(`a steer with ${name} holds a full context window`, async () => {
    const { id, socket } = await inMidTurn(5, `resp_${name}`)
    const before = await heldFor(id)
    assert.ok(before < 2 * OUTPUT_NANOS, `the response itself holds ${before}`)
    const steer = steerFrame(`resp_${name}`, input)
    const arrived = reachedBytes(socket, steer.length)
    await socket.client.send(steer)
    await arrived
    assert.equal((await heldFor(id)) - before, WINDOW_NANOS + OUTPUT_NANOS)
    socket.upstream.reset()
    await nothingHeld(id)
  })
}

test('a steer under a spent cap is refused on the lane of its response and not forwarded', async () => {
  const { id, key } = await bench.gateway.createKey('steers', { monthly_budget_usd: 0.01 })
  const socket = await bench.open({ key })
  await begin(socket, 'resp_long', 'long')
  await begin(socket, 'resp_dear', 'dear')
  await socket.upstream.send(
    ended('resp_dear', 'completed', { ...USAGE, output_tokens: 2_000, total_tokens: 3_000 }, 'dear'),
  )
  await until('the cap is spent', async () => (await ofKey(id, 'month_spend_usd')) > 2 * OUTPUT_NANOS)
  const already = socket.upstream.received.length
  const before = splitFrames(socket.client.received).length
  await socket.client.send(steerFrame('resp_long', 'More.'))
  await hasMessages(socket.client, before + 1)
  const [frame = Buffer.alloc(2)] = splitFrames(socket.client.received).slice(before)
  const event = JSON.parse(payloadOf(frame).toString())
  assert.deepEqual([event.type, event.status, event.stream_id], ['error', 402, 'long'])
  assert.equal(event.error.code, 'budget_exceeded')
  assert.equal(socket.upstream.received.length, already)
  socket.upstream.reset()
  await nothingHeld(id)
})

const turnsOf = async (id: string) => {
  const { data } = (await bench.gateway.manage('GET', `/v1/keys/${id}/requests?limit=100`)) as {
    data: Record<string, unknown>[]
  }
  return data.filter((call) => call['id'] !== call['socket_id'])
}
const settled = (id: string, count: number) =>
  until(`${count} turns are settled`, async () => {
    const turns = await turnsOf(id)
    return turns.length === count && turns.every(({ state }) => state === 'settled' || state === 'released')
  })

test('a steered response and its successor are two turns, each billed by its own usage', async () => {
  const { id, socket } = await inMidTurn(5, 'resp_first')
  const steer = steerFrame('resp_first', 'Shorter, please.')
  const arrived = reachedBytes(socket, steer.length)
  await socket.client.send(steer)
  await arrived
  await socket.upstream.send(
    ended('resp_first', 'incomplete', { input_tokens: 1_000, output_tokens: 20, total_tokens: 1_020 }),
    created('resp_second'),
    ended('resp_second', 'completed', { input_tokens: 1_030, output_tokens: 50, total_tokens: 1_080 }),
  )
  await settled(id, 2)
  const bills = (await turnsOf(id)).map(({ usage, cost_usd, estimated }) => {
    const { input_tokens, output_tokens } = usage as Record<string, number>
    return [input_tokens, output_tokens, nanosOf(cost_usd), estimated]
  })
  assert.deepEqual(bills.sort(), [
    [1_000, 20, 1_000 * 2_500 + 20 * 10_000, false],
    [1_030, 50, 1_030 * 2_500 + 50 * 10_000, false],
  ])
  socket.upstream.reset()
  await nothingHeld(id)
})
