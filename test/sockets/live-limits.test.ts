import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { after, before, beforeEach, test } from 'node:test'
import { limits } from '../../src/kernel/limits.ts'
import { dig } from '../simulator/dig.ts'
import { until } from '../support/until.ts'
import { LIVE_PER_HOUR, writeHourlyPrices } from './hourly-prices.ts'
import { type PlayedUpstream, playUpstream } from './played-upstream.ts'
import { stopTime } from './stop-time.ts'

const PATH = '/v1/live/sessions'
const prices = writeHourlyPrices()
const delegation = { type: 'responses', responses: { model: 'gpt-5.5-pro' } }
const session = { id: 'live_1', model: 'gpt-live-1', delegation }
let upstream: PlayedUpstream
before(async () => {
  upstream = await playUpstream({ type: 'session.started', session }, { env: { TOLLGATE_PRICES: prices } })
})
after(async () => {
  await upstream.close()
  rmSync(prices)
})
beforeEach(() => {
  upstream.reached.length = 0
  upstream.answer = (message, say) => {
    if (dig(message, 'type') === 'response.create') playResponse(say)
  }
})

let begun = 0

/** A response that reads 20,000 tokens and writes 10,000. */
function playResponse(say: (event: object) => void): void {
  begun += 1
  const usage = { input_tokens: 20_000, output_tokens: 10_000, total_tokens: 30_000 }
  const response = { id: `resp_${begun}`, model: 'gpt-5.5-pro', output: [] }
  const tell = (type: string, fields: object) =>
    say({ type: 'response.event', event: { type, response: { ...response, ...fields } } })
  tell('response.created', { status: 'in_progress', usage: null })
  tell('response.completed', { status: 'completed', usage })
}

const usdFor = (seconds: number) => Math.round((seconds * LIVE_PER_HOUR * 1e9) / 3_600) / 1e9
const create = (event_id: string) => ({ type: 'response.create', event_id })

async function open(monthlyUsd: number | null, fields: object = {}, path = PATH) {
  const { id, key } = await upstream.gateway.createKey('live', { monthly_budget_usd: monthlyUsd, ...fields })
  const socket = await upstream.open(path, key)
  await socket.takeType('session.started')
  return { id, key, socket }
}

async function nothingHeld(id: string): Promise<void> {
  await until('nothing is held', async () => (await upstream.heldUsd(id)) === 0)
}

/** The hold for the next minute and one response, once the session was shown: until then all that is left is held. */
async function heldForBoth(id: string): Promise<number> {
  let usd = 0
  await until('both are held', async () => {
    usd = await upstream.heldUsd(id)
    return usd > 10 * usdFor(60) && usd < 1_000
  })
  return usd
}

test('what a session that was not seen to start is billed first is an estimate', async () => {
  const { id, key } = await upstream.gateway.createKey('live')
  const socket = await upstream.open(`${PATH}/live_1/attach`, key)
  await socket.takeType('session.started')
  upstream.answer = (_message, say) => say({ type: 'session.usage.updated', usage: { seconds: 900 } })
  socket.send({ type: 'tell' })
  await until('it is paid for', async () => (await upstream.costs(id)).length === 1)
  const { data } = await upstream.gateway.manage('GET', `/v1/keys/${id}/requests?limit=100`)
  const settled = (data as readonly unknown[]).filter((call) => Number(dig(call, 'cost_usd')) > 0)
  assert.deepEqual(
    settled.map((call) => dig(call, 'estimated')),
    [true],
  )
  socket.ws.terminate()
  await nothingHeld(id)
})

test('while a session has others work for it, one response of theirs is held for', async () => {
  const { id, socket } = await open(1_000)
  const heldUsd = await heldForBoth(id)
  socket.send(create('a'))
  await socket.takeUntil((event) => dig(event, 'event.type') === 'response.completed')
  await until('it is paid for', async () => (await upstream.spentUsd(id)) > 0)
  await until('it is held again', async () => (await upstream.heldUsd(id)) === heldUsd)
  assert.equal((await upstream.costs(id)).length, 1)
  socket.ws.terminate()
  await nothingHeld(id)
})

test('responses that the client asks a session for pass a cap by one at most', async () => {
  const { id, socket } = await open(4)
  for (const name of ['a', 'b', 'c', 'd', 'e']) socket.send(create(name))
  assert.equal((await socket.closed()).code, 1008)
  assert.equal(upstream.reached.length, 2)
  await until('both are paid for', async () => (await upstream.costs(id)).length === 2)
  await nothingHeld(id)
})

test('what is held for others does not stand in the way of the next minute', async () => {
  const { id, socket } = await open(4)
  upstream.answer = (_message, say) => say({ type: 'session.usage.updated', usage: { seconds: 961 } })
  socket.send({ type: 'tell' })
  await socket.takeType('session.usage.updated')
  await until('it is paid for', async () => (await upstream.spentUsd(id)) === usdFor(61))
  upstream.answer = (_message, say) => say({ type: 'heard' })
  socket.send({ type: 'more' })
  await socket.takeType('heard')
  socket.ws.terminate()
  await nothingHeld(id)
})

test('responses that upstream refuses cost nothing', async (t) => {
  const pass = stopTime(t)
  const { id, socket } = await open(1_000)
  upstream.answer = (_message, say) =>
    say({ type: 'error', error: { message: 'One at a time.', client_event_id: 'a' } })
  socket.send(create('a'))
  await socket.takeType('error')
  socket.ws.terminate()
  await pass.over(limits.readOnMs)
  await nothingHeld(id)
  assert.equal(await upstream.spentUsd(id), 0)
})

test('what is asked for on another socket of a session is paid for by its key, once', async () => {
  const { id, socket } = await open(1_000)
  const other = await open(1_000, {}, `${PATH}/live_1/attach`)
  const listeners: ((event: object) => void)[] = []
  upstream.answer = (message, say) => {
    if (dig(message, 'type') !== 'response.create') listeners.push(say)
    else
      playResponse((event) => {
        for (const tell of listeners) tell(event)
      })
  }
  for (const each of [socket, other.socket]) each.send({ type: 'listen' })
  await until('both listen', async () => listeners.length === 2)
  await until('one of them holds', async () => (await upstream.heldUsd(other.id)) === 0)
  other.socket.send(create('mine'))
  await until('it is paid for', async () => (await upstream.costs(other.id)).length === 1)
  assert.equal(await upstream.heldUsd(other.id), 0)
  socket.ws.terminate()
  other.socket.ws.terminate()
  await nothingHeld(id)
  assert.equal(await upstream.spentUsd(id), 0)
})

test('what is asked for on another socket of a session does not pass the cap of its key', async () => {
  const { id, socket } = await open(1_000)
  const other = await open(0.1, {}, `${PATH}/live_1/attach`)
  await until('one of them holds', async () => (await upstream.heldUsd(other.id)) === 0)
  for (const name of ['a', 'b', 'c']) other.socket.send(create(name))
  assert.equal(dig(await other.socket.takeType('error'), 'error.code'), 'budget_exceeded')
  assert.equal(upstream.reached.length, 1)
  assert.equal((await upstream.costs(other.id)).length, 1)
  for (const each of [socket, other.socket]) each.ws.terminate()
  for (const each of [id, other.id]) await nothingHeld(each)
  assert.equal(await upstream.spentUsd(id), 0)
})

test('a response that waits for its hold is paid for by its usage, however much comes before that', async () => {
  const { id, socket } = await open(4)
  upstream.answer = (_message, say) => {
    const tell = (event: object) => say({ type: 'response.event', event })
    const response = (name: string, tokens: number | null) => ({
      id: name,
      model: 'gpt-5.5-pro',
      status: tokens === null ? 'in_progress' : 'completed',
      output: [],
      usage: tokens === null ? null : { input_tokens: 0, output_tokens: tokens, total_tokens: tokens },
    })
    tell({ type: 'response.created', response: response('resp_first', null) })
    tell({ type: 'response.created', response: response('resp_second', null) })
    const metadata = { words: 'word '.repeat(60_000) }
    for (let i = 0; i < 5; i++)
      tell({ type: 'response.in_progress', response: { ...response('resp_second', null), metadata } })
    tell({ type: 'response.completed', response: { ...response('resp_second', 10_000), metadata } })
    tell({ type: 'response.completed', response: response('resp_first', 1_000) })
  }
  socket.send({ type: 'go' })
  await until('both are paid for', async () => (await upstream.costs(id)).length === 2)
  const costs = (await upstream.costs(id)).map(([, usd]) => usd).sort((a, b) => a - b)
  assert.deepEqual(costs, [0.18, 1.8])
  socket.ws.terminate()
  await nothingHeld(id)
})

test('a model that is asked for holds for no less than the one that the session goes by', async () => {
  const { id, socket } = await open(1_000)
  const heldUsd = await heldForBoth(id)
  upstream.answer = (_message, say) => say({ type: 'error', error: { message: 'It has started.' } })
  socket.send({ type: 'session.start', session: { model: 'whisper-1' } })
  await socket.takeType('error')
  assert.equal(await upstream.heldUsd(id), heldUsd)
  socket.ws.terminate()
  await nothingHeld(id)
})

const decide = (model: string | null) => ({
  type: 'decision.event',
  event: {
    type: 'decision.completed',
    decision: {
      ...(model === null ? {} : { model }),
      usage: { input_tokens: 100_000, output_tokens: 0, total_tokens: 100_000 },
    },
  },
})

for (const model of ['gpt-6-luna', null])
  test(`a decision that names ${model ?? 'no model'} is paid for as one, at the model of decisions`, async () => {
    const { id, socket } = await open(1_000)
    upstream.answer = (message, say) => {
      if (dig(message, 'type') === 'decide') say(decide(model))
      else
        say({
          type: 'session.updated',
          session: { ...session, delegation: dig(message, 'session.delegation') },
        })
    }
    const decisions = { type: 'decisions', decisions: { model: 'gpt-6-luna' } }
    socket.send({ type: 'session.update', session: { delegation: decisions } })
    await socket.takeType('session.updated')
    socket.send({ type: 'decide' })
    await until('it is paid for', async () => (await upstream.costs(id)).length === 1)
    // A tenth of a million at 0.1 dollars.
    assert.deepEqual(await upstream.costs(id), [['gpt-6-luna', 0.01]])
    socket.ws.terminate()
    await nothingHeld(id)
  })

test('a key with a list of models may change a session that goes by these, and have no others decide', async () => {
  const { id, socket } = await open(null, { allowed_models: ['gpt-live-1', 'gpt-5.5-pro'] })
  upstream.answer = (_message, say) => say({ type: 'session.updated', session })
  const tools = { type: 'responses', responses: { tools: [] } }
  socket.send({ type: 'session.update', session: { delegation: tools } })
  await socket.takeType('session.updated')
  const triggers = [{ type: 'decisions', event_type: 'session.input_transcript.delta', decisions: {} }]
  socket.send({ type: 'session.update', session: { triggers } })
  assert.equal(dig(await socket.takeType('error'), 'error.code'), 'model_not_allowed')
  assert.equal(upstream.reached.length, 1)
  socket.ws.terminate()
  await nothingHeld(id)
})

test('a key with a list of models has none draw for a session that it may not use', async () => {
  const { id, socket } = await open(null, { allowed_models: ['gpt-live-1', 'gpt-5.5-pro', 'gpt-image-2'] })
  upstream.answer = (_message, say) => say({ type: 'session.updated', session })
  const draw = (model: string) => {
    const tools = [{ type: 'image_generation', model }]
    const responses = { type: 'responses', responses: { model: 'gpt-5.5-pro', tools } }
    socket.send({ type: 'session.update', session: { delegation: responses } })
  }
  draw('gpt-image-1')
  assert.equal(dig(await socket.takeType('error'), 'error.code'), 'model_not_allowed')
  draw('gpt-image-2')
  await socket.takeType('session.updated')
  assert.equal(upstream.reached.length, 1)
  socket.ws.terminate()
  await nothingHeld(id)
})

test('a decision whose figures cannot be true is paid for as one that is cut', async () => {
  const { id, socket } = await open(1_000)
  upstream.answer = (message, say) => {
    if (dig(message, 'type') !== 'decide')
      say({
        type: 'session.updated',
        session: { ...session, delegation: dig(message, 'session.delegation') },
      })
    else {
      const usage = { input_tokens: 1e12, output_tokens: 1e12, total_tokens: 2e12 }
      const decision = { model: 'gpt-6-luna', usage }
      say({ type: 'decision.event', event: { type: 'decision.completed', decision } })
    }
  }
  const decisions = { type: 'decisions', decisions: { model: 'gpt-6-luna' } }
  socket.send({ type: 'session.update', session: { delegation: decisions } })
  await socket.takeType('session.updated')
  socket.send({ type: 'decide' })
  await until('it is paid for', async () => (await upstream.costs(id)).length === 1)
  const [[, usd] = []] = await upstream.costs(id)
  assert.ok(usd !== undefined && usd > 0 && usd < 1, `${usd} dollars`)
  socket.ws.terminate()
  await nothingHeld(id)
})

test('a socket that looks on has a session go by no model that its key may not pay for', async () => {
  const { id, socket } = await open(1_000)
  await heldForBoth(id)
  const other = await open(1_000, {}, `${PATH}/live_1/attach`)
  other.socket.send({ type: 'session.update', session: { model: 'gpt-without-a-price' } })
  assert.equal(dig(await other.socket.takeType('error'), 'error.code'), 'model_not_priced')
  assert.deepEqual(upstream.reached, [])
  for (const each of [socket, other.socket]) each.ws.terminate()
  await nothingHeld(id)
})
